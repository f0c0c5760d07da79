// Questions as the service takes them: in turn, through the explore, and without the fields that the viewer may not see.

import { problemOf, type Schemas } from "../../api";
import type { Service } from "../../service";
import type { Query, Question } from "./questions";
import { Queue } from "./queue";

export type Answer = Schemas["MetricsDocument"];

/** Refusals that name a measure or a dimension by its place, and hold for that one alone. */
const OF_ONE_FIELD = ["not-allowed", "dimension-required", "missing-key"];
const PLACE = /^(measures|dimensions)\[(\d+)\]/;
/** Fields that are left out of one question at most. */
const MOST = 64;

/** An answer, with the fields that were left out of it and the code of each refusal. */
export interface Told {
  answer: Answer;
  left: Map<string, string>;
}

/** A source of answers for one explore, as one viewer. */
export class Asking {
  private readonly queue = new Queue();

  constructor(
    private readonly service: Service,
    readonly explore: string,
    readonly view: string,
    /** E-mail of the user as whom an admin looks. */
    readonly as: string | undefined,
    /** Told how many questions are open. */
    private readonly open: (change: 1 | -1) => void = () => {},
  ) {}

  get headers(): Record<string, string> {
    return this.as ? { "watershed-view-as": this.as } : {};
  }
  get path(): string {
    return `metrics/${encodeURIComponent(this.view)}/query`;
  }
  /** The body of a request. */
  form({ query, limit }: Question): Schemas["MetricsQueryForm"] {
    return { query: query as Record<string, unknown>, limit, through: `explore/${this.explore}` } as Schemas["MetricsQueryForm"];
  }

  /** Asks. A measure or dimension that is refused is left out, and the rest asked for again. */
  async ask(question: Question, signal: AbortSignal): Promise<Told> {
    this.open(1);
    try {
      return await this.whole(question, signal);
    } finally {
      this.open(-1);
    }
  }

  private async whole(question: Question, signal: AbortSignal): Promise<Told> {
    const left = new Map<string, string>();
    let asked = question;
    for (;;) {
      try {
        const answer = await this.queue.run(signal, () => this.service.ask<Answer>(this.path, this.form(asked), this.headers, signal));
        return { answer, left };
      } catch (error) {
        if (signal.aborted || left.size >= MOST) throw error;
        const { detail, at } = problemOf(error);
        const found = PLACE.exec(detail);
        const name = found && OF_ONE_FIELD.includes(at?.code ?? "") && nameAt(asked.query, found[1] as "measures" | "dimensions", Number(found[2]));
        if (!name || left.has(name)) throw error;
        left.set(name, at?.code ?? "");
        asked = { ...asked, query: without(asked.query, name) };
        if (!asked.query.measures?.length && !asked.query.dimensions?.length) throw error;
      }
    }
  }

  /** Asks for the bounds of time. */
  bounds(signal: AbortSignal): Promise<Schemas["MetricsBoundsDocument"]> {
    const path = `metrics/${encodeURIComponent(this.view)}/bounds?through=${encodeURIComponent(`explore/${this.explore}`)}`;
    return this.queue.run(signal, () => this.service.get(path, signal, this.headers));
  }
}

/** The field at a place of a query: that which a computed measure is made of. */
function nameAt(query: Query, key: "measures" | "dimensions", place: number): string | undefined {
  const one = query[key]?.[place];
  if (one === undefined || typeof one === "string") return one;
  if (!("compute" in one)) return one.name;
  const [of] = Object.values(one.compute);
  return of?.measure ?? of?.dimension;
}

/** Returns a query without a field, and without what is computed of it or sorted by it. */
function without(query: Query, name: string): Query {
  const measures = query.measures?.filter((one) => (typeof one === "string" ? one !== name : !Object.values(one.compute).some(({ measure, dimension }) => measure === name || dimension === name)));
  const dimensions = query.dimensions?.filter((one) => (typeof one === "string" ? one : one.name) !== name);
  const names = new Set([...(measures ?? []), ...(dimensions ?? [])].map((one) => (typeof one === "string" ? one : one.name)));
  const { sort } = query;
  return { ...query, ...(measures ? { measures } : {}), ...(dimensions ? { dimensions } : {}), ...(sort ? { sort: sort.filter((one) => names.has(one.name)) } : {}) };
}
