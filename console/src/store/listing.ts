// What there is, as the stream of the service tells it.
//
// 1. What is shown is one state of one catalog: a batch counts when its end has come, and a new listing replaces all.
// 2. The token is that of what is shown.

import type { Schemas } from "../api";

export type ResourceDocument = Schemas["ResourceDocument"];

/** An event of the stream. */
export interface Told {
  name: string;
  data: string;
  id: string | undefined;
}

/** What has moved since it was last asked for. */
export interface Moved {
  /** True if everything that was shown before is void. */
  isWhole: boolean;
  isListed: boolean;
  put: ResourceDocument[];
  gone: string[];
  /** How often files were said to have changed. */
  files: number;
}

/** The most resources that are taken: a listing that goes beyond does not end. */
export const MOST = 100_000;

/** The name of a resource among all kinds. */
export function keyOf(of: { kind: string; name: string }): string {
  return `${of.kind}/${of.name}`;
}

/** Resources by key. */
export class Listing {
  shown = new Map<string, ResourceDocument>();
  isListed = false;
  files = 0;
  /** The place to go on from; none before the first listing has ended. */
  token: string | undefined;

  private fresh: Map<string, ResourceDocument> | undefined;
  /** Events whose end has not come. */
  private batch: Told[] = [];
  private moved = new Set<string>();
  private isWhole = true;
  private isFiled = false;

  /** Begins to read a stream, which goes on from the token, or lists anew. */
  begin(): void {
    this.batch = [];
    this.fresh = this.token === undefined ? new Map() : undefined;
  }

  /** Forgets the place to go on from: the next stream lists anew. */
  forget(): void {
    this.token = undefined;
  }

  /** Goes on from what another listing was told: only what moves from here on is news, and files. */
  goOn(files: number): void {
    [this.isWhole, this.isFiled, this.files, this.moved] = [false, true, files, new Set()];
  }

  /** Takes one event. Returns false if the stream is over with it. */
  take(told: Told): boolean {
    if (told.name === "lagged") this.forget();
    if (told.name === "lagged" || told.name === "bye") return false;
    // Belongs to no batch: whoever shows files lists them anew.
    if (told.name === "file") {
      this.files += 1;
      this.isFiled = true;
      return true;
    }
    this.batch.push(told);
    if (this.batch.length > MOST) throw new Error(`more than ${MOST.toLocaleString()} resources were told, and no end of them`);
    if (told.id === undefined) return true;
    const batch = this.batch;
    this.batch = [];
    batch.forEach((one) => this.apply(one));
    this.token = told.id;
    return true;
  }

  private apply({ name, data }: Told): void {
    const target = this.fresh ?? this.shown;
    switch (name) {
      case "changed": {
        const document = JSON.parse(data) as ResourceDocument;
        this.put(target, keyOf(document), document);
        break;
      }
      case "status": {
        const status = JSON.parse(data) as Pick<ResourceDocument, "kind" | "name" | "phase" | "health">;
        const known = target.get(keyOf(status));
        if (known) this.put(target, keyOf(status), { ...known, ...status });
        break;
      }
      case "gone": {
        const key = keyOf(JSON.parse(data) as { kind: string; name: string });
        if (target.delete(key) && !this.fresh) this.moved.add(key);
        break;
      }
      case "listed":
        if (!this.fresh) break;
        [this.shown, this.fresh] = [this.fresh, undefined];
        this.isListed = true;
        this.isWhole = true;
    }
  }

  /** Returns what has moved since the last call; nothing if nothing did. */
  flush(): Moved | undefined {
    const { isWhole, isListed, moved, isFiled, files } = this;
    if (!isWhole && !isFiled && moved.size === 0) return undefined;
    [this.isWhole, this.isFiled, this.moved] = [false, false, new Set()];
    if (isWhole) return this.whole();
    const put: ResourceDocument[] = [];
    const gone: string[] = [];
    for (const key of moved) {
      const document = this.shown.get(key);
      if (document) put.push(document);
      else gone.push(key);
    }
    return { isWhole, isListed, put, gone, files };
  }

  /** Returns everything that is shown, for one who begins to look. */
  whole(): Moved {
    return { isWhole: true, isListed: this.isListed, put: [...this.shown.values()], gone: [], files: this.files };
  }

  private put(target: Map<string, ResourceDocument>, key: string, document: ResourceDocument): void {
    target.set(key, document);
    if (!this.fresh) this.moved.add(key);
  }
}
