// What a person asks the project to do, and what came of that.

import { problemOf, type ProblemDocument, type Schemas } from "../api";
import type { Service } from "../service";
import { count, duration, verbOf, type HandName, type VerbName } from "./words";

type ResourceName = Schemas["ResourceName"];

/** Options of a verb: the body of its request. */
export type Options = Record<string, unknown>;

/** Something that was asked for. */
export interface Asked {
  /** Counts what was asked for on this page. */
  number: number;
  verb: VerbName | HandName | "run";
  /** What it was asked of, in words. */
  subject: string;
  /** The resources; none if it is all of them. */
  targets: ResourceName[] | undefined;
  /** The body of its request, where it was of one resource. */
  options?: Options;
  /** The id by which the service and the history know it. */
  id: string | undefined;
  state: "asking" | "running" | "done" | "paused" | "failed" | "unknown";
  /** What came of it, in words. */
  told: string;
  problem: ProblemDocument | undefined;
  at: number;
}

/** A choice of resources that waits for a person's word. */
export interface Question {
  verb: VerbName;
  select: string[];
  exclude: string[];
  options: Options;
  /** What is lost, where anything is. */
  loses: string | undefined;
  touched: Schemas["Touched"] | undefined;
  /** The number that was confirmed and did not hold. */
  was: number | undefined;
  problem: ProblemDocument | undefined;
  isAsking: boolean;
}

/** The last things that were asked for; older ones are in the history. */
const KEPT = 20;
/** The waits between looks at a request, in milliseconds; the last one is repeated. */
const WAITS = [100, 200, 400, 800, 1_500, 3_000];

/** Verbs that answer at once, and not by a request. */
const AT_ONCE = new Set<string>(["pause", "resume", "cancel", "restart", "scale", "rollback", "set", "snooze", "test"]);

/** The actions of a page. */
export class Actions {
  /** What was asked for, the latest first. */
  asked = $state<Asked[]>([]);
  /** The choice that is to be confirmed. */
  question = $state<Question>();
  private next = 1;
  private ends = new AbortController();

  constructor(private readonly service: Service) {}

  /** Asks for a verb on one resource. */
  async act(verb: VerbName | HandName, resource: ResourceName, options: Options = {}): Promise<void> {
    const entry = this.note(verb, [resource]);
    entry.options = options;
    await this.send(entry, `${this.service.pathOf(resource)}/${verb}`, options);
  }

  /** Asks for everything to be brought up to date. */
  async run(): Promise<void> {
    await this.send(this.note("run", undefined), "run", {});
  }

  /** Asks what a verb would touch, and shows that for confirmation. */
  async ask(verb: VerbName, select: string[], options: Options = {}, more: { exclude?: string[]; loses?: string } = {}) {
    const exclude = more.exclude ?? [];
    const blank = { touched: undefined, was: undefined, problem: undefined, isAsking: true };
    this.question = { verb, select, exclude, options, loses: more.loses, ...blank };
    await this.look();
  }

  /** Asks again what the choice would touch. */
  look = async (): Promise<void> => {
    const asked = this.question;
    if (!asked) return;
    asked.isAsking = true;
    asked.problem = undefined;
    try {
      const touched = await this.service.post<Schemas["Touched"]>(`resources:${asked.verb}`, body(asked));
      if (this.question === asked) asked.touched = touched.body;
    } catch (error) {
      asked.problem = problemOf(error);
    } finally {
      asked.isAsking = false;
    }
  };

  /** Does what was confirmed. Where the number holds no more, shows the new one and asks again. */
  confirm = async (): Promise<void> => {
    const asked = this.question;
    const confirm = asked?.touched?.confirm;
    if (!asked || confirm === undefined) return;
    const path = `resources:${asked.verb}`;
    asked.isAsking = true;
    try {
      const answer = await this.service.post(path, { ...body(asked), confirm });
      const entry = this.note(asked.verb, asked.touched?.resources ?? []);
      this.question = undefined;
      await this.follow(entry, answer.status, answer.body);
    } catch (error) {
      const problem = problemOf(error);
      if (problem.status === 409 && this.question === asked) {
        asked.was = confirm;
        await this.look();
      } else asked.problem = problem;
    } finally {
      asked.isAsking = false;
    }
  };

  /** Leaves the question. */
  leave = (): void => {
    this.question = undefined;
  };

  /** Takes an entry off the page. */
  forget(entry: Asked) {
    this.asked = this.asked.filter(({ number }) => number !== entry.number);
  }

  /** Asks for what has failed once more. */
  async again(entry: Asked): Promise<void> {
    this.forget(entry);
    if (entry.verb === "run") await this.run();
    else if (entry.targets?.length === 1 && entry.targets[0]) await this.act(entry.verb, entry.targets[0], entry.options);
    else await this.ask(entry.verb as VerbName, (entry.targets ?? []).map(({ kind, name }) => `${kind}/${name}`));
  }

  /** Resumes what something waits for. */
  async resume(entry: Asked): Promise<void> {
    this.forget(entry);
    const names = entry.targets ?? [];
    if (names.length === 1 && names[0]) await this.act("resume", names[0]);
    else await this.ask("resume", names.map(({ kind, name }) => `${kind}/${name}`));
  }

  /** Looks at nothing any more: the page goes to another project. */
  stop(): void {
    this.ends.abort();
  }

