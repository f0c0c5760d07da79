// What is looked at: an explore, through the eyes of one viewer, as the address says.

import { createContext } from "svelte";
import { problemOf, type ProblemDocument, type Schemas } from "../../api";
import { cut, SHOWN, visible } from "../../parts/text";
import { go, place } from "../../router";
import type { Service } from "../../service";
import { read, write, type View } from "./address";
import { Asking } from "./asking";
import { declaredOf, type Declared, type Field } from "./declared";
import type { Column } from "./format";
import { grainsOf, proposed } from "./grains";
import { instant, type Grain } from "./format/time";
import type { Frame, Order, Query } from "./questions";

type Resource = Schemas["ResourceDocument"];
type Bounds = Schemas["MetricsBoundsDocument"];

/** Fields of one question that finds out what a viewer may see. */
const PROBED = 30;

export class Look {
  declared = $state.raw<Declared>();
  problem = $state.raw<ProblemDocument>();
  bounds = $state.raw<Bounds>();
  /** The user as whom an admin looks. */
  as = $state<string>();
  /** Counts what makes all answers old: a build behind the view that a person has taken note of. */
  round = $state(0);
  /** The range that the service made of the present one. */
  span = $state.raw<{ range: Schemas["MetricsRange"]; compared: Schemas["MetricsRange"] | undefined; of: string }>();
  /** The instant under the cursor of all charts, in milliseconds. */
  cursor = $state<number>();

  /** Questions without an answer yet. */
  pending = $state(0);
  /** Counts changes of the author's colours, for what is drawn and not styled. */
  paints = $state(0);

  private columns = $state.raw(new Map<string, Column>());
  private loading: AbortController | undefined;
  asking = $state.raw<Asking>();

  constructor(
    private readonly service: Service,
    readonly name: string,
  ) {}

  view = $derived(read(place.url.searchParams));

  /** Changes the view, and with it the address. */
  change = (patch: { [Key in keyof View]?: View[Key] | undefined }): void => {
    const next = { ...this.view, ...patch } as View;
    for (const [key, value] of Object.entries(patch)) if (value === undefined) delete next[key as keyof View];
    const words = write(next).toString();
    go(place.url.pathname + (words ? `?${words}` : ""));
  };

  /** Reads what is declared, and finds out what the viewer may see of it. */
  load = async (): Promise<void> => {
    this.loading?.abort();
    const { signal } = (this.loading = new AbortController());
    [this.problem, this.span, this.cursor] = [undefined, undefined, undefined];
    try {
      const explore = await this.resource("explore", this.name, signal);
      const view = (explore.result as { metrics_view?: string } | null)?.metrics_view ?? (explore.spec as { metrics_view?: string } | undefined)?.metrics_view;
      if (!view) {
        const { code = "never-built", message = "The explore does not compile.", hint = "Its page has the findings." } = explore.error ?? {};
        this.problem = { type: "", title: code, status: 0, code, detail: message, hint: hint ?? "", retryable: false };
        return;
      }
      const asking = new Asking(this.service, this.name, view, this.as, (change) => (this.pending += change));
      const [of, bounds] = await Promise.all([this.resource("metrics_view", view, signal).catch(() => undefined), asking.bounds(signal)]);
      const declared = declaredOf({ explore, view: of ?? {} }, bounds.time_dimension ?? undefined);
      const columns = await this.probe(asking, declared, signal);
      if (signal.aborted) return;
      // What the viewer may not see is nowhere on the page.
      const isSeen = ({ name }: Field) => columns.has(name);
      const seen = { ...declared, measures: declared.measures.filter(isSeen), dimensions: declared.dimensions.filter(isSeen) };
      [this.bounds, this.declared, this.columns, this.asking] = [bounds, seen, columns, asking];
    } catch (error) {
      if (!signal.aborted) this.problem = problemOf(error);
    }
  };

  stop = (): void => this.loading?.abort();

  /** Looks as somebody else: nothing of what was shown before stays. */
  lookAs(email: string | undefined): void {
    [this.as, this.declared, this.asking, this.bounds] = [email, undefined, undefined, undefined];
    this.columns = new Map();
    void this.load();
  }

  /** A resource with its spec, as whoever is signed in has it: also an admin who looks as somebody, whose fields the answers tell. */
  private async resource(kind: string, name: string, signal: AbortSignal): Promise<Resource> {
    const path = this.service.pathOf({ kind, name });
    try {
      return await this.service.get<Resource>(`${path}?include=spec`, signal);
    } catch (error) {
      if (problemOf(error).status !== 403) throw error;
    }
    return this.service.get<Resource>(path, signal, this.as ? { "watershed-view-as": this.as } : undefined);
  }

  /** Asks for all fields over no rows: the answer has the columns of those that the viewer may see. */
  private async probe(asking: Asking, { measures, dimensions, time }: Declared, signal: AbortSignal): Promise<Map<string, Column>> {
    const found = new Map<string, Column>();
    const ask = async (query: Query) => {
      const { answer, left } = await asking.ask({ query: { ...query, where: { val: false } }, limit: 1 }, signal);
      for (const column of answer.columns) found.set(column.name, column);
      // A measure that needs more than its place here may well be seen.
      for (const [name, code] of left) if (code !== "not-allowed") found.set(name, { name, display_name: "", role: "measure", type: "" });
    };
    const asked: Promise<void>[] = [];
    for (let at = 0; at < dimensions.length; at += PROBED) asked.push(ask({ dimensions: dimensions.slice(at, at + PROBED).map(({ name }) => name) }));
    for (let at = 0; at < measures.length; at += PROBED) asked.push(ask({ ...(time ? { dimensions: [time] } : {}), measures: measures.slice(at, at + PROBED).map(({ name }) => name) }));
    const results = await Promise.allSettled(asked);
    const failed = results.find((one) => one.status === "rejected");
    if (failed && (results.every((one) => one.status === "rejected") || problemOf(failed.reason).at?.code !== "not-allowed")) throw failed.reason;
    return found;
  }

