// Answers that come by the page.

import { Fetched } from "./fetched.svelte";

/** The first page, which is asked for again, and those behind it, which a person asked for. */
export class Pages<D extends { next?: string | null }> {
  readonly first: Fetched<D>;
  private readonly further: Fetched<D>;
  private later = $state.raw<D[]>([]);

  /** `ask` asks for a page, by its token; without one for the first. */
  constructor(ask: (page: string | undefined, signal: AbortSignal) => Promise<D>, isBehind?: (first: D) => boolean) {
    this.first = new Fetched((signal) => ask(undefined, signal), isBehind);
    this.further = new Fetched((signal) => ask(this.next ?? undefined, signal));
  }

  /** All pages that are there. */
  all = $derived.by(() => (this.first.value === undefined ? [] : [this.first.value, ...this.later]));
  /** The token of the page behind them. */
  get next(): string | null | undefined {
    return this.all.at(-1)?.next;
  }

  /** The further page that was asked for: under way, or what was in its way. */
  get asked(): Fetched<D> {
    return this.further;
  }

  /** Asks for the page behind. */
  more = async (): Promise<void> => {
    await this.further.reload();
    if (this.further.value && !this.further.problem) this.later = [...this.later, this.further.value];
  };

  /** Begins anew: the question is another one. */
  begin(): void {
    this.stop();
    this.first.value = undefined;
    this.later = [];
    void this.first.reload();
  }

  /** Gives up what is awaited. */
  stop = (): void => {
    this.first.stop();
    this.further.stop();
  };
}
