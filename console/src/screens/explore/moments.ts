// Buckets of time: their labels, their ends, and the ranges that are drawn over them.

import { atClock, instant, isZone, type Grain } from "./format/time";
import { LENGTHS } from "./grains";

const HOUR = 3_600_000;
const MONTHS: Partial<Record<Grain, number>> = { month: 1, quarter: 3, year: 12 };

/** Labels of buckets: short ones for axes, and long ones for tables and readers. */
export function labelOf(grain: Grain, zone: string): { short: (at: number) => string; long: (at: number) => string } {
  const timeZone = isZone(zone) ? zone : "UTC";
  const small = grain === "second" || grain === "minute" || grain === "hour";
  const clock: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", ...(grain === "second" ? { second: "2-digit" as const } : {}) };
  const short: Intl.DateTimeFormatOptions = grain === "year" ? { year: "numeric" } : MONTHS[grain] ? { month: "short", year: "numeric" } : { day: "numeric", month: "short", ...(small ? clock : {}) };
  const long: Intl.DateTimeFormatOptions = MONTHS[grain] ? short : { ...short, weekday: "short", year: "numeric" };
  const [a, b] = [new Intl.DateTimeFormat(undefined, { timeZone, ...short }), new Intl.DateTimeFormat(undefined, { timeZone, ...long })];
  return { short: (at) => a.format(at), long: (at) => `${grain === "week" ? "week of " : ""}${b.format(at)}` };
}

/** The end of a bucket, in milliseconds; up to an hour off where clocks change in it. */
export function endOf(at: number, grain: Grain): number {
  const months = MONTHS[grain];
  if (months) {
    // Half a day later it is the first of the month in universal time, whatever the zone.
    const middle = new Date(at + 14 * HOUR);
    return Date.UTC(middle.getUTCFullYear(), middle.getUTCMonth() + months, middle.getUTCDate(), middle.getUTCHours(), middle.getUTCMinutes()) - 14 * HOUR;
  }
  return at + (grain === "day" ? 24 * HOUR : grain === "week" ? 168 * HOUR : LENGTHS[grain]);
}

/** Returns true if a bucket was not over when the data ended: its range cuts it, or the watermark lies in it. */
export function isUnfinished(at: number, grain: Grain, rangeEnd: string, watermark: string | undefined, smallest: Grain | undefined, now = Date.now()): boolean {
  const marks = [instant(rangeEnd), now, watermark && instant(watermark) !== undefined ? instant(watermark)! + LENGTHS[smallest ?? "hour"] : undefined];
  const cut = Math.min(...marks.filter((one) => one !== undefined));
  const tolerance = LENGTHS[grain] >= LENGTHS.day ? HOUR : 0;
  return endOf(at, grain) - tolerance > cut;
}

/** The range between two instants, as short as it can be written. */
export function zoomed(start: number, end: number, zone: string): string {
  const days = [start, end].map((at) => atClock(at, zone, "second"));
  if (days.every((day) => day.endsWith("00:00:00"))) return days.map((day) => day.slice(0, 10)).join(" to ");
  return [start, end].map((at) => new Date(at).toISOString().replace(/(:00)?\.000Z$/, "Z")).join(" to ");
}