  private seen(fields: Field[] | undefined): Field[] {
    return (fields ?? []).flatMap((field) => {
      const column = this.columns.get(field.name);
      return column ? [{ ...field, title: visible(cut(column.display_name, SHOWN)) || field.title, type: column.type.toUpperCase() || field.type }] : [];
    });
  }

  /** All fields that the viewer may see. */
  allMeasures = $derived.by(() => this.seen(this.declared?.measures));
  allDimensions = $derived.by(() => this.seen(this.declared?.dimensions));

  private chosen(all: Field[], names: string[] | undefined): Field[] {
    const kept = names === undefined ? all : all.filter(({ name }) => names.includes(name));
    return kept.length > 0 || names?.length === 0 ? kept : all;
  }

  /** The fields that are shown, in the order of the file. */
  measures = $derived.by(() => this.chosen(this.allMeasures, this.view.measures ?? this.declared?.defaults.measures));
  dimensions = $derived.by(() => this.chosen(this.allDimensions, this.view.dimensions ?? this.declared?.defaults.dimensions));

  time = $derived.by(() => this.declared?.time);
  zone = $derived.by(() => {
    const { zones = [], isZoneFixed = false } = this.declared ?? {};
    return (isZoneFixed ? undefined : this.view.zone) ?? zones[0] ?? "UTC";
  });
  /** The zone in which times are shown: days of a calendar have none. */
  clock = $derived.by(() => (this.columns.get(this.time ?? "")?.type.toUpperCase() === "DATE" ? "UTC" : this.zone));
  private isRange = (range: string) => !this.declared || this.declared.allowsCustom || this.declared.ranges.some((one) => one.range === range);
  range = $derived.by(() => {
    if (!this.declared?.time) return undefined;
    const { ranges, defaults } = this.declared;
    return (this.view.range && this.isRange(this.view.range) ? this.view.range : undefined) ?? defaults.range ?? ranges[0]?.range ?? "inf";
  });
  compare = $derived.by(() => {
    const said = this.view.compare ?? (this.view.by || !this.declared?.defaults.compares ? "none" : "-1P");
    return said === "none" || this.range === "inf" || !this.range ? undefined : said;
  });
  by = $derived.by(() => {
    const said = this.view.by ?? (this.view.compare ? "none" : this.declared?.defaults.by);
    return this.allDimensions.find(({ name }) => name === said);
  });
  /** The length of the range as it was resolved, in milliseconds; 0 while that is not known. */
  length = $derived.by(() => {
    const [start, end] = [instant(this.span?.range.start ?? ""), instant(this.span?.range.end ?? "")];
    return start === undefined || end === undefined || this.span?.of !== this.range + this.zone ? 0 : end - start;
  });
  grains = $derived.by(() => grainsOf(this.length, this.declared?.smallest));
  grain = $derived.by((): Grain => {
    const asked = this.view.grain;
    return asked && this.grains.includes(asked) ? asked : proposed(this.length, this.declared?.smallest);
  });

  private types = $derived.by(() => new Map(this.allDimensions.map(({ name, type }) => [name.toLowerCase(), type])));
  /** Conditions on fields that the viewer may not see, or that are gone: they are named, and left out. */
  idle = $derived.by(() => this.view.filters.filter((one) => !this.knows(one.field) || (one.sort === "groups" && !this.allMeasures.some(({ name }) => name === one.measure))));
  private knows = (field: string) => this.allDimensions.some(({ name }) => name === field);
  frame = $derived.by(
    (): Frame => ({ range: this.range, zone: this.zone, compare: this.compare, filters: this.view.filters.filter((one) => !this.idle.includes(one)), types: this.types }),
  );
  /** Measures that can be computed without neighbouring groups. */
  plain = $derived.by(() => this.measures.filter(({ needs }) => needs.length === 0));
  order = $derived.by((): Order | undefined => {
    const measure = this.plain.find(({ name }) => name === this.view.sort) ?? this.plain[0];
    return measure && { measure: measure.name, rank: this.view.rank, isAscending: this.view.isAscending };
  });
  /** Words of the address that had no effect. */
  unread = $derived.by(() => {
    const { view, declared } = this;
    if (!declared) return view.unread;
    const all = [...view.unread];
    if (view.range && this.range !== view.range) all.push(`range=${view.range}`);
    if (view.zone && this.zone !== view.zone) all.push(`zone=${view.zone}`);
    if (view.by && view.by !== "none" && this.by?.name !== view.by) all.push(`by=${view.by}`);
    if (view.grain && this.length > 0 && this.grain !== view.grain) all.push(`grain=${view.grain}`);
    if (view.sort && this.order?.measure !== view.sort) all.push(`sort=${view.sort}`);
    return all;
  });
}

export const [useLook, setLook] = createContext<Look>();
