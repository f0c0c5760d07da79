// The filter of a project's resources: the words of `--select`, which the service judges, and the standings that are wanted.

import { problemOf, type ProblemDocument, type Schemas } from "../../api";
import type { Service } from "../../service";
import { keyOf } from "../../store/listing";

/** Names on a page of the answer, the most that the service gives. */
const PAGE = 1_000;
/** The time between a key and the question, in milliseconds. */
const AFTER_TYPING = 250;
/** The time between two questions about the same words while the project changes, in milliseconds. */
const BETWEEN = 2_000;

/** What words stand for at present. */
export class Filter {
  /** The keys that the words stand for; none without words, or before the first answer. */
  keys = $state.raw<ReadonlySet<string>>();
  problem = $state.raw<ProblemDocument>();
  isAsking = $state(false);

  private words = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked: AbortController | undefined;

  constructor(private readonly service: Service) {}

  /** Takes other words. What they stood for before stays until there is an answer. */
  set(words: string): void {
    this.words = words.trim();
    this.stop();
    if (this.words === "") {
      [this.keys, this.problem, this.isAsking] = [undefined, undefined, false];
      return;
    }
    this.isAsking = true;
    this.timer = setTimeout(this.ask, this.keys === undefined ? 0 : AFTER_TYPING);
  }

  /** Asks again soon: the project has changed. */
  refresh(): void {
    if (this.words === "" || this.timer !== undefined || this.asked) return;
    this.timer = setTimeout(this.ask, BETWEEN);
  }

  /** Asks nothing more. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asked?.abort();
    this.asked = undefined;
  }

  private ask = async (): Promise<void> => {
    const asked = new AbortController();
    [this.timer, this.asked] = [undefined, asked];
    try {
      const keys = new Set<string>();
      const query = `resources?select=${encodeURIComponent(this.words)}&fields=kind&fields=name&limit=${PAGE}`;
      for (let page = ""; ; ) {
        const answer = await this.service.get<Schemas["Page"]>(query + page, asked.signal);
        for (const of of answer.resources as { kind: string; name: string }[]) keys.add(keyOf(of));
        if (!answer.next) break;
        page = `&page=${encodeURIComponent(answer.next)}`;
      }
      [this.keys, this.problem] = [keys, undefined];
    } catch (error) {
      if (asked.signal.aborted) return;
      this.problem = problemOf(error);
    }
    [this.asked, this.isAsking] = [undefined, false];
  };
}
