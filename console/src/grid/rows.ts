// The rows of an answer that are there. They are kept as they came, and read where somebody looks.

import { joined, type Block, type Column } from "./cutter";

export type Row = unknown[];

/** The size up to which blocks are put together, in bytes. */
const BLOCK = 64 << 10;
/** The bytes of blocks that are kept read; the last two in any case. */
const KEPT = 4 << 20;
/** How long a look at all rows goes on without letting the page do something else, in milliseconds. */
const SLICE = 8;

interface Placed extends Block {
  /** The number of its first row. */
  first: number;
}

/** Rows, which only ever become more. */
export class Rows {
  /** The number of rows. */
  count = 0;
  /** What they weigh. */
  bytes = 0;
  private readonly blocks: Placed[] = [];
  private readonly read = new Map<number, Row[]>();

  constructor(
    readonly columns: Column[],
    /** Rows that are taken at most; those behind them are not there. */
    private readonly most = Infinity,
  ) {}

  /** Adds rows behind the others. */
  push({ bytes, count }: Block): void {
    const last = this.blocks.at(-1);
    if (last && last.bytes.length + bytes.length <= BLOCK) {
      last.bytes = joined([last.bytes, new Uint8Array([0x2c]), bytes]);
      last.count += count;
      this.read.delete(this.blocks.length - 1);
    } else this.blocks.push({ bytes, count, first: this.count });
    this.count = Math.min(this.count + count, this.most);
    this.bytes += bytes.length;
  }

  /** A row by its number; none behind the last one. */
  at(number: number): Row | undefined {
    if (!(number >= 0 && number < this.count)) return undefined;
    let [low, high] = [0, this.blocks.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle]!.first <= number) low = middle;
      else high = middle - 1;
    }
    return this.block(low)[number - this.blocks[low]!.first];
  }

  /** Looks at the first rows one by one, and lets the page live meanwhile. */
  async each(most: number, look: (row: Row, number: number) => void, signal?: AbortSignal): Promise<void> {
    let [number, began] = [0, performance.now()];
    for (let place = 0; place < this.blocks.length && number < most; place++) {
      for (const row of rowsOf(this.blocks[place]!)) {
        if (number >= most) return;
        look(row, number++);
      }
      if (performance.now() - began < SLICE) continue;
      await breath();
      signal?.throwIfAborted();
      began = performance.now();
    }
  }

  private block(place: number): Row[] {
    let rows = this.read.get(place);
    if (rows) {
      // What was used last goes last.
      this.read.delete(place);
    } else {
      rows = rowsOf(this.blocks[place]!);
      let weight = this.blocks[place]!.bytes.length;
      for (const [old] of this.read) weight += this.blocks[old]!.bytes.length;
      for (const [old] of this.read) {
        if (weight <= KEPT || this.read.size < 2) break;
        weight -= this.blocks[old]!.bytes.length;
        this.read.delete(old);
      }
    }
    this.read.set(place, rows);
    return rows;
  }
}

function rowsOf({ bytes }: Block): Row[] {
  return JSON.parse(`[${new TextDecoder().decode(bytes)}]`) as Row[];
}

/** Lets the page do what waits. */
export function breath(): Promise<void> {
  return new Promise((go) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      go();
    };
    port2.postMessage(undefined);
  });
}
