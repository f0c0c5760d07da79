// What was asked of the service, with its age, and with the problem where the last attempt brought none.

import { problemOf, type ProblemDocument } from "../api";

/**
 * How often an answer that is behind is asked for once more, and the time before the first, in milliseconds. Each waits twice
 * as long as the one before, a minute in all: a service with a busy disk is behind for seconds.
 */
const LOOKS = 8;
const FIRST_LOOK = 250;

/** An answer that is asked for again whenever its subject changes. What there was stays until there is something newer. */
export class Fetched<T> {
  /** The last answer. */
  value = $state.raw<T>();
  /** When it came, in milliseconds. */
  at = $state<number>();
  /** The reason why there is none newer. */
  problem = $state.raw<ProblemDocument>();
  /** True while an answer is awaited. */
  isLoading = $state(false);

  private asked: AbortController | undefined;
  private isOutdated = false;
  /** Looks at an answer that is behind, since it was last asked for from outside. */
  private looks = 0;
  /** Ends the wait before the next look. */
  private wake = () => {};

  /**
   * `ask` asks. `isBehind` says that an answer does not tell yet of what is known already, since the service writes the one
   * a moment after the other: then it is asked for a few more times.
   */
  constructor(
    private readonly ask: (signal: AbortSignal) => Promise<T>,
    private readonly isBehind: (value: T) => boolean = () => false,
  ) {}

  /** Asks again. While an answer is awaited, asks once more after it. */
  reload = async (): Promise<void> => {
    this.looks = 0;
    if (this.asked) {
      this.isOutdated = true;
      this.wake();
      return;
    }
    const asked = new AbortController();
    this.asked = asked;
    do {
      this.isLoading = true;
      this.isOutdated = false;
      try {
        const value = await this.ask(asked.signal);
        if (asked.signal.aborted) return;
        this.value = value;
        this.at = Date.now();
        this.problem = undefined;
        const isBehind: boolean = !this.isOutdated && this.isBehind(value);
        if (isBehind && this.looks < LOOKS) {
          this.isLoading = false;
          await new Promise<void>((done) => {
            this.wake = done;
            setTimeout(done, FIRST_LOOK * 2 ** this.looks++);
          });
          this.isOutdated = true;
        }
      } catch (error) {
        if (!asked.signal.aborted) this.problem = problemOf(error);
      }
      if (asked.signal.aborted) return;
    } while (this.isOutdated);
    this.asked = undefined;
    this.isLoading = false;
  };

  /** Gives up what is awaited: the service ends the work with its connection. */
  stop = (): void => {
    this.asked?.abort();
    this.wake();
    this.asked = undefined;
    this.isLoading = false;
  };
}
