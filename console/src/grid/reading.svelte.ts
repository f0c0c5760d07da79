// The reading of an answer: its rows as they come, and how it ended. What is given up here ends on the service too.

import { made, problemOf, type ProblemDocument } from "../api";
import { Cutter, Unreadable, type Column } from "./cutter";
import { Rows } from "./rows";

/** Rows and bytes at which the page stops to read: more belongs into a file. */
export const MOST_ROWS = 1_000_000;
export const MOST_BYTES = 256 << 20;
/** The time between two looks at rows that stream, in milliseconds. */
const LOOK = 50;
/** Rows for each millisecond more between two looks: a list of many takes longer to be measured. */
const SLOWER = 4_000;

/**
 * How a reading stands: `whole` has all rows, `cut` those up to a limit that was asked for, `full` those that a page takes, `left` those
 * that were there when a person gave it up, and `part` those before something went wrong.
 */
export type Standing = "none" | "asked" | "reading" | "whole" | "cut" | "full" | "left" | "part" | "refused";

/** A source of an answer: it is given up by the signal. */
export type Ask = (signal: AbortSignal) => Promise<Response>;

/** Waits until the page was painted; not for long where nobody looks at it. */
function painted(): Promise<void> {
  return new Promise((go) => {
    const late = setTimeout(go, 100);
    globalThis.requestAnimationFrame?.(() => setTimeout(() => (clearTimeout(late), go())));
  });
}

/** An answer that is read, or was. */
export class Reading {
  standing = $state<Standing>("none");
  /** What there is; replaced by every question. */
  rows = $state.raw<Rows>();
  /** The number of rows that are drawn: it moves at most 20 times a second. */
  count = $state(0);
  /** The reason why there are no rows, or no more of them. */
  problem = $state.raw<ProblemDocument>();
  /** When it was asked, and when it ended, in milliseconds. */
  since = $state(0);
  until = $state<number>();

  private asked: AbortController | undefined;

  constructor(
    private readonly mostRows = MOST_ROWS,
    private readonly mostBytes = MOST_BYTES,
  ) {}

  get isOpen(): boolean {
    return this.standing === "asked" || this.standing === "reading";
  }
  get columns(): Column[] {
    return this.rows?.columns ?? [];
  }

  /** Asks. What was read before is given up. */
  start = async (ask: Ask): Promise<void> => {
    this.asked?.abort();
    const asked = new AbortController();
    this.asked = asked;
    [this.standing, this.rows, this.count, this.problem, this.since, this.until] = ["asked", undefined, 0, undefined, Date.now(), undefined];
    const end = (standing: Standing, problem?: ProblemDocument) => {
      if (asked.signal.aborted && this.asked !== asked) return;
      this.asked = undefined;
      [this.standing, this.problem, this.until, this.count] = [standing, problem, Date.now(), this.rows?.count ?? 0];
      asked.abort();
    };
    try {
      const answer = await ask(asked.signal);
      const standing = await this.read(answer, asked.signal);
      end(standing.is, standing.problem);
    } catch (error) {
      if (this.asked !== asked) return;
      const problem = error instanceof Unreadable ? made("unreadable-answer", `The answer can't be read: ${error.message}.`, "Something between this page and the service may have changed it.") : problemOf(error);
      if (!this.rows) end("refused", problem);
      else end("part", error instanceof TypeError ? made("unavailable", "The connection ended in the middle of the answer.", "The rows that came stay. Ask again for all of them.") : problem);
    }
  };

  /** Gives up what is still read; the rows that are there stay. */
  stop = (): void => {
    if (!this.asked) return;
    const { asked } = this;
    this.asked = undefined;
    [this.standing, this.until, this.count] = ["left", Date.now(), this.rows?.count ?? 0];
    asked.abort();
  };

  private async read(answer: Response, signal: AbortSignal): Promise<{ is: Standing; problem?: ProblemDocument }> {
    const reader = answer.body?.getReader();
    const cutter = new Cutter();
    let shown = 0;
    for (;;) {
      const piece = await reader?.read();
      signal.throwIfAborted();
      if (!piece || piece.done) break;
      const block = cutter.push(piece.value);
      if (!this.rows && cutter.columns) [this.rows, this.standing] = [new Rows(cutter.columns, this.mostRows), "reading"];
      const { rows } = this;
      if (!rows || !block) continue;
      rows.push(block);
      const now = performance.now();
      if (now - shown > Math.max(LOOK, rows.count / SLOWER)) {
        this.count = rows.count;
        const isFirst = shown === 0;
        shown = now;
        // The first rows are painted before the next ones are cut, which takes longer than a frame.
        if (isFirst) await painted();
        signal.throwIfAborted();
      }
      if (rows.count >= this.mostRows || rows.bytes >= this.mostBytes) return { is: "full" };
    }
    if (!cutter.isWhole) {
      const problem = made("unavailable", "The answer ended in the middle.", "The rows that came stay. Ask again for all of them.");
      return { is: this.rows ? "part" : "refused", problem };
    }
    const { error, truncated } = cutter.tail ?? {};
    if (error) return { is: "part", problem: error as ProblemDocument };
    return { is: truncated ? "cut" : "whole" };
  }
}
