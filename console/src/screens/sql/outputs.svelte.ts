// The outputs of a project and their columns, which are asked for when an output is named, and kept until its next build.

import { problemOf, type ProblemDocument, type Schemas } from "../../api";
import type { Column } from "../../grid/cutter";
import type { Service } from "../../service";
import type { Store } from "../../store";

/** Columns that are kept at most; the oldest output goes first. */
const MOST_KEPT = 200;
/** Questions for columns that are under way at once. */
const MOST_ASKED = 2;

/** An output. */
export interface Output {
  /** The table or view, as the engine has it. */
  table: string;
  kind: string;
  name: string;
  /** Changes with each build. */
  stamp: string;
}

/** What is known of an output's columns. */
export interface Known {
  stamp: string;
  columns: Column[];
  problem?: ProblemDocument;
}

/** Returns the output of a resource; none if it has none. */
export function outputOf({ kind, name, result, spec_version, state_version, last_run }: Schemas["ResourceDocument"]): Output | undefined {
  const table = (result as { table?: unknown } | null | undefined)?.table;
  return typeof table === "string" && table !== "" ? { table, kind, name, stamp: [spec_version, state_version, last_run?.id].join() } : undefined;
}

/** Writes a name as SQL needs it. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}
const RESERVED = new Set("all and any as asc both case cast check collate column constraint create default desc describe distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral leading limit not null offset on only or order pivot placing primary qualify references returning select show some summarize symmetric table then to trailing true union unique unpivot using variadic when where window with".split(" "));

/** Returns each table once, by name: a metrics view names that of its model, which is the model's. */
export function tablesOf(outputs: Output[]): Output[] {
  const found = new Map<string, Output>();
  for (const one of outputs) {
    const key = one.table.toLowerCase();
    const known = found.get(key);
    if (!known || known.kind === "metrics_view") found.set(key, one);
  }
  return [...found.values()].sort((a, b) => (a.table < b.table ? -1 : 1));
}

/** The outputs. */
export class Outputs {
  all = $derived.by((): Output[] => tablesOf(this.store.resources.flatMap((one) => outputOf(one) ?? [])));
  private byTable = $derived(new Map(this.all.map((one) => [one.table.toLowerCase(), one])));
  /** Counts answers, by which what is drawn of them is drawn anew. */
  private version = $state(0);
  private readonly kept = new Map<string, Known>();
  private readonly asked = new Map<string, Promise<Known | undefined>>();
  private readonly ended = new AbortController();

  constructor(
    private readonly service: Service,
    private readonly store: Store,
  ) {}

  get(table: string): Output | undefined {
    return this.byTable.get(table.toLowerCase());
  }

  /** What is known of an output's columns now. */
  known(output: Output): Known | undefined {
    void this.version;
    return this.kept.get(output.table);
  }

  /** Returns the columns of an output; asks where they are unknown or of another build. */
  async columns(table: string, signal?: AbortSignal): Promise<Column[]> {
    const output = this.get(table);
    if (!output) return [];
    const kept = this.kept.get(output.table);
    if (kept?.stamp === output.stamp) return kept.columns;
    const found = await (this.asked.get(output.table) ?? (this.asked.size < MOST_ASKED ? this.ask(output, signal) : undefined));
    return found?.columns ?? [];
  }

  private ask(output: Output, signal?: AbortSignal): Promise<Known | undefined> {
    const given = signal ? AbortSignal.any([signal, this.ended.signal]) : this.ended.signal;
    const asking = this.service
      .ask<{ rows: unknown[][] }>("query", { sql: `DESCRIBE ${quoted(output.table)}`, limit: 10_000, timeout_ms: 10_000 }, {}, given)
      .then(
        ({ rows }): Known => ({ stamp: output.stamp, columns: rows.map(([name, type]) => ({ name: String(name), type: String(type) })) }),
        (error: unknown): Known | undefined => (given.aborted ? undefined : { stamp: output.stamp, columns: [], problem: problemOf(error) }),
      )
      .then((known) => {
        this.asked.delete(output.table);
        if (!known) return undefined;
        this.kept.delete(output.table);
        this.kept.set(output.table, known);
        for (const [oldest] of this.kept) {
          if (this.kept.size <= MOST_KEPT) break;
          this.kept.delete(oldest);
        }
        this.version += 1;
        return known;
      });
    this.asked.set(output.table, asking);
    return asking;
  }

  /** Gives up what is asked. */
  stop = (): void => this.ended.abort();
}
