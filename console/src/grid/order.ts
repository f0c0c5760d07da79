// The order of the rows that are there by one column, and what its values are like. Both let the page live meanwhile.

import type { Rows } from "./rows";
import { breath } from "./rows";
import { compare, lineOf, sortOf, textOf } from "./values";

/** Rows that are put in order at once. */
const RUN = 8_192;

/** An order by a column. */
export interface Order {
  column: number;
  isDescending: boolean;
  /** The numbers of rows, in order. Rows that came later stand behind it as they came. */
  places: Uint32Array;
}

/** Orders the rows that are there; those of equal values stay as they came, and NULL is last in both directions. */
export async function order(rows: Rows, column: number, isDescending: boolean, signal: AbortSignal): Promise<Order> {
  const { count } = rows;
  const values: unknown[] = new Array(count);
  // Keys are bounded: no order depends on what is behind the first thousand characters in sight of a person.
  await rows.each(count, (row, number) => (values[number] = key(row[column])), signal);
  const by = compare(sortOf(rows.columns[column]!));
  const compared = (a: number, b: number): number => {
    const [one, other] = [values[a], values[b]];
    if (one === null || other === null) return by(one, other);
    return isDescending ? by(other, one) : by(one, other);
  };
  let places = Uint32Array.from({ length: count }, (_, number) => number);
  for (let from = 0; from < count; from += RUN) {
    places.subarray(from, from + RUN).sort((a, b) => compared(a, b) || a - b);
    await turn(signal);
  }
  let other = new Uint32Array(count);
  for (let width = RUN; width < count; width *= 2) {
    for (let from = 0; from < count; from += 2 * width) {
      await merge(places, other, from, Math.min(from + width, count), Math.min(from + 2 * width, count), compared, signal);
    }
    [places, other] = [other, places];
  }
  return { column, isDescending, places };
}

function key(value: unknown): unknown {
  return typeof value === "string" && value.length > 1_000 ? value.slice(0, 1_000) : typeof value === "object" && value !== null ? lineOf(value) : value;
}

async function merge(from: Uint32Array, to: Uint32Array, left: number, middle: number, end: number, compared: (a: number, b: number) => number, signal: AbortSignal): Promise<void> {
  let [one, other] = [left, middle];
  for (let at = left; at < end; at++) {
    const isLeft = one < middle && (other >= end || compared(from[one]!, from[other]!) <= 0);
    to[at] = from[isLeft ? one++ : other++]!;
    if (at % RUN === RUN - 1) await turn(signal);
  }
}

async function turn(signal: AbortSignal): Promise<void> {
  await breath();
  signal.throwIfAborted();
}

/** Different values that are told apart in a summary. */
const MOST_DIFFERENT = 10_000;

/** What the values of a column are like, among the rows that are there. */
export interface Summary {
  rows: number;
  nulls: number;
  empty: number;
  /** Different values; none where there are too many to count. */
  different: number | undefined;
  least: string | undefined;
  greatest: string | undefined;
  /** The most frequent values, where they are few enough to count. */
  frequent: { text: string; count: number }[];
}

/** Sums a column up. */
export async function summarize(rows: Rows, column: number, signal: AbortSignal): Promise<Summary> {
  const by = compare(sortOf(rows.columns[column]!));
  const counts = new Map<string, number>();
  const summary = { rows: rows.count, nulls: 0, empty: 0 };
  let [isMany, isFirst] = [false, true];
  let [least, greatest]: unknown[] = [];
  await rows.each(
    rows.count,
    (row) => {
      const value = row[column] ?? null;
      if (value === null) return void (summary.nulls += 1);
      if (value === "") summary.empty += 1;
      if (isFirst || by(value, least) < 0) least = value;
      if (isFirst || by(value, greatest) > 0) greatest = value;
      isFirst = false;
      if (isMany) return;
      const text = textOf(value);
      counts.set(text, (counts.get(text) ?? 0) + 1);
      isMany = counts.size > MOST_DIFFERENT;
      if (isMany) counts.clear();
    },
    signal,
  );
  const frequent = [...counts].map(([text, count]) => ({ text, count })).sort((a, b) => b.count - a.count);
  return {
    ...summary,
    different: isMany ? undefined : counts.size,
    least: isFirst ? undefined : lineOf(least),
    greatest: isFirst ? undefined : lineOf(greatest),
    frequent: (frequent[0]?.count ?? 0) > 1 ? frequent.slice(0, 5).map(({ text, count }) => ({ text: lineOf(text), count })) : [],
  };
}
