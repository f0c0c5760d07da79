// Times by the clock of a zone, as short as their grain allows.

/** Grains of time, the smallest first. */
export const GRAINS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"] as const;
export type Grain = (typeof GRAINS)[number];

const clocks = new Map<string, Intl.DateTimeFormat>();

/** The clock of a zone; that of universal time where the browser does not know the zone. */
function clock(zone: string): Intl.DateTimeFormat {
  const known = clocks.get(zone);
  if (known) return known;
  const form = (timeZone: string) =>
    new Intl.DateTimeFormat("en-GB", {
      timeZone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  const made = isZone(zone) ? form(zone) : form("UTC");
  clocks.set(zone, made);
  return made;
}

/** Returns true if the browser knows a zone. */
export function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

/** Reads a time as documents have it, in milliseconds: with an offset, or in universal time. A day is its first instant. */
export function instant(text: string): number | undefined {
  const found = /^(\d{4,6}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?))?\s*(Z|[+-]\d\d(?::?\d\d)?)?$/i.exec(text.trim());
  if (!found) return undefined;
  const [, day, time, offset = "Z"] = found;
  const zone = /^z$/i.test(offset) ? "Z" : offset.length === 3 ? `${offset}:00` : offset.replace(/^(...)(\d\d)$/, "$1:$2");
  const at = Date.parse(`${day}T${time ?? "00:00:00"}${zone}`);
  return Number.isNaN(at) ? undefined : at;
}

/** Formats an instant, in milliseconds: the day, and for small grains the time of day. */
export function atClock(at: number, zone: string, grain: Grain): string {
  const part: Record<string, string> = {};
  for (const { type, value } of clock(zone).formatToParts(at)) part[type] = value;
  const day = `${(part.year ?? "").padStart(4, "0")}-${part.month}-${part.day}`;
  if (grain === "second") return `${day} ${part.hour}:${part.minute}:${part.second}`;
  return grain === "minute" || grain === "hour" ? `${day} ${part.hour}:${part.minute}` : day;
}

/** Formats a time as documents have it. Days and other texts stay as they are. */
export function timeText(text: string, zone: string, grain: Grain): string {
  if (!text.includes(":")) return text;
  const at = instant(text);
  return at === undefined ? text : atClock(at, zone, grain);
}

/** Formats the ends of a range: days where both lie at midnight, else minutes or seconds. */
export function span(range: { start: string; end: string }, zone: string): string {
  const ends = [instant(range.start), instant(range.end)];
  if (ends.some((end) => end === undefined)) return `${range.start} to ${range.end}`;
  const all = ends.map((end) => atClock(end!, zone, "second"));
  const cut = all.every((end) => end.endsWith("00:00:00")) ? 10 : all.every((end) => end.endsWith(":00")) ? 16 : 19;
  return all.map((end) => end.slice(0, cut)).join(" to ");
}
