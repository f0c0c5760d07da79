// Texts that were typed and not saved. They stay in the browser, by person, project and file, until a person decides.
//
// 1. Each time that a file is opened has a key of its own, so that no tab and no later visit writes over another one's text.
// 2. Nothing is ever saved to the project from here by itself.

/** The most texts that are kept. */
const MOST = 200;
const BEGINS = "watershed unsaved ";

/** A text that was kept. */
export interface Kept {
  key: string;
  path: string;
  text: string;
  /** The version of the file that it was typed over; none for a new file. */
  etag: string | undefined;
  /** When it was typed last, in milliseconds. */
  at: number;
}

/** What the browser has no room for. It is here as long as the page, also while another screen is looked at. */
const roomless = new Map<string, string>();

type Store = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

/** The unsaved texts of one person in one project. */
export class Keeper {
  constructor(
    private readonly base: string,
    private readonly instance: string,
    private readonly person: string,
    private readonly storage: Store | undefined = stored(),
  ) {}

  /** Returns a key for a file that is opened. */
  open(path: string): string {
    return BEGINS + JSON.stringify([this.base, this.instance, this.person, path, mark()]);
  }

  /** Keeps a text; returns false if the browser has no room for it. */
  keep(key: string, text: string, etag: string | undefined): boolean {
    if (isOver) return true;
    const value = JSON.stringify({ text, etag, at: Date.now() });
    try {
      this.storage?.setItem(key, value);
      roomless.delete(key);
      if (this.storage) return true;
    } catch {}
    // What was kept of it before is not thrown away: it is better than nothing.
    roomless.set(key, value);
    return false;
  }

  forget(key: string): void {
    roomless.delete(key);
    try {
      this.storage?.removeItem(key);
    } catch {}
  }

  /** All texts of this person and project, the latest first. */
  all(): Kept[] {
    const found: Kept[] = [];
    for (const key of new Set([...keysOf(this.storage), ...roomless.keys()])) {
      const [base, instance, person, path] = wordsOf(key) ?? [];
      if (base !== this.base || instance !== this.instance || person !== this.person || path === undefined) continue;
      const kept = read(roomless.get(key) ?? this.storage?.getItem(key));
      if (kept) found.push({ key, path, ...kept });
    }
    return found.sort((a, b) => b.at - a.at).slice(0, MOST);
  }
}

/** True once the person has signed out: what the page still shows is not kept again. */
let isOver = false;

/** Forgets all texts below a path prefix, and keeps none any more on this page: the person has signed out. */
export function forgetAll(base: string, storage: Store | undefined = stored()): void {
  isOver = true;
  forgetOthers(base, undefined, storage);
}

/** Forgets the texts of everybody but one person below a path prefix. */
export function forgetOthers(base: string, person: string | undefined, storage: Store | undefined = stored()): void {
  for (const key of [...keysOf(storage), ...roomless.keys()]) {
    const words = wordsOf(key);
    if (words?.[0] !== base || words[2] === person) continue;
    roomless.delete(key);
    storage?.removeItem(key);
  }
}

/** A word that no other visit has. Browsers make better ones on safe origins alone. */
const mark = () => Date.now().toString(36) + Math.random().toString(36).slice(2);

function keysOf(storage: Store | undefined): string[] {
  const keys = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? "");
  return keys.filter((key) => key.startsWith(BEGINS));
}

function wordsOf(key: string): string[] | undefined {
  try {
    const words: unknown = JSON.parse(key.slice(BEGINS.length));
    return Array.isArray(words) && words.length === 5 && words.every((word) => typeof word === "string") ? words : undefined;
  } catch {
    return undefined;
  }
}

function read(value: string | null | undefined): Pick<Kept, "text" | "etag" | "at"> | undefined {
  try {
    const { text, etag, at } = JSON.parse(value ?? "") as Record<string, unknown>;
    if (typeof text !== "string" || typeof at !== "number" || !(at > 0 && at < 1e14)) return undefined;
    return { text, etag: typeof etag === "string" ? etag : undefined, at };
  } catch {
    return undefined;
  }
}

function stored(): Store | undefined {
  try {
    return localStorage;
  } catch {
    return undefined;
  }
}
