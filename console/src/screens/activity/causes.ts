// Failures of a time, grouped by what they have in common.

import type { Schemas } from "../../api";
import { keyOf, type ResourceDocument } from "../../store/listing";

type Run = Schemas["HistoryRun"];

/** How a resource stands that failed. */
export type Fate =
  /** It has failed still. */
  | { is: "still" }
  /** A later run was well, after this edit where one led to it. */
  | { is: "mended"; at: string; origin: string | undefined }
  /** There is no such resource any more. */
  | { is: "gone" }
  /** It is well again, by a run that found nothing to do or is of another time. */
  | { is: "over" };

/** A resource that failed, with its last failure. */
export interface Failed {
  key: string;
  run: Run;
  failures: number;
  fate: Fate;
}

/** Failures with one code, of one or of many resources. */
export interface Cause {
  code: string;
  failures: number;
  first: string;
  last: string;
  resources: Failed[];
}

/**
 * Groups failures by their codes: those that are still so first, then the latest. `runs` are the latest first. The resources of a
 * cause have an order that stays while they fail again, so that what somebody reads or has the focus is not moved away.
 */
export function causesOf(runs: readonly Run[], get: (kind: string, name: string) => ResourceDocument | undefined): Cause[] {
  const causes = new Map<string, Cause & { by: Map<string, Failed> }>();
  /** The run after which a resource was well, of those that were looked at. */
  const mended = new Map<string, Run>();
  for (const run of runs) {
    const key = keyOf(run.resource);
    if (run.outcome === "done") mended.set(key, run);
    if (run.outcome !== "failed" || !run.error) continue;
    const { code } = run.error;
    const first = run.repeats?.since ?? run.started_at;
    const number = run.repeats?.runs ?? 1;
    const cause = causes.get(code) ?? { code, failures: 0, first, last: run.started_at, resources: [], by: new Map() };
    causes.set(code, cause);
    cause.failures += number;
    if (first < cause.first) cause.first = first;
    const known = cause.by.get(key);
    if (known) known.failures += number;
    else cause.by.set(key, { key, run, failures: number, fate: fate(run, mended.get(key), get) });
  }
  const isStill = ({ resources }: Cause) => resources.some(({ fate: { is } }) => is === "still");
  return [...causes.values()]
    .map(({ by, ...cause }) => ({ ...cause, resources: [...by.values()].sort((a, b) => Number(b.fate.is === "still") - Number(a.fate.is === "still") || (a.key < b.key ? -1 : 1)) }))
    .sort((a, b) => Number(isStill(b)) - Number(isStill(a)) || (a.last < b.last ? 1 : -1));
}

function fate({ resource }: Run, after: Run | undefined, get: (kind: string, name: string) => ResourceDocument | undefined): Fate {
  // Messages are hidden: what became of one is known by its runs alone.
  if (resource.kind === "notification") return after ? { is: "mended", at: after.started_at, origin: undefined } : { is: "still" };
  const now = get(resource.kind, resource.name);
  if (!now) return { is: "gone" };
  if (after) return { is: "mended", at: after.started_at, origin: after.chain?.find(({ origin }) => origin)?.origin ?? undefined };
  return now.error ? { is: "still" } : { is: "over" };
}
