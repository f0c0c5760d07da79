// What a chart of an answer draws: axes by the types of columns, points of the first rows. Nothing is computed but the heights of a histogram.

import type { Column } from "../../grid/cutter";
import type { Rows } from "../../grid/rows";
import { instant, lineOf, near, sortOf } from "../../grid/values";

/** Rows that are drawn. */
export const MOST_ROWS = 10_000;
/** Columns of a histogram. */
const BINS = 30;
/** Lines of one chart. */
export const MOST_LINES = 4;

export const KINDS = ["line", "bar", "points", "histogram"] as const;
export type Kind = (typeof KINDS)[number];

/** The axes of a chart, by the places of columns. */
export interface Axes {
  kind: Kind;
  /** The column across; none for the numbers of rows. */
  x: number | undefined;
  y: number[];
}

/** What goes up: numbers. What goes across: anything but nested values. */
export const uprights = (columns: Column[]) => columns.flatMap((column, place) => (sortOf(column) === "number" ? [place] : []));
export const acrosses = (columns: Column[]) => columns.flatMap((column, place) => (sortOf(column) === "nested" ? [] : [place]));

/** Proposes axes by the types; none where nothing is a number. */
export function propose(columns: Column[]): Axes | undefined {
  const numbers = uprights(columns);
  if (numbers.length === 0) return undefined;
  const first = (sort: string) => columns.findIndex((column) => sortOf(column) === sort);
  const [time, text] = [first("time"), first("text")];
  if (time >= 0) return { kind: "line", x: time, y: numbers.slice(0, MOST_LINES) };
  if (text >= 0) return { kind: "bar", x: text, y: numbers.slice(0, 1) };
  const [across, up] = numbers;
  return up === undefined ? { kind: "histogram", x: undefined, y: [across!] } : { kind: "points", x: across, y: [up] };
}

/** A chart as it is drawn. */
export interface Drawing {
  kind: Kind;
  /** Places across, in order. */
  x: number[];
  lines: { name: string; values: (number | null)[] }[];
  /** How places across are written. */
  label: (x: number) => string;
  isTime: boolean;
  /** Rows that were looked at, and values of them that no chart can show. */
  rows: number;
  left: number;
}

/** Reads what a chart draws. */
export async function drawing(rows: Rows, { kind, x, y }: Axes, signal: AbortSignal): Promise<Drawing> {
  const [across] = x === undefined ? [] : [rows.columns[x]];
  const sort = across ? sortOf(across) : "number";
  const isText = x !== undefined && (sort === "text" || sort === "truth");
  const words: string[] = [];
  const points: { x: number; y: (number | null)[] }[] = [];
  let [seen, left] = [0, 0];
  const number = (value: unknown): number | null => {
    if (value === null || value === undefined) return null;
    const found = near(value);
    if (Number.isFinite(found)) return found;
    left += 1;
    return null;
  };
  await rows.each(
    MOST_ROWS,
    (row, place) => {
      seen += 1;
      const values = y.map((column) => number(row[column]));
      if (kind === "histogram" || x === undefined) return void points.push({ x: place, y: values });
      if (isText) {
        words.push(row[x] === null ? "NULL" : lineOf(row[x]));
        return void points.push({ x: place, y: values });
      }
      const at = sort === "time" ? timeOf(row[x]) : number(row[x]);
      if (at === null) left += sort === "time" && row[x] !== null ? 1 : 0;
      else points.push({ x: at, y: values });
    },
    signal,
  );
  const names = y.map((place) => rows.columns[place]?.name ?? "");
  if (kind === "histogram") return { ...histogram(points.flatMap(({ y: [one] }) => one ?? []), names[0] ?? ""), rows: seen, left };
  if (!isText) points.sort((a, b) => a.x - b.x);
  return {
    kind,
    x: points.map(({ x }) => x),
    lines: names.map((name, line) => ({ name, values: points.map(({ y }) => y[line] ?? null) })),
    label: isText ? (at) => words[at] ?? "" : sort === "time" ? written : (at) => at.toLocaleString(undefined, { maximumFractionDigits: 6 }),
    isTime: sort === "time",
    rows: seen,
    left,
  };
}

/** A moment in seconds; a time of day is one of the first day. */
function timeOf(value: unknown): number | null {
  const at = instant(value) ?? (typeof value === "string" && /^\d\d:/.test(value) ? instant(`1970-01-01 ${value}`) : null);
  return at === null ? null : at / 1_000;
}

/** A moment as the engine writes it, as far as it is one that is not 0. */
function written(seconds: number): string {
  const time = new Date(seconds * 1_000);
  return Number.isNaN(time.getTime()) ? "" : time.toISOString().replace("T", " ").replace(/( 00:00)?(:00)?(\.000)?Z$/, "");
}

/** Counts values between bounds of the same width. */
export function histogram(values: number[], name: string): Pick<Drawing, "kind" | "x" | "lines" | "label" | "isTime"> {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const isOne = values.length === 0 || low === high;
  const bins = isOne ? 1 : Math.min(BINS, values.length);
  const width = isOne ? 1 : high / bins - low / bins;
  const counts: number[] = new Array(bins).fill(0);
  for (const value of values) counts[Math.max(0, Math.min(Math.floor((value - low) / width), bins - 1))]! += 1;
  const from = values.length === 0 ? 0 : low;
  const text = (at: number) => at.toLocaleString(undefined, { maximumSignificantDigits: 4 });
  return {
    kind: "histogram",
    x: counts.map((_, place) => place),
    lines: [{ name: `rows by ${name}`, values: counts }],
    label: (place) => (counts[place] === undefined ? "" : isOne ? text(from) : text(from + place * width)),
    isTime: false,
  };
}
