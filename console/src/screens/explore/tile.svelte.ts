// The answer that a part of the page shows: asked for once it is in sight, given up when it is replaced or gone.

import { untrack } from "svelte";
import { problemOf, type ProblemDocument } from "../../api";
import type { Asking, Told } from "./asking";
import type { Look } from "./look.svelte";
import type { Question } from "./questions";

/** An answer of one part. What there was stays until there is something newer. */
export class Tile {
  told = $state.raw<Told>();
  /** The question that the answer is of. */
  question = $state.raw<Question>();
  /** Where it was asked. */
  asking = $state.raw<Asking>();
  problem = $state.raw<ProblemDocument>();
  isLoading = $state(false);
  /** When the answer came, in milliseconds. */
  at = $state<number>();

  private asked: AbortController | undefined;
  private last = "";

  /** Asks, unless the same is under way or was answered in this round. */
  ask(asking: Asking, question: Question | undefined, round: number): void {
    const key = JSON.stringify([question, asking.as, asking.through, asking.view, round]);
    if (key === this.last) return;
    this.stop();
    if (!question) return;
    this.last = key;
    const asked = new AbortController();
    this.asked = asked;
    this.isLoading = true;
    const end = (done: () => void) => {
      if (asked.signal.aborted) return;
      done();
      this.isLoading = false;
      this.asked = undefined;
    };
    asking.ask(question, asked.signal).then(
      (told) => end(() => ([this.told, this.question, this.asking, this.problem, this.at] = [told, question, asking, undefined, Date.now()])),
      (error: unknown) => end(() => (this.problem = problemOf(error))),
    );
  }

  /** Asks once more for what was refused. */
  again(): void {
    this.last = "";
  }

  /** Gives up what is awaited: the service ends the work with its connection. */
  stop = (): void => {
    if (!this.asked) return;
    this.asked.abort();
    this.asked = undefined;
    this.isLoading = false;
    this.last = "";
  };

  /** Forgets what was answered: somebody else looks now. */
  clear(): void {
    this.stop();
    this.last = "";
    [this.told, this.question, this.asking, this.problem] = [undefined, undefined, undefined, undefined];
  }

  /** The place of a column in the rows; less than 0 if it is missing. Names are those of the question, in any case. */
  place(name: string): number {
    return this.told?.answer.columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase()) ?? -1;
  }
}

/** Tells what is looked at of each answer of a tile. Called while a component is made. */
export function tell(tile: Tile, look: Look): void {
  $effect(() => {
    const { told, question } = tile;
    if (told && question) untrack(() => look.heard(told, question.query));
  });
}

/** Calls back when an element comes into sight, and when it leaves it. */
export function seen(change: (isSeen: boolean) => void) {
  return (node: Element) => {
    const observer = new IntersectionObserver((entries) => change(entries.at(-1)?.isIntersecting ?? false), { rootMargin: "200px" });
    observer.observe(node);
    return () => observer.disconnect();
  };
}
