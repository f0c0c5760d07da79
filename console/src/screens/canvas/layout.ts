// Where components stand: lines of twelve columns.

import type { Item } from "./document";

/** The columns of a line. */
const COLUMNS = 12;

/** A line of items with their widths in columns, which need not be whole. */
export interface Line {
  items: { item: Item; width: number }[];
  /** Columns that nothing stands in. */
  rest: number;
}

/** Returns names that differ: one that stands there already gets a number. */
export function unlike(names: string[]): string[] {
  const taken = new Set<string>();
  for (const name of names) {
    let word = name;
    for (let number = 2; taken.has(word); number++) word = `${name} ${number}`;
    taken.add(word);
  }
  return [...taken];
}

/** Cuts items into lines: a width that does not fit any more begins the next one, and those that are not said share what is left. */
export function linesOf(items: Item[]): Line[] {
  const lines: { item: Item; said: number }[][] = [];
  let left = 0;
  for (const item of items) {
    const said = Math.min(Math.max(Math.floor(item.width) || 0, 0), COLUMNS);
    const least = Math.max(said, 1);
    if (lines.length === 0 || left < least) {
      lines.push([]);
      left = COLUMNS;
    }
    left -= least;
    lines.at(-1)!.push({ item, said });
  }
  return lines.map((line) => {
    const taken = line.reduce((sum, { said }) => sum + said, 0);
    const open = line.filter(({ said }) => said === 0).length;
    const share = open > 0 ? (COLUMNS - taken) / open : 0;
    return { items: line.map(({ item, said }) => ({ item, width: said || share })), rest: open > 0 ? 0 : COLUMNS - taken };
  });
}

const one = <Word extends string>(value: unknown, ...words: Word[]): Word | undefined => words.find((word) => word === value);

/** Where a text stands in its place, as its author says. */
export function alignmentOf({ alignment }: Record<string, unknown>): { horizontal: "left" | "center" | "right" | undefined; vertical: "top" | "middle" | "bottom" | undefined } {
  const said = (typeof alignment === "object" && alignment !== null ? alignment : {}) as Record<string, unknown>;
  return { horizontal: one(said.horizontal, "left", "center", "right"), vertical: one(said.vertical, "top", "middle", "bottom") };
}

/** The columns of a line as style sheets have them. */
export function columnsOf({ items, rest }: Line): string {
  return [...items.map(({ width }) => width), ...(rest > 0 ? [rest] : [])].map((width) => `minmax(0, ${width}fr)`).join(" ");
}
