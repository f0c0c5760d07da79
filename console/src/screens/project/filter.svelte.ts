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

/** A word that may be a part of names, and says nothing in the language of selections. */
const PLAIN_WORD = /^[\w.\-]+$/;

/** What words stand for at present. */
export class Filter {
  /** The keys that the words stand for; none without words, or before the first answer. */
  keys = $state.raw<ReadonlySet<string>>();
  problem = $state.raw<ProblemDocument>();
  isAsking = $state(false);

  /** The selection that was answered: the words, or names that contain them; none without words, or after a mistake. */
  answered = $state<string>();

  private words = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  private asked: AbortController | undefined;

  constructor(private readonly service: Service) {}

  /** Takes other words. What they stood for before stays until there is an answer. */
  set(words: string): void {
    this.words = words.trim();
    this.stop();
    if (this.words === "") {
      [this.keys, this.problem, this.isAsking, this.answered] = [undefined, undefined, false, undefined];
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
      [this.keys, this.problem, this.answered] = [await this.keysOf(this.words, asked.signal), undefined, this.words];
    } catch (error) {
      if (asked.signal.aborted) return;
      const parts = PLAIN_WORD.test(this.words) && problemOf(error).code === "bad-argument" ? `*${this.words}*` : undefined;
      const keys = parts && (await this.keysOf(parts, asked.signal).catch(() => undefined));
      if (asked.signal.aborted) return;
      this.answered = keys ? parts : undefined;
      this.problem = keys ? undefined : problemOf(error);
      if (keys) this.keys = keys;
    }
    [this.asked, this.isAsking] = [undefined, false];
  };

  private async keysOf(words: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
    const keys = new Set<string>();
    const query = `resources?select=${encodeURIComponent(words)}&fields=kind&fields=name&limit=${PAGE}`;
    for (let page = ""; ; ) {
      const answer = await this.service.get<Schemas["Page"]>(query + page, signal);
      for (const of of answer.resources as { kind: string; name: string }[]) keys.add(keyOf(of));
      if (!answer.next) return keys;
      page = `&page=${encodeURIComponent(answer.next)}`;
    }
  }
}
