// A board, through the eyes of one viewer: its document, and what time and filters mean for each of its views.

import { problemOf } from "../../api";
import type { Service } from "../../service";
import { Asking, type Answer, type Told } from "../explore/asking";
import { titleOf, type Field } from "../explore/declared";
import type { Column } from "../explore/format";
import { isClosed, Look, type Source } from "../explore/look.svelte";
import { Once } from "../explore/once";
import { comparison, type Query } from "../explore/questions";
import { Queue } from "../explore/queue";
import { declaredBy } from "./declared";
import type { BoardDocument, Component, Variable } from "./document";
import { narrowed } from "./narrowed";
import { Sight } from "./sight.svelte";
import { timeOf } from "./times";
import { givenOf } from "./variables";

/** Fields of several views by their names, in the order of their first views. */
function union(all: Field[][]): Field[] {
  const found = new Map<string, Field>();
  for (const field of all.flat()) if (!found.has(field.name)) found.set(field.name, field);
  return [...found.values()];
}

export class Board extends Look {
  document = $state.raw<BoardDocument>();
  /** What is seen of each view, by its name. */
  sights = $state.raw(new Map<string, Sight>());
  /** What is seen of a view at times of components' own, by both. */
  private apart = $state.raw(new Map<string, Sight>());
  /** True while another document is awaited. */
  isLoading = $state(false);

  private loading: AbortController | undefined;
  private bounding: AbortController | undefined;
  private comparing: AbortController | undefined;
  /** The range that was asked about, so that nothing is asked twice. */
  private told = "";
  /** Whose bounds were asked for. */
  private boundOf: Asking | undefined;
  /** The variables as the file has them: what the address sets has their types, and no others are known. */
  private variables: Variable[] | undefined;
  private readonly once = new Once<Told>();
  private readonly queue = new Queue();

  constructor(service: Service, name: string) {
    super(service, "canvas", name);
  }

  /** The values of variables that the address sets. */
  values = $derived.by(() => JSON.stringify(this.view.variables));

  load = async (): Promise<void> => {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    [this.problem, this.isLoading] = [undefined, true];
    try {
      const document = await this.read(signal);
      if (!signal.aborted) this.show(document);
    } catch (error) {
      if (signal.aborted) return;
      this.problem = problemOf(error);
      if (isClosed(this.problem)) this.clear();
    }
    if (!signal.aborted) this.isLoading = false;
  };

  reload(): void {
    this.variables = undefined;
    super.reload();
  }

  private async read(signal: AbortSignal): Promise<BoardDocument> {
    const headers: Record<string, string> = this.as ? { "watershed-view-as": this.as } : {};
    const get = (words: string) => this.service.get<BoardDocument>(`canvases/${encodeURIComponent(this.name)}/board${words}`, signal, headers);
    const said = this.view.variables;
    if (Object.keys(said).length === 0 || !this.variables) {
      const document = await get("");
      this.variables = document.variables;
      if (Object.keys(givenOf(said, document.variables)).length === 0) return document;
    }
    const given = JSON.stringify(givenOf(said, this.variables));
    return get(given === "{}" ? "" : `?variables=${encodeURIComponent(given)}`);
  }

  stop = (): void => {
    this.loading?.abort();
    this.bounding?.abort();
    this.comparing?.abort();
    [this.boundOf, this.told] = [undefined, ""];
    this.all.forEach((sight) => sight.stop());
  };

  lookAs(email: string | undefined): void {
    this.stop();
    this.shared.as = email;
    this.clear();
    void this.load();
  }

  private clear(): void {
    [this.document, this.declared, this.bounds, this.span] = [undefined, undefined, undefined, undefined];
    [this.sights, this.apart, this.columns] = [new Map(), new Map(), new Map()];
    this.once.forget();
  }

  renew(): void {
    this.once.forget();
    super.renew();
    this.boundOf = undefined;
    this.bound();
  }

  private show(told: BoardDocument): void {
    const document = { ...told, components: Object.fromEntries(Object.entries(told.components).map(([name, component]) => [name, narrowed(component)])) };
    const together = { queue: this.queue, once: this.once, open: (change: 1 | -1) => (this.shared.pending += change) };
    const [sights, apart] = [new Map<string, Sight>(), new Map<string, Sight>()];
    const times = new Map(Object.values(document.components).flatMap((component) => timeOf(component) ?? []).map((own) => [JSON.stringify(own), own]));
    for (const [name, view] of Object.entries(document.views)) {
      const asking = new Asking(this.service, `canvas/${this.name}`, name, this.as, together);
      const declared = declaredBy(document, name, view);
      const sight = this.sights.get(name) ?? new Sight(this.service, this, name);
      sight.take(declared, asking);
      sights.set(name, sight);
      for (const [key, own] of times) {
        const other = this.apart.get(key + name) ?? new Sight(this.service, this, name, own);
        other.take(declared, asking);
        apart.set(key + name, other);
      }
    }
    this.apart.forEach((sight, key) => !apart.has(key) && sight.stop());
    [this.sights, this.apart, this.document] = [sights, apart, document];
    const all = [...sights.values()];
    const [dimensions, measures] = [union(all.map(({ allDimensions }) => allDimensions)), union(all.map(({ allMeasures }) => allMeasures))];
    this.declared = { ...declaredBy(document, "", undefined), time: all.find(({ time }) => time)?.time, dimensions, measures };
    this.columns = new Map([...dimensions, ...measures].map(({ name, title, type }) => [name, { name, display_name: title, role: "dimension" as const, type }]));
    this.loaded();
  }

