// News of what is looked at: builds behind its views, which wait for a person, and edits of its files, which do not.

import { untrack } from "svelte";
import type { Schemas } from "../../api";
import type { Store } from "../../store";

type ResourceDocument = Schemas["ResourceDocument"];
type Name = { kind: string; name: string };
/** Versions by names. */
type Versions = Map<string, string>;

/** What there is to know: names of metrics views, and of all whose files make the page. */
interface Behind {
  views: () => string[];
  /** None while they are not known yet. */
  files: () => Name[] | undefined;
}

/** Returns true if a name has another version than it had. One that was not known before is no news: it was read with the page. */
export function isOther(now: Versions, before: Versions): boolean {
  return [...now].some(([name, version]) => before.has(name) && before.get(name) !== version);
}

/** Whether what is shown is older than what was built. Made while a component is. */
export class Newer {
  /** True if newer data are shown by themselves. */
  isAuto = $state(false);
  /** The builds that were shown. */
  private noted = $state.raw<Versions>(new Map());
  private seen: Versions = new Map();

  /** The builds behind the views. */
  private made = $derived.by((): Versions => {
    void this.store.version;
    if (!this.store.isListed) return new Map();
    const run = ({ kind, name }: Name) => {
      const one = this.store.get(kind, name);
      return one?.last_run?.outcome === "done" ? one.last_run.id : one?.state_version;
    };
    const builds = this.behind.views().map((view) => [view, (this.store.get("metrics_view", view)?.refs ?? []).map(run).join()] as const);
    return new Map(builds.filter(([, ids]) => ids !== ""));
  });
  /** The versions of the files; none until all are known. What is being checked still answers as it was, and has none. */
  private written = $derived.by((): Map<string, string | undefined> | undefined => {
    void this.store.version;
    const all = this.behind.files()?.map(({ kind, name }) => this.store.get(kind, name));
    if (!all?.every((one) => one !== undefined)) return undefined;
    // The state of a metrics view changes with each build, those of the others with their last good files.
    const version = ({ kind, phase, spec_version: spec, state_version: state }: ResourceDocument) => (phase !== "idle" ? undefined : kind === "metrics_view" ? `${spec}` : `${spec}.${state}`);
    return new Map(all.map((one) => [`${one.kind}/${one.name}`, version(one)]));
  });

  constructor(
    private readonly store: Store,
    private readonly behind: Behind,
    /** Asks anew for what is shown. */
    private readonly renew: () => void,
    /** Reads the files anew. */
    reload: () => void,
  ) {
    $effect(() => {
      const { made } = this;
      // A view that was not shown before is asked as it is now.
      untrack(() => (this.noted = new Map([...made, ...this.noted])));
    });
    $effect(() => {
      if (this.isBehind && this.isAuto) untrack(this.show);
    });
    $effect(() => {
      if (!this.written) return;
      const now = new Map([...this.written].map(([name, version]) => [name, version ?? this.seen.get(name) ?? ""]));
      // A reload asks for all numbers too.
      if (isOther(now, this.seen)) untrack(() => (this.note(), reload()));
      this.seen = new Map([...this.seen, ...now]);
    });
  }

  get isBehind(): boolean {
    return isOther(this.made, this.noted);
  }

  /** Shows what is newer. */
  show = (): void => {
    this.note();
    this.renew();
  };

  private note(): void {
    this.noted = new Map([...this.noted, ...this.made]);
  }
}
