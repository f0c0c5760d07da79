// The last questions of one person on one instance, which stay in the browser. Other tabs may write too, so each change begins with what is there.

/** Questions that are kept. */
const MOST = 200;
/** The longest one that is kept, in characters. */
const LONGEST = 64_000;

/** A question that was asked. */
export interface Question {
  sql: string;
  /** When it was asked last, in milliseconds. */
  at: number;
  /** What came of it, in a few words. */
  ended?: string;
}

/** The questions, the latest first. */
export class Past {
  questions = $state.raw<Question[]>([]);
  /** True if the browser's storage took less than there is. */
  isFull = $state(false);

  constructor(
    private readonly key: string,
    private readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined = stored(),
  ) {
    this.questions = this.read();
  }

  /** Remembers a question; the same one stands there once. */
  add(sql: string, ended?: string): void {
    const text = sql.trim();
    if (text === "" || text.length > LONGEST) return;
    const one: Question = { sql: text, at: Date.now(), ...(ended === undefined ? {} : { ended }) };
    this.write([one, ...this.read().filter((other) => other.sql !== text)].slice(0, MOST));
  }
  remove(sql: string): void {
    this.write(this.read().filter((one) => one.sql !== sql));
  }
  clear(): void {
    this.isFull = false;
    this.write([]);
  }
  /** Looks at what other tabs have written. */
  reload = (): void => {
    this.questions = this.read();
  };

  private read(): Question[] {
    if (!this.storage) return this.questions;
    try {
      const all: unknown = JSON.parse(this.storage.getItem(this.key) ?? "[]");
      if (!Array.isArray(all)) return [];
      return all.filter((one): one is Question => typeof one?.sql === "string" && isTime(one.at) && (one.ended === undefined || typeof one.ended === "string")).slice(0, MOST);
    } catch {
      // What can't be read is nobody's question; it is replaced by the next one.
      return [];
    }
  }

  private write(wanted: Question[]): void {
    this.questions = wanted;
    if (!this.storage) return void (this.isFull = true);
    let kept = wanted;
    for (;;) {
      try {
        if (kept.length === 0) this.storage.removeItem(this.key);
        else this.storage.setItem(this.key, JSON.stringify(kept));
        this.isFull ||= kept.length < wanted.length;
        return;
      } catch {
        if (kept.length === 0) return void (this.isFull = true);
        // The oldest go first; half of them at once, so that this ends.
        kept = kept.slice(0, kept.length >> 1);
      }
    }
  }
}

/** True for a moment that a clock has shown: others can't be written as one. */
const isTime = (at: unknown) => typeof at === "number" && at > 0 && at < 1e14;

function stored(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}

/** The key of a person's questions. */
export const keyOf = (base: string, instance: string, person: string) => `watershed questions ${JSON.stringify([base, instance, person])}`;
