// The order of rows. It moves only when a person asks, or looks elsewhere.

import { standing } from "../../parts/standing";
import { keyOf, type ResourceDocument } from "../../store/listing";

/** What rows are ordered by. */
export type By = "standing" | "name" | "run";

const comparing = new Intl.Collator(undefined, { numeric: true });

function began({ last_run }: ResourceDocument): number {
  return last_run?.started_at ? Date.parse(last_run.started_at) : 0;
}

const COMPARE: Record<By, (a: ResourceDocument, b: ResourceDocument) => number> = {
  standing: (a, b) => standing(a).rank - standing(b).rank,
  name: () => 0,
  run: (a, b) => began(b) - began(a),
};

/** Returns the keys of resources in order. */
export function ordered(resources: ResourceDocument[], by: By): string[] {
  const compare = COMPARE[by];
  const rows = resources.toSorted((a, b) => compare(a, b) || comparing.compare(a.name, b.name) || comparing.compare(a.kind, b.kind));
  return rows.map(keyOf);
}

/** Returns rows in an order that was made before: what is new comes last. */
export function arranged(resources: ResourceDocument[], order: readonly string[]): ResourceDocument[] {
  const byKey = new Map(resources.map((one) => [keyOf(one), one]));
  const rows: ResourceDocument[] = [];
  for (const key of order) {
    const row = byKey.get(key);
    if (row) rows.push(row);
    byKey.delete(key);
  }
  return [...rows, ...byKey.values()];
}
