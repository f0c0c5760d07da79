// News of what is looked at: builds behind its views, which wait for a person, and edits of its files, which do not.

import { untrack } from "svelte";
import type { Store } from "../../store";

type Name = { kind: string; name: string };

/** What there is to know: names of metrics views, and of all whose files make the page. */
interface Behind {
  views: () => string[];
  /** None while they are not known yet. */
  files: () => Name[] | undefined;
}

/** Whether what is shown is older than what was built. Made while a component is. */
export class Newer {
  /** True if newer data are shown by themselves. */
  isAuto = $state(false);
  private noted = $state<string>();
  private seen = "";

  /** The builds behind the views. */
  private made = $derived.by(() => {
    void this.store.version;
    const read = this.behind.views().flatMap((name) => this.store.get("metrics_view", name)?.refs ?? []);
    return read.map(({ kind, name }) => this.store.get(kind, name)).map((one) => (one?.last_run?.outcome === "done" ? one.last_run.id : one?.state_version)).join();
  });
  /** The versions of the files; empty until all are known. */
  private written = $derived.by(() => {
    void this.store.version;
    const all = this.behind.files()?.map(({ kind, name }) => this.store.get(kind, name));
    if (!all?.every((one) => one !== undefined)) return "";
    // What a board shows of its components follows their last good files.
    return all.map(({ kind, spec_version: spec, state_version: state }) => (kind === "canvas" || kind === "component" ? `${spec}.${state}` : spec)).join();
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
      if (this.made && this.noted === undefined) this.noted = this.made;
    });
    $effect(() => {
      if (this.isBehind && this.isAuto) untrack(this.show);
    });
    $effect(() => {
      if (!this.written) return;
      if (this.seen && this.seen !== this.written) untrack(reload);
      this.seen = this.written;
    });
  }

  get isBehind(): boolean {
    return this.noted !== undefined && this.made !== this.noted;
  }

  /** Shows what is newer. */
  show = (): void => {
    this.noted = this.made;
    this.renew();
  };

  /** Takes what is shown for the newest: it has just been asked for. */
  note(): void {
    this.noted = undefined;
  }
}
