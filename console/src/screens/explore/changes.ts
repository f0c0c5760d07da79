// Changes of measures: their direction is that of the difference, also where what was before is below zero.

import { numberOf } from "./format";
import { BEFORE, CHANGE } from "./questions";

/**
 * Returns a change as a share of the size of what was before. The service divides by what was before itself, whose sign turns
 * the change round where it is below zero. What is no number stays.
 */
export function changed(ratio: unknown, now: unknown, before: unknown): unknown {
  const [share, value, base] = [numberOf(ratio), numberOf(now), numberOf(before)];
  if (share === undefined || value === undefined || base === undefined) return ratio;
  return share * (value - base) < 0 ? -share : ratio;
}

/** Returns what reads the value of a column from a row: of a change, what `changed` makes of it. */
export function reading(columns: { name: string }[], place: number): (row: unknown[]) => unknown {
  const name = columns[place]?.name ?? "";
  const now = columns.findIndex((one) => CHANGE(one.name) === name);
  const before = now < 0 ? -1 : columns.findIndex((one) => one.name === BEFORE(columns[now]!.name));
  return before < 0 ? (row) => row[place] : (row) => changed(row[place], row[now], row[before]);
}
