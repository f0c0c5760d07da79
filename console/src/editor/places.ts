// Places in a text: the service tells them in bytes.

const encoder = new TextEncoder();

/** Returns the place in a text, in its own characters, of an offset in bytes. */
export function placeOf(text: string, bytes: number): number {
  let [at, passed] = [0, 0];
  for (const sign of text) {
    if (passed >= bytes) return at;
    passed += sign.length === 1 && sign.charCodeAt(0) < 0x80 ? 1 : encoder.encode(sign).length;
    at += sign.length;
  }
  return at;
}

/** Returns the end of the word that begins at a place; at least one character, where there is one. */
export function wordEnd(text: string, at: number): number {
  const found = /^(?:"(?:[^"]|"")*"|[\p{L}\p{N}_]+|\S)/u.exec(text.slice(at, at + 1_000));
  return Math.min(at + (found?.[0].length ?? 1), text.length);
}

/** Returns line and column of a place, from 1. */
export function lineOf(text: string, at: number): { line: number; column: number } {
  const before = text.slice(0, at).split("\n");
  return { line: before.length, column: [...before.at(-1)!].length + 1 };
}