  private note(verb: Asked["verb"], targets: ResourceName[] | undefined): Asked {
    const [first] = targets ?? [];
    const one = targets?.length === 1 && first ? `${first.kind}/${first.name}` : undefined;
    const subject = one ?? (targets ? count(targets.length, "resource") : "all resources");
    const blank = { id: undefined, problem: undefined, told: "" };
    const entry: Asked = { number: this.next++, verb, subject, targets, state: "asking", at: Date.now(), ...blank };
    // What is asked of the same again takes the place of what was: a cancelled run needs no word of its own.
    const isOver = (one: Asked) => one.verb === verb || verb === "cancel" || !["asking", "running"].includes(one.state);
    this.asked = [entry, ...this.asked.filter((one) => one.subject !== subject || !isOver(one))].slice(0, KEPT);
    return this.asked[0] ?? entry;
  }

  private async send(entry: Asked, path: string, options: Options): Promise<void> {
    try {
      const answer = await this.service.post(path, options);
      await this.follow(entry, answer.status, answer.body);
    } catch (error) {
      this.fail(entry, error);
    }
  }

  /** Tells what came of something: at once, or as soon as its request has ended. */
  private async follow(entry: Asked, status: number, answer: unknown): Promise<void> {
    if (status !== 202 || AT_ONCE.has(entry.verb)) {
      const [state, told] = outcomeAtOnce(entry, answer);
      entry.state = state;
      entry.told = told;
      return;
    }
    const { id } = answer as Schemas["Accepted"];
    entry.id = id;
    entry.state = "running";
    for (let look = 0; !this.ends.signal.aborted; look++) {
      await new Promise((done) => setTimeout(done, WAITS[Math.min(look, WAITS.length - 1)]));
      try {
        const request = await this.service.get<Schemas["RequestDocument"]>(`requests/${id}`, this.ends.signal);
        if (request.state === "running") continue;
        if (request.problem) this.fail(entry, { problem: request.problem });
        else {
          const [state, told] = outcomeOf(entry, request.document as Schemas["RunDocument"] | null);
          entry.state = state;
          entry.told = told;
        }
        return;
      } catch (error) {
        if (this.ends.signal.aborted) return;
        const problem = problemOf(error);
        // The work goes on without us; a service that comes back still answers for it.
        if (problem.retryable) continue;
        entry.state = "unknown";
        entry.problem = problem;
        return;
      }
    }
  }

  private fail(entry: Asked, error: unknown) {
    entry.state = "failed";
    entry.problem = problemOf(error);
  }
}

function body({ select, exclude, options }: Question): Options {
  return { ...options, select, ...(exclude.length > 0 && { exclude }) };
}

/** Reads the answer of a verb that is done with its answer. */
function outcomeAtOnce(entry: Asked, answer: unknown): [Asked["state"], string] {
  if (entry.verb === "test") {
    const { summary, models } = answer as Schemas["TestsDocument"];
    const ran = summary.passed + summary.warned + summary.failed;
    if (models.every(({ tests }) => tests.length === 0)) return ["done", "has no tests"];
    const wrong = summary.failed + summary.warned;
    return wrong === 0 ? ["done", `${count(ran, "test")} passed`] : ["failed", `${wrong} of ${count(ran, "test")} failed`];
  }
  const operated = (answer as Schemas["OperateDocument"]).resources;
  const changed = operated.filter(({ changed }) => changed).length;
  const done = entry.verb === "run" ? "done" : verbOf(entry.verb).done;
  if (operated.length === 1) {
    const [one] = operated;
    if (one?.changed) return ["done", one.detail ? `${done}: ${one.detail}` : done];
    return ["done", entry.verb === "cancel" ? "nothing ran" : `was ${done} already`];
  }
  const rest = operated.length - changed;
  return ["done", `${changed} ${done}${rest > 0 ? `, ${rest} unchanged` : ""}`];
}

/** Reads what a request came to. */
function outcomeOf(entry: Asked, document: Schemas["RunDocument"] | null): [Asked["state"], string] {
  if (!document) return ["done", "done; what came of it is in the history"];
  if (document.not_applied) return ["failed", document.not_applied.message];
  const names = entry.targets && new Set(entry.targets.map(({ kind, name }) => `${kind}/${name}`));
  const touched = document.resources.filter(({ kind, name }) => !names || names.has(`${kind}/${name}`));
  const took = duration(document.duration_ms);
  const [one] = touched;
  if (touched.length === 1 && one) {
    if (one.error) return ["failed", one.error.message];
    if (one.health === "blocked") return ["failed", "is blocked by what it reads"];
    if (isHeld(one)) return ["paused", "paused: it waits for resume"];
    const rows = (one.result as { rows?: unknown } | null | undefined)?.rows;
    const size = typeof rows === "number" ? `, ${count(rows, "row")}` : "";
    return ["done", `${one.work !== "none" ? one.work : "nothing to do"}${size}, ${took}`];
  }
  const words = new Map<string, number>();
  for (const of of touched) {
    const { error, health, work } = of;
    const word = error ? "failed" : health === "blocked" ? "blocked" : isHeld(of) ? "paused" : work !== "none" ? work : "unchanged";
    words.set(word, (words.get(word) ?? 0) + 1);
  }
  const isWell = !words.has("failed") && !words.has("blocked");
  const counts = [...words].map(([word, number]) => `${number.toLocaleString()} ${word}`);
  const state = !isWell ? "failed" : words.has("paused") ? "paused" : "done";
  return [state, [...counts, took].join(", ")];
}

/** Returns true if nothing was done for a resource because it is paused. */
function isHeld({ health, work }: Schemas["ResourceDocument"]): boolean {
  return health === "paused" && work === "none";
}
