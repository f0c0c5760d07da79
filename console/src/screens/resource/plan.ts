// A plan as people read it: what would be done and why, and what is lost. One that was read holds as long as it stays the same.

import type { Schemas } from "../../api";
import { count, duration } from "../../parts/words";

type Step = Schemas["PlanStep"];
type Document = Schemas["PlanDocument"];

/** What would be done to a resource. */
export const WORKS: Record<Schemas["PlanWork"], string> = {
  build: "is built",
  restore: "comes back from the trash",
  add: "gets new rows",
  rename: "gets another name",
  drop: "is dropped",
  check: "is looked at",
  blocked: "is blocked",
  failed: "fails",
  none: "nothing to do",
};

/** Returns what decides whether a plan is still the one that was read: its steps, and what they were judged by. */
export function fingerprint(plan: Document, version: number): string {
  const { steps } = plan;
  // The last build's duration is no part of what is agreed to.
  return JSON.stringify([version, steps.map(({ estimate_ms, ...step }) => step)]);
}

/** Returns what is lost by a step; nothing where no row is. */
export function loss({ destructive, kept_ms, work }: Step): string | undefined {
  if (!destructive) return undefined;
  const what = work === "drop" ? "Its table is dropped" : "Its rows are thrown away";
  return kept_ms != null ? `${what}; the trash keeps them for ${duration(kept_ms)}, if it has room.` : `${what}, and nothing brings them back.`;
}

/** Returns the words above a plan: how much would be done, and how long that took the last time. */
export function summary({ builds, restores, drops, renames, failures, checks, estimate_ms }: Schemas["PlanSummary"]): string {
  const numbers: [number, string][] = [
    [builds, "built"],
    [restores, "restored"],
    [drops, "dropped"],
    [renames, "renamed"],
    [failures, "failed or blocked"],
    [checks, "looked at"],
  ];
  const words = numbers.filter(([number]) => number > 0).map(([number, word]) => `${number.toLocaleString()} ${word}`);
  if (words.length === 0) return "Nothing would be done.";
  return `Would be: ${words.join(", ")}${estimate_ms > 0 ? `; the last time that took ${duration(estimate_ms)}` : ""}.`;
}

/** Returns what approving a held edit does, in numbers that are known before it. */
export function approval(resource: Pick<Schemas["ResourceDocument"], "result">, blocked: number): string {
  const { rows, table } = (resource.result ?? {}) as { rows?: number | null; table?: string | null };
  const those = typeof rows === "number" ? count(rows, "row") : "the rows";
  const after = blocked > 0 ? ` Then ${count(blocked, "resource")} that ${blocked === 1 ? "waits" : "wait"} for it follow${blocked === 1 ? "s" : ""}.` : "";
  return `Throws away ${those}${table ? ` of ${table}` : ""}, and makes them anew by the new definition.${after}`;
}
