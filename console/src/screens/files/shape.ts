// What a file is beside its lines: the mark at its beginning and its line ends. Saving changes neither.

/** The largest file that the service takes, in bytes. */
export const LARGEST = 128 << 10;

const MARK = "\uFEFF";

/** The form of a file. */
export interface Shape {
  hasMark: boolean;
  /** True if every line ends in a carriage return and a line feed. Where lines end in both ways, each keeps its own. */
  isCarriageReturned: boolean;
}

/** The form of a new file. */
export const PLAIN: Shape = { hasMark: false, isCarriageReturned: false };

/** Takes the content of a file apart; throws where it is no text. */
export function taken(bytes: Uint8Array): { text: string; shape: Shape } {
  const whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const hasMark = whole.startsWith(MARK);
  const text = hasMark ? whole.slice(1) : whole;
  const isCarriageReturned = text.includes("\r\n") && !/\r(?!\n)|(?<!\r)\n/.test(text);
  return { text: isCarriageReturned ? text.replaceAll("\r\n", "\n") : text, shape: { hasMark, isCarriageReturned } };
}

/** Returns the content of a file. */
export function given(text: string, { hasMark, isCarriageReturned }: Shape): Uint8Array<ArrayBuffer> {
  const lines = isCarriageReturned ? text.replaceAll("\n", "\r\n") : text;
  return new TextEncoder().encode((hasMark ? MARK : "") + lines);
}
