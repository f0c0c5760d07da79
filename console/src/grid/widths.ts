// Widths of columns, guessed from the first rows, and then kept: nothing moves while more rows come.

import type { Rows } from "./rows";
import { lineOf, sortOf } from "./values";

/** Rows that are looked at, and cells in all: answers may have ten thousand columns. */
const ROWS = 50;
const CELLS = 20_000;
/** Bounds of a width, in letters. */
const [LEAST, MOST] = [8, 44];

/** Returns the widths in letters. */
export function widths(rows: Rows): number[] {
  const looked = Math.max(1, Math.min(ROWS, Math.floor(CELLS / Math.max(rows.columns.length, 1)), rows.count));
  const first = Array.from({ length: looked }, (_, number) => rows.at(number) ?? []);
  return rows.columns.map((column, place) => {
    // The heading has the name, the type below it, and the mark of the summary.
    const own = Math.max(column.name.length + 4, Math.min(column.type.length, 24));
    const longest = Math.max(own, ...first.map((row) => lineOf(row[place]).length));
    const most = sortOf(column) === "number" ? MOST : 32;
    return Math.min(Math.max(longest + 2, LEAST), most);
  });
}
