// What a page knows of a project. One stream feeds it, which all tabs of the browser share.

import type { ProblemDocument } from "../api";
import type { Service } from "../service";
import { ask } from "../begun";
import type { Wish } from "./hub";
import { Line, type Known, type News, type Standing } from "./line";
import { keyOf, type ResourceDocument } from "./listing";

/** The silence after which a page says how old it is, in milliseconds. */
export const QUIET = 20_000;
/** How long a page that has its listing follows by itself: it is drawn by then, and the worker does not stand in its way. */
const ALONE = 500;

/** The resources of a project. */
export class Store {
  /** True once everything there is has been told. */
  isListed = $state(false);
  /** When the service was last heard, in milliseconds; 0 before that. */
  heard = $state(0);
  /** Counts what moved. */
  version = $state(0);
  /** Changes when files of the project may have changed. */
  files = $state(0);
  private standing = $state.raw<Standing>({ is: "opening" });
  private readonly known = new Map<string, ResourceDocument>();
  private end: (() => void) | undefined;

  constructor(service: Service) {
    const address = new URL(service.address("watch"), location.href).href;
    this.open(address);
    // A page that is kept for "back" follows nothing meanwhile.
    addEventListener("pagehide", this.close);
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.open(address);
    });
  }

  /** All resources, by kind and name. */
  resources = $derived.by(() => {
    void this.version;
    return [...this.known.values()];
  });

  /** A resource; none if there is none, or not yet. */
  get(kind: string, name: string): ResourceDocument | undefined {
    void this.version;
    return this.known.get(keyOf({ kind, name }));
  }

  /** How the line to the service stands. */
  get line(): Standing["is"] {
    return this.standing.is;
  }

  /** The reason why nothing is heard. */
  get problem(): ProblemDocument | undefined {
    return this.standing.is === "broken" ? this.standing.problem : undefined;
  }

  /** Stops to follow. */
  close = (): void => {
    this.end?.();
    this.end = undefined;
  };

  /** Lists and follows, and soon leaves that to the worker of all tabs. */
  private open(address: string): void {
    this.close();
    const isShared = typeof SharedWorker !== "undefined";
    let due: ReturnType<typeof setTimeout> | undefined;
    const tell = (news: News) => {
      this.take(news);
      if (isShared && news.standing.is === "following") due ??= setTimeout(() => this.share(address, line.leave()), ALONE);
    };
    const line = new Line(address, tell, { isPassedOn: isShared, ask });
    this.end = () => {
      clearTimeout(due);
      line.close();
    };
  }

  private share(address: string, known: Known | undefined): void {
    const worker = new SharedWorker(new URL("./shared.worker.ts", import.meta.url), { type: "module", name: "watershed" });
    const { port } = worker;
    port.onmessage = ({ data }: MessageEvent<News>) => this.take(data);
    port.postMessage({ follow: address, known } satisfies Wish, [...new Set(known?.pieces.map(({ buffer }) => buffer))]);
    const end = () => {
      port.postMessage({ leave: true } satisfies Wish);
      port.close();
    };
    this.end = end;
    // Without its script, the page follows by itself.
    worker.onerror = () => {
      if (this.end !== end) return;
      const line = new Line(address, (news) => this.take(news));
      this.end = () => line.close();
    };
  }

  private take({ standing, heard, moved }: News): void {
    this.standing = standing;
    this.heard = Math.max(this.heard, heard);
    // Of one that lists anew nothing is there yet.
    if (!moved || (this.isListed && !moved.isListed)) return;
    if (moved.isWhole) this.known.clear();
    for (const document of moved.put) this.known.set(keyOf(document), document);
    for (const key of moved.gone) this.known.delete(key);
    this.isListed = moved.isListed;
    this.files = moved.files;
    if (moved.isWhole || moved.put.length + moved.gone.length > 0) this.version += 1;
  }
}
