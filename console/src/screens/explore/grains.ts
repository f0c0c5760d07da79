// Grains of time that fit a range.

import { GRAINS, type Grain } from "./format/time";

/** Shortest lengths of grains, in milliseconds. */
export const LENGTHS: Record<Grain, number> = {
  second: 1_000,
  minute: 60_000,
  hour: 3_600_000,
  day: 23 * 3_600_000,
  week: 7 * 86_400_000 - 3_600_000,
  month: 28 * 86_400_000 - 3_600_000,
  quarter: 90 * 86_400_000 - 3_600_000,
  year: 365 * 86_400_000 - 3_600_000,
};

/** Buckets that a service makes at most in one question, and those that a chart has unless a person asks for more. */
const MOST = 10_000;
const FEW = 200;

/** The grains that a range may be cut to: not below the smallest, and not into more buckets than a service makes. */
export function grainsOf(length: number, smallest: Grain | undefined, most = MOST): Grain[] {
  const least = smallest === undefined ? 0 : GRAINS.indexOf(smallest);
  return GRAINS.filter((grain, place) => place >= least && length / LENGTHS[grain] <= most - 2);
}

/** The grain that a range is cut to unless a person asks for another: the smallest that leaves a chart readable. */
export function proposed(length: number, smallest: Grain | undefined): Grain {
  return grainsOf(length, smallest, FEW)[0] ?? grainsOf(length, smallest)[0] ?? "year";
}
