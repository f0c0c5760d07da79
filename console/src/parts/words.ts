// What words of documents say to people.

import type { Schemas } from "../api";

/** Why a run was asked for. */
export const REASONS: Record<Schemas["Reason"], string> = {
  start: "the service started",
  created: "it was declared",
  edited: "it was edited",
  renamed: "it was renamed",
  deleted: "it was deleted",
  ref_changed: "what it names appeared or went",
  parent: "what it reads was run",
  requested: "somebody asked",
  refresh: "a refresh was asked for",
  retrigger: "it was due",
  resync: "a regular look was due",
  retry: "it was tried again",
  nudge: "something outside moved",
  recovered: "what was in its way is gone",
};

/** How a run ended. */
export const OUTCOMES: Record<Schemas["Outcome"], string> = {
  done: "done",
  failed: "failed",
  skipped: "skipped",
  cancelled: "cancelled",
  unchanged: "nothing to do",
  not_selected: "not selected",
};

/** A verb that is done to resources: its button, what it does, and how it is told afterwards. */
export interface Verb {
  button: string;
  does: string;
  done: string;
}

/** Verbs of resources. */
export const VERBS = {
  reconcile: { button: "Reconcile", does: "Looks again, and does what is needed", done: "reconciled" },
  refresh: { button: "Refresh", does: "Does the work again, even if nothing changed", done: "refreshed" },
  retry: { button: "Retry", does: "Tries again now what has failed", done: "tried again" },
  pause: { button: "Pause", does: "Keeps it from being run until it is resumed", done: "paused" },
  resume: { button: "Resume", does: "Lets it run again", done: "resumed" },
  cancel: { button: "Cancel", does: "Ends the run that is under way", done: "cancelled" },
  approve: { button: "Approve", does: "Lets an edit through that is held, and discards what it says", done: "approved" },
  restart: { button: "Restart", does: "Starts the service anew", done: "restarted" },
  test: { button: "Test", does: "Runs its tests, and builds nothing", done: "tested" },
} satisfies Record<string, Verb>;

/** The name of a verb. */
export type VerbName = keyof typeof VERBS;

/** Verbs that need more than the name of a resource, and are asked about where that is said. */
export const HANDS = {
  scale: { button: "Scale", does: "Changes the number of copies", done: "scaled" },
  rollback: { button: "Roll back", does: "Goes back to an earlier release", done: "rolled back" },
  set: { button: "Set", does: "Sets the stage that is desired", done: "set" },
  snooze: { button: "Snooze", does: "Tells nobody for a while", done: "snoozed" },
  evaluate: { button: "Evaluate", does: "Evaluates the alert now", done: "evaluated" },
} satisfies Record<string, Verb>;

/** The name of such a verb. */
export type HandName = keyof typeof HANDS;

/** Returns a verb by its name. */
export function verbOf(name: VerbName | HandName): Verb {
  return { ...VERBS, ...HANDS }[name];
}

/** A duration for people. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : count(Math.floor(hours / 24), "day");
}

// They cost several milliseconds each, which no page waits for before it needs them.
let relatives: Intl.RelativeTimeFormat | undefined;
let absolutes: Intl.DateTimeFormat | undefined;

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
  ["second", 1_000],
];

/** A moment as seen from another, both in milliseconds. */
export function relative(at: number, now: number): string {
  const [unit, step] = STEPS.find(([, step]) => Math.abs(at - now) >= step) ?? ["second", 1_000];
  relatives ??= new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });
  return relatives.format(Math.trunc((at - now) / step), unit);
}

/** A moment in full, its time zone written out. */
export function absolute(at: number): string {
  absolutes ??= new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  return absolutes.format(at);
}

const SIZES = ["", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** A size in bytes for people. */
export function size(bytes: number): string {
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), SIZES.length - 1);
  if (step === 0) return count(bytes, "byte");
  const style = { style: "unit", unit: SIZES[step] ?? "", unitDisplay: "short", maximumFractionDigits: 1 } as const;
  return (bytes / 1_000 ** step).toLocaleString(undefined, style);
}

/** A number with its noun. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
}