  /** What a component sees of a view: at its own time, where it has one. */
  sightOf(component: Component | undefined, view: string): Sight | undefined {
    const own = component && timeOf(component);
    return own ? this.apart.get(JSON.stringify(own) + view) : this.sights.get(view);
  }
  get all(): Sight[] {
    return [...this.sights.values(), ...this.apart.values()];
  }

  /** Where the first view that has times is asked; none while nothing may be asked. */
  get first(): Asking | undefined {
    return [...this.sights.values()].find(({ time }) => time)?.asking;
  }

  /** Asks what times the data have, unless that was asked. */
  bound(): void {
    const at = this.first;
    if (!at || at === this.boundOf) return;
    this.boundOf = at;
    this.bounding?.abort();
    const { signal } = (this.bounding = new AbortController());
    void at.bounds(signal).then((bounds) => !signal.aborted && (this.bounds = bounds), () => {});
  }

  /** The range and the comparison that no part of the first view has told; none where all is known, or may still be. */
  wanted = $derived.by(() => {
    const { compare, compared, range, zone, span } = this;
    const isTold = range === undefined || (span?.of === `${range}${zone}` && (compare === undefined || compared !== undefined));
    return isTold || this.shared.pending > 0 ? undefined : JSON.stringify([range, zone, compare, this.as, this.round]);
  });
  /** Asks over no rows what the range comes to, and what it is compared with, once for each. */
  askRange(): void {
    const [at, { wanted, range, zone, compare }] = [this.first, this];
    const measure = [...this.sights.values()].find(({ asking }) => asking === at)?.plain[0];
    if (!at || !wanted || wanted === this.told || !range || !measure) return;
    this.told = wanted;
    const query: Query = { measures: [measure.name], time_range: range, ...(compare ? { comparison_time_range: comparison(compare) } : {}), time_zone: zone, where: { val: false } };
    this.comparing?.abort();
    const { signal } = (this.comparing = new AbortController());
    const isPresent = () => !signal.aborted && range === this.range && zone === this.zone;
    void at.ask({ query, limit: 1 }, signal).then(({ answer }) => isPresent() && this.resolve(answer, query), () => {});
  }

  /** Says above the board what the range came to in its first view, by the clock of that view's times. */
  say(answer: Answer, query: Query, time: Column | undefined): void {
    this.resolve(answer, query);
    if (time && this.columns.get(time.name)?.type !== time.type) this.columns = new Map([...this.columns, [time.name, time]]);
  }

  of(field: string): Source {
    const all = [...this.sights.values()];
    return (all.find(({ allDimensions }) => allDimensions.some(({ name }) => name === field)) ?? all[0])?.values ?? this;
  }

  get mayFilter(): boolean {
    return this.document?.filters.enable !== false;
  }

  get pinned(): { field: Field; isRequired: boolean }[] {
    const { pinned = [], required = [] } = this.document?.filters ?? {};
    const named = (names: string[], name: string) => names.some((one) => one.toLowerCase() === name.toLowerCase());
    return this.allDimensions.filter(({ name }) => named(pinned, name) || named(required, name)).map((field) => ({ field, isRequired: named(required, field.name) }));
  }

  /** Fields without whose filter nothing is asked. */
  missing = $derived.by(() => (this.mayFilter ? this.pinned.filter(({ field, isRequired }) => isRequired && !this.view.filters.some((one) => one.field === field.name && !this.idle.includes(one))).map(({ field }) => field) : []));

  /** Each with the name of its view, for it leaves all others alone. */
  get beginnings(): string[] {
    const { defaults, views = {} } = this.document ?? {};
    const said = Object.entries(defaults?.filters ?? {}).filter(([, text]) => typeof text === "string" && text.trim() !== "");
    return [...new Set(said.map(([name, text]) => `${text} (${views[name]?.display_name || titleOf(name)})`))];
  }

  /** The condition that the file begins with, of one view. */
  begunIn(view: string): string {
    const text = this.view.isBare ? "" : this.document?.defaults?.filters?.[view];
    return typeof text === "string" ? text : "";
  }

  /** Words of the address that mean nothing on this board. */
  strange = $derived.by(() => {
    const { document, view } = this;
    if (!document) return this.unread;
    const known = new Set(document.variables.map(({ name }) => name));
    const variables = Object.entries(view.variables).filter(([name]) => !known.has(name)).map(([name, value]) => `let.${name}=${value}`);
    return [...this.unread, ...variables, ...(this.mayFilter ? [] : view.filters.map(({ field }) => `is.${field}`))];
  });
}
