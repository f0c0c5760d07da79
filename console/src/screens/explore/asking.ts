// Questions as the service takes them: in turn, through an explore or a canvas, and without the fields that the viewer may not see.

import { problemOf, type Schemas } from "../../api";
import type { Service } from "../../service";
import type { Once } from "./once";
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

/** What the questions of one page share, whatever views they go to. */
export interface Together {
  /** Turns of questions. */
  queue?: Queue;
  /** Answers that equal questions have in common. */
  once?: Once<Told>;
  /** Told how many questions are open. */
  open?: (change: 1 | -1) => void;
}

/** A source of answers of one view, as one viewer. */
export class Asking {
  private readonly queue: Queue;

  constructor(
    private readonly service: Service,
    /** Explore or canvas whose rules apply too, as `kind/name`. */
    readonly through: string,
    readonly view: string,
    /** E-mail of the user as whom an admin looks. */
    readonly as: string | undefined,
    private readonly together: Together = {},
  ) {
    this.queue = together.queue ?? new Queue();
  }

  get headers(): Record<string, string> {
    return this.as ? { "watershed-view-as": this.as } : {};
  }
  get path(): string {
    return `metrics/${encodeURIComponent(this.view)}/query`;
  }
  /** The body of a request. */
  form({ query, limit, where }: Question): Schemas["MetricsQueryForm"] {
    return { query: query as Record<string, unknown>, ...(where ? { where } : {}), limit, through: this.through } as Schemas["MetricsQueryForm"];
  }

  /** Asks. A measure or dimension that is refused is left out, and the rest asked for again. */
  async ask(question: Question, signal: AbortSignal): Promise<Told> {
    const { once, open } = this.together;
    open?.(1);
    try {
      if (!once) return await this.whole(question, signal);
      return await once.run(JSON.stringify([this.view, this.as, question]), signal, (shared) => this.whole(question, shared));
    } finally {
      open?.(-1);
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
    const path = `metrics/${encodeURIComponent(this.view)}/bounds?through=${encodeURIComponent(this.through)}`;
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
