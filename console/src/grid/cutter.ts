// Cuts a document of rows that still arrives into its columns, whole rows, and its end. Rows stay bytes until somebody looks at them: so
// their memory is what they weigh, and a million of them cost no million objects.

/** A column of an answer. */
export interface Column {
  name: string;
  /** The type, as the engine names it. */
  type: string;
}

/** Whole rows: JSON arrays with commas between them. */
export interface Block {
  bytes: Uint8Array;
  count: number;
}

/** What a document says behind its last row. */
export interface Tail {
  truncated?: boolean | null;
  error?: unknown;
}

const [QUOTE, BACKSLASH, OPEN, CLOSE, BEGIN, END] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];
/** The most bytes before the first row and behind the last one: 10,000 columns with long names. */
const MOST_AROUND = 16 << 20;
const ROWS = '"rows":[';

/** A document that is not of the form that the service writes. */
export class Unreadable extends Error {}

/** A reader of one document, fed in pieces. */
export class Cutter {
  columns: Column[] | undefined;
  /** What stood behind the rows; there once the document is whole. */
  tail: Tail | undefined;

  private stage: "head" | "rows" | "tail" | "over" = "head";
  private depth = 0;
  private isText = false;
  private isEscaped = false;
  /** Pieces of what is not whole yet. */
  private carried: Uint8Array[] = [];
  private carriedBytes = 0;

  /** Takes the next bytes, and returns the rows that are whole with them. Throws what is unreadable. */
  push(bytes: Uint8Array): Block | undefined {
    let from = 0;
    if (this.stage === "head") {
      const end = this.scan(bytes, 0, 2, true);
      if (end === undefined) return void this.carry(bytes, MOST_AROUND);
      this.begin(text(this.take(bytes.subarray(0, end))));
      from = end;
    }
    let block: Block | undefined;
    if (this.stage === "rows") [block, from] = this.rows(bytes, from);
    if (this.stage === "tail") {
      const end = this.scan(bytes, from, 0, false);
      if (end === undefined) this.carry(bytes.subarray(from), MOST_AROUND);
      else this.end(text(this.take(bytes.subarray(from, end))));
    }
    return block;
  }

  /** True once the document was read to its end. */
  get isWhole(): boolean {
    return this.stage === "over";
  }

  private begin(head: string): void {
    // The columns are an array too, which stands before the rows.
    if (!head.endsWith(ROWS)) throw new Unreadable("the answer has no rows");
    const { columns } = parse(`${head}]}`) as { columns?: Column[] };
    if (!Array.isArray(columns) || !columns.every((one) => typeof one?.name === "string" && typeof one.type === "string")) throw new Unreadable("the answer has no columns");
    this.columns = columns;
    this.stage = "rows";
  }

  private end(tail: string): void {
    this.tail = parse(`{"_":0${tail}`) as Tail;
    this.stage = "over";
  }

  /** Returns the whole rows from a place, and the place behind what was read. */
  private rows(bytes: Uint8Array, from: number): [Block | undefined, number] {
    let [count, end, at] = [0, from, from];
    while (at < bytes.length) {
      const found = this.step(bytes, at);
      at = found;
      const mark = bytes[at - 1];
      if (this.isText || this.depth > 2 || mark !== CLOSE) continue;
      // A bracket that leads back to the list of rows ends a row; the one that leads out of it ends the rows.
      if (this.depth === 1) {
        const block = this.block(bytes.subarray(from, end), count);
        this.stage = "tail";
        return [block, at];
      }
      count += 1;
      end = at;
    }
    const block = this.block(bytes.subarray(from, end), count);
    this.carry(bytes.subarray(end), Infinity);
    return [block, bytes.length];
  }

  private block(bytes: Uint8Array, count: number): Block | undefined {
    if (count === 0) {
      this.carry(bytes, Infinity);
      return undefined;
    }
    const whole = this.take(bytes);
    // Between two pieces stands the comma of the rows around it.
    const first = whole.indexOf(OPEN);
    return { bytes: first > 0 ? whole.subarray(first) : whole, count };
  }

  /** Reads until the depth is reached, by the opening of a list where that is asked for; returns the place behind. */
  private scan(bytes: Uint8Array, from: number, depth: number, isOpened: boolean): number | undefined {
    for (let at = from; at < bytes.length; ) {
      at = this.step(bytes, at);
      if (this.isText || this.depth !== depth) continue;
      const mark = bytes[at - 1];
      if (!isOpened && mark === END) return at;
      if (isOpened && mark === OPEN && this.opensRows(bytes, at)) return at;
    }
    return undefined;
  }

  /** True if the list that opens before a place is that of the rows. */
  private opensRows(bytes: Uint8Array, at: number): boolean {
    let before = text(bytes.subarray(Math.max(at - ROWS.length, 0), at));
    for (let piece = this.carried.length - 1; piece >= 0 && before.length < ROWS.length; piece--) before = text(this.carried[piece]!.subarray(-ROWS.length)) + before;
    return before.endsWith(ROWS);
  }

  /** Goes behind the next mark that counts, or to the end. */
  private step(bytes: Uint8Array, from: number): number {
    let at = from;
    while (at < bytes.length) {
      const mark = bytes[at++]!;
      if (this.isText) {
        if (this.isEscaped) this.isEscaped = false;
        else if (mark === BACKSLASH) this.isEscaped = true;
        else if (mark === QUOTE) this.isText = false;
      } else if (mark === QUOTE) this.isText = true;
      else if (mark === OPEN || mark === BEGIN) return (this.depth += 1), at;
      else if (mark === CLOSE || mark === END) return (this.depth -= 1), at;
    }
    return at;
  }

  private carry(bytes: Uint8Array, most: number): void {
    if (bytes.length === 0) return;
    this.carriedBytes += bytes.length;
    if (this.carriedBytes > most) throw new Unreadable("the answer has more around its rows than any answer");
    this.carried.push(bytes.slice());
  }

  /** Takes what was carried, with the bytes behind it. */
  private take(bytes: Uint8Array): Uint8Array {
    const whole = joined([...this.carried, bytes]);
    this.carried = [];
    this.carriedBytes = 0;
    return whole;
  }
}

/** Puts pieces into one that is its own. */
export function joined(pieces: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new Unreadable("the answer is no JSON");
  }
}
