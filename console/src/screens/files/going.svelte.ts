// What a save has set going: the resources of the file and all that reads them, as they run, until all of them rest.

import type { ProblemDocument, Schemas } from "../../api";
import { keyOf, type ResourceDocument } from "../../store/listing";
import type { Store } from "../../store";

type Change = Schemas["FileChange"];
type ResourceName = Schemas["ResourceName"];

/** The time for which all must rest before it is over, in milliseconds: what is next begins a moment after what was before. */
const RESTS = 700;

type Did = "Saved" | "Renamed" | "Deleted" | "Brought back";

/** What was saved last. */
interface Saved {
  path: string;
  /** What was done to it. */
  did: Did;
  request: string | null | undefined;
  isApplied: boolean;
  problem: Schemas["ResourceError"] | ProblemDocument | null | undefined;
  mistakes: number;
  /** What the file declared before, and all that read it: by now it may be gone, and nobody may find it any more. */
  before: ResourceName[];
  begunAt: number;
}

/** Returns the resources, and all that reads them at any distance. */
export function readersOf(of: ResourceName[], all: ResourceDocument[]): ResourceDocument[] {
  const readers = new Map<string, ResourceDocument[]>();
  for (const one of all) for (const ref of one.refs) readers.set(keyOf(ref), [...(readers.get(keyOf(ref)) ?? []), one]);
  const found = new Map<string, ResourceDocument>();
  const next = of.map(keyOf);
  const seen = new Set(next);
  for (let key = next.pop(); key !== undefined; key = next.pop()) {
    for (const reader of readers.get(key) ?? []) {
      if (seen.has(keyOf(reader))) continue;
      seen.add(keyOf(reader));
      found.set(keyOf(reader), reader);
      next.push(keyOf(reader));
    }
  }
  return [...found.values()];
}

export class Going {
  saved = $state.raw<Saved[]>([]);
  /** When all came to rest, in milliseconds. */
  endedAt = $state<number>();

  /** All that the saves touch. */
  touched = $derived.by((): ResourceDocument[] => {
    if (this.saved.length === 0) return [];
    const all = this.store.resources;
    const paths = new Set(this.saved.map(({ path }) => path));
    const own = all.filter((one) => one.paths.some((path) => paths.has(path)));
    const roots = new Map([...own, ...this.saved.flatMap(({ before }) => before)].map((one) => [keyOf(one), one]));
    const ids = new Set(roots.keys());
    return [...all.filter((one) => ids.has(keyOf(one))), ...readersOf([...roots.values()], all).filter((one) => !ids.has(keyOf(one)))];
  });
  running = $derived(this.touched.filter(({ phase }) => phase !== "idle"));
  /** Those that ran because of it. */
  ran = $derived.by(() => {
    const requests = this.saved.flatMap(({ request }) => request ?? []);
    return this.touched.filter(({ phase, last_run }) => {
      const told = phase === "idle" && last_run ? JSON.stringify([last_run.cause, last_run.chain]) : "";
      return requests.some((request) => told.includes(request));
    });
  });
  wrong = $derived(this.touched.filter(({ phase, health }) => phase === "idle" && (health === "failed" || health === "blocked")));
  begunAt = $derived(Math.min(...this.saved.map(({ begunAt }) => begunAt)));

  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly store: Store) {}

  /** Begins to count before a file changes; what is returned takes the answer. Saves that come while one goes on are followed together. */
  begin(path: string, did: Did = "Saved"): (change: Change) => void {
    const begunAt = Date.now();
    const all = this.store.resources;
    const own = all.filter((one) => one.paths.includes(path));
    const before = [...own, ...readersOf(own, all)].map(({ kind, name }) => ({ kind, name }));
    return (change) => {
      if (!change.request) return;
      const saved: Saved = {
        path: change.path,
        did,
        request: change.request,
        isApplied: change.is_applied,
        problem: change.not_applied,
        mistakes: change.diagnostics.filter(({ severity }) => severity === "error").length,
        before,
        begunAt,
      };
      const isOver = this.endedAt !== undefined;
      this.saved = [...(isOver ? [] : this.saved.filter(({ path }) => path !== change.path)), saved];
      this.endedAt = undefined;
      this.rest();
    };
  }

  /** Watches for the end: to be called whenever something moved. */
  rest(): void {
    clearTimeout(this.timer);
    if (this.saved.length === 0 || this.endedAt !== undefined || this.running.length > 0) return;
    const at = Date.now();
    this.timer = setTimeout(() => (this.endedAt = at), RESTS);
  }

  dismiss = (): void => {
    clearTimeout(this.timer);
    this.saved = [];
    this.endedAt = undefined;
  };
}
