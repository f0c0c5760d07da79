// What people were told, what waits to be told, and what is due next.

import type { Schemas } from "../../api";
import { found, type Found, type Message } from "../../parts/verdict";

type Document = Schemas["ResourceDocument"];

/** An alert with what it found. */
export interface Alert {
  document: Document;
  is: Found;
  /** The end of its snooze, in milliseconds; none where it is not snoozed. */
  snoozed: number | undefined;
}

/** Verdicts, what needs a person first. */
const VERDICTS = ["fail", "error", "recovered", "pass"];
const rankOf = (verdict: string) => (VERDICTS.indexOf(verdict) + VERDICTS.length + 1) % (VERDICTS.length + 1);

/** Returns the alerts among resources: those that fail come first, and snoozed ones after the others of their verdict. */
export function alertsOf(resources: readonly Document[], now: number): Alert[] {
  const alerts = resources.flatMap((document): Alert[] => {
    const is = found(document);
    if (!is) return [];
    const until = is.snoozed_until ? Date.parse(is.snoozed_until) : 0;
    return [{ document, is, snoozed: until > now ? until : undefined }];
  });
  const byName = (a: Alert, b: Alert) => (a.document.name < b.document.name ? -1 : 1);
  return alerts.sort((a, b) => rankOf(a.is.verdict) - rankOf(b.is.verdict) || Number(!!a.snoozed) - Number(!!b.snoozed) || byName(a, b));
}

/** A message with its key. */
export interface Sent extends Message {
  key: string;
  next_attempt: string | null;
  sender: { kind: string; name: string } | null;
}

/** Returns the standing of a message in a word; late is what was tried in vain, and is tried again. */
export function standingOf({ standing, attempts }: Pick<Message, "standing" | "attempts">): "dead" | "late" | "waiting" | "delivered" {
  return standing === "waiting" && attempts > 0 ? "late" : standing;
}

const STANDINGS = ["dead", "late", "waiting", "delivered"];

/** Returns the messages among resources: those that no one got first, of the others the latest. */
export function messagesOf(resources: readonly Document[]): Sent[] {
  const all = resources.flatMap(({ kind, name, result }): Sent[] => {
    const is = result as Omit<Sent, "key"> | null | undefined;
    return kind === "notification" && typeof is?.standing === "string" ? [{ ...is, key: name }] : [];
  });
  const rank = (one: Sent) => STANDINGS.indexOf(standingOf(one));
  return all.sort((a, b) => rank(a) - rank(b) || ((a.at ?? "") < (b.at ?? "") ? 1 : (a.at ?? "") > (b.at ?? "") ? -1 : a.key < b.key ? -1 : 1));
}

/** A file of a report. */
export interface Made {
  at: string;
  moment: string;
  file: string | null;
  rows: number | null;
  bytes: number | null;
  error: string | null;
  sent: string[];
}

/** Returns the files of a report, the latest first; none of other resources. */
export function filesOf({ kind, result }: Pick<Document, "kind" | "result">): Made[] {
  const history = (result as { history?: Made[] } | null | undefined)?.history;
  return kind === "report" && Array.isArray(history) ? history.toSorted((a, b) => (a.at < b.at ? 1 : -1)) : [];
}

/** The time ahead that is shown, in milliseconds. */
export const AHEAD = 24 * 3_600_000;
/** The time after which what is due and does not run is overdue, in milliseconds. */
const LATE = 60_000;

/** Something that is due. */
export interface Due {
  document: Document;
  at: number;
  what: string;
  isOverdue: boolean;
  isPaused: boolean;
}

interface Clock {
  opening: string;
  start: string;
  end: string;
}

/** Returns what is due within the next 24 hours, and what should have been, the earliest first: runs by schedule, and windows. */
export function dueOf(resources: readonly Document[], now: number): Due[] {
  const due: Due[] = [];
  for (const document of resources) {
    const isPaused = document.health === "paused";
    const note = (moment: string | null | undefined, what: string, isRun = false) => {
      const at = moment ? Date.parse(moment) : Number.NaN;
      if (!(at <= now + AHEAD)) return;
      const isOverdue = isRun && at < now - LATE && document.phase !== "running";
      if (at >= now - LATE || isOverdue) due.push({ document, at, what, isOverdue: isOverdue && !isPaused, isPaused });
    };
    const { window } = (document.result ?? {}) as { window?: Clock };
    if (window) {
      note(window.opening, "window opens");
      note(window.start, "window begins");
      note(window.end, "window ends");
    } else note(document.next_run_at, "runs", true);
  }
  return due.sort((a, b) => a.at - b.at || (a.document.name < b.document.name ? -1 : 1));
}

/** Returns the time zone that a resource's schedule or window is written in; none where it has none of its own. */
export function zoneOf(spec: unknown): string | undefined {
  const { refresh_schedule, schedule, window } = (spec ?? {}) as Record<string, { time_zone?: unknown } | null | undefined>;
  const zone = [window, schedule, refresh_schedule].map((one) => one?.time_zone).find((zone) => typeof zone === "string" && zone !== "");
  return typeof zone === "string" ? zone : undefined;
}

/** Returns a moment on the clock of a zone, which is written out; none where the browser does not know the zone. */
export function clock(at: number, timeZone?: string): string | undefined {
  try {
    return new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short", ...(timeZone && { timeZone }) }).format(at);
  } catch {
    return undefined;
  }
}
