// The columns of all outputs, for who looks for one: told in one answer, and asked for again after a build.

import type { Service } from "../../service";
import type { Store } from "../../store";
import { outputOf, quoted } from "./outputs.svelte";

/** A column of an output, with a question for it. */
export interface ColumnOf {
  table: string;
  column: string;
  type: string;
  question: string;
}

/** Columns that are kept: nobody looks through more by letters. */
const MOST = 100_000;
let kept: { of: Service; stamp: string; columns: ColumnOf[] } | undefined;

/** Returns them. */
export async function columnsOf(service: Service, store: Store): Promise<ColumnOf[]> {
  const stamp = store.resources.flatMap((one) => outputOf(one)?.stamp ?? []).join(";");
  if (kept?.of === service && kept.stamp === stamp) return kept.columns;
  const { rows } = await service.ask<{ rows: [string, string[], string[]][] }>("query", { sql: "SHOW ALL TABLES", timeout_ms: 10_000 });
  const columns: ColumnOf[] = [];
  for (const [table, names, types] of rows) {
    if (columns.length > MOST) break;
    names.forEach((column, place) => columns.push({ table, column, type: (types[place] ?? "").toLowerCase(), question: `SELECT ${quoted(column)}\nFROM ${quoted(table)}\nLIMIT 100` }));
  }
  kept = { of: service, stamp, columns };
  return columns;
}
