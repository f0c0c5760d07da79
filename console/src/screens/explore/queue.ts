// Turns of questions: a few at a time, since more would only wait on the service.

/** The most questions that are under way at once. */
const MOST = 6;

/** Lets tasks run, at most a few at a time, first come first served. One that is given up while it waits never runs. */
export class Queue {
  private running = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most = MOST) {}

  /** Runs a task when its turn comes. Throws what the signal was aborted with, or what the task throws. */
  async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    if (this.running >= this.most) await this.turn(signal);
    else this.running += 1;
    try {
      signal.throwIfAborted();
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.running -= 1;
    }
  }

  private turn(signal: AbortSignal): Promise<void> {
    return new Promise((go, stop) => {
      const leave = () => {
        const place = this.waiting.indexOf(enter);
        if (place >= 0) this.waiting.splice(place, 1);
        stop(signal.reason);
      };
      const enter = () => (signal.removeEventListener("abort", leave), go());
      if (signal.aborted) return stop(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      this.waiting.push(enter);
    });
  }
}
