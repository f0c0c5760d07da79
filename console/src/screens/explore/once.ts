// Answers that equal questions have in common: asked for once, given up when nobody waits any more.

/** The most answers that are kept. */
const MOST = 200;

interface Shared<T> {
  answer: Promise<T>;
  asked: AbortController;
  waiting: number;
  isThere: boolean;
}

/** Lets equal tasks run once, until it is told to forget what they brought. */
export class Once<T> {
  private readonly all = new Map<string, Shared<T>>();

  /** Runs a task, or joins an equal one. Throws what the signal was aborted with, or what the task throws. */
  run(key: string, signal: AbortSignal, task: (signal: AbortSignal) => Promise<T>): Promise<T> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const shared = this.all.get(key) ?? this.begin(key, task);
    shared.waiting += 1;
    return new Promise((done, failed) => {
      const leave = () => {
        shared.waiting -= 1;
        if (shared.waiting === 0 && !shared.isThere) {
          if (this.all.get(key) === shared) this.all.delete(key);
          shared.asked.abort(signal.reason);
        }
        failed(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      shared.answer.then(done, failed).finally(() => signal.removeEventListener("abort", leave));
    });
  }

  /** Forgets all answers: what is asked from now on is asked anew. */
  forget(): void {
    this.all.clear();
  }

  private begin(key: string, task: (signal: AbortSignal) => Promise<T>): Shared<T> {
    const asked = new AbortController();
    const shared: Shared<T> = { answer: task(asked.signal), asked, waiting: 0, isThere: false };
    this.all.set(key, shared);
    shared.answer.then(
      () => {
        shared.isThere = true;
        const [oldest] = this.all.keys();
        if (this.all.size > MOST && oldest !== undefined) this.all.delete(oldest);
      },
      // What was refused may be asked for again.
      () => this.all.get(key) === shared && this.all.delete(key),
    );
    return shared;
  }
}
