// What is looked at: fields of a view, or of several, as the address and its viewer's policies leave them.

import { createContext, untrack } from "svelte";
import type { ProblemDocument, Schemas } from "../../api";
import { cut, SHOWN, visible } from "../../parts/text";
import { go, place } from "../../router";
import type { Service } from "../../service";
import { read, write, type Kind, type View } from "./address";
import type { Answer, Asking, Told } from "./asking";
import type { Declared, Field } from "./declared";
import type { Column } from "./format";
import { grainsOf, proposed } from "./grains";
import { instant, type Grain } from "./format/time";
import { comparison, type Frame, type Order, type Query } from "./questions";

type Bounds = Schemas["MetricsBoundsDocument"];

/** What all that is looked at on one page has in common. */
export class Shared {
  /** The user as whom an admin looks. */
  as = $state<string>();
  /** Counts what makes all answers old: a build behind the view that a person has taken note of. */
  round = $state(0);
  /** The instant under the cursor of all charts, in milliseconds. */
  cursor = $state<number>();
  /** Questions without an answer yet. */
  pending = $state(0);
  /** Counts changes of the author's colours, for what is drawn and not styled. */
  paints = $state(0);
  /** True while all is drawn, in sight or not. */
  isWhole = $state(false);
}

/** Where the values of a field are asked for. */
export interface Source {
  asking: Asking | undefined;
  frame: Frame;
  allMeasures: Field[];
}

/** Returns true if a problem says that what was shown is not there any more, or not for the viewer. */
export const isClosed = ({ status }: ProblemDocument): boolean => status === 403 || status === 404;

/** A time apart from that of the page. */
export interface Own {
  range: string | undefined;
  compare: string | undefined;
  zone: string | undefined;
  grain: Grain | undefined;
  /** Words of it that mean nothing here. */
  unread: string[];
}

export abstract class Look {
  declared = $state.raw<Declared>();
  problem = $state.raw<ProblemDocument>();
  bounds = $state.raw<Bounds>();
  /** The range that the service made of the present one, and the one that it is compared with, as `by` says. */
  span = $state.raw<{ range: Schemas["MetricsRange"]; compared: Schemas["MetricsRange"] | undefined; of: string; by: string | undefined }>();
  protected columns = $state.raw(new Map<string, Column>());
  /** Where answers come from, once that is known. */
  protected from = $state.raw<Asking>();

  constructor(
    protected readonly service: Service,
    readonly kind: Kind,
    readonly name: string,
    readonly shared = new Shared(),
  ) {}

  /** Reads what is declared. */
  abstract load: () => Promise<void>;
  /** True if the next answer to that makes all others old. */
  private isOld = false;
  /** Reads anew what is declared, since files have changed, and then asks anew for all that is shown. */
  reload(): void {
    this.isOld = true;
    void this.load();
  }
  /** Called when what is declared has been read. */
  protected loaded(): void {
    if (this.isOld) this.renew();
    this.isOld = false;
  }
  /** Asks anew for all that is shown. */
  renew(): void {
    this.shared.round += 1;
  }
  /** Looks as somebody else: nothing of what was shown before stays. */
  abstract lookAs(email: string | undefined): void;

  get as(): string | undefined {
    return this.shared.as;
  }
  get round(): number {
    return this.shared.round;
  }
  set round(round: number) {
    this.shared.round = round;
  }

  /** Where parts of the page ask; none while nothing may be asked. */
  get asking(): Asking | undefined {
    return this.from;
  }
  /** Where the values of a field are asked for. */
  of(_field: string): Source {
    return this;
  }
  /** True if a person may set filters. */
  get mayFilter(): boolean {
    return true;
  }
  /** Fields whose filter is always shown, and those without which nothing is asked. */
  get pinned(): { field: Field; isRequired: boolean }[] {
    return [];
  }
  /** The conditions that the file begins with, for people. */
  get beginnings(): string[] {
    return [];
  }
  /** The condition in SQL that the file begins with; empty for none. */
  get begun(): string {
    return "";
  }
  /** The time that is looked at instead of that of the page. */
  get own(): Own | undefined {
    return undefined;
  }

  view = $derived.by(() => read(place.url.searchParams, this.kind));

  /** Changes the view, and with it the address. */
  change = (patch: { [Key in keyof View]?: View[Key] | undefined }): void => {
    const next = { ...this.view, ...patch } as View;
    for (const [key, value] of Object.entries(patch)) if (value === undefined) delete next[key as keyof View];
    const words = write(next).toString();
    go(place.url.pathname + (words ? `?${words}` : ""));
  };

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
  /** The type of the time; empty while it is not known. */
  timeType = $derived.by(() => this.columns.get(this.time ?? "")?.type.toUpperCase() ?? "");
  zone = $derived.by(() => {
    if (this.own?.zone) return this.own.zone;
    const { zones = [], isZoneFixed = false } = this.declared ?? {};
    return (isZoneFixed ? undefined : this.view.zone) ?? zones[0] ?? "UTC";
  });
  /** The zone in which times are shown: days of a calendar have none. */
  clock = $derived.by(() => (this.timeType === "DATE" ? "UTC" : this.zone));
  /** The smallest grain that the time is cut to. */
  smallest = $derived.by((): Grain | undefined => this.declared?.smallest ?? (this.timeType === "DATE" ? "day" : undefined));
  /** Takes note of what an answer tells of all others. */
  heard(_told: Told, _query: Query): void {}
  /** Takes note of the range that the service made of the words of a question. */
  resolve({ time_range: range, comparison_time_range: compared }: Answer, { time_range: words, comparison_time_range: other, time_zone: zone }: Query): void {
    if (!range) return;
    const [of, by, last] = untrack(() => [`${words}${zone}`, this.compare, this.span] as const);
    const isCompared = by !== undefined && compared && JSON.stringify(other) === JSON.stringify(comparison(by));
    // Many a part compares nothing: what another one was told holds on.
    const known = isCompared ? compared : last?.of === of && last.by === by ? last.compared : undefined;
    this.span = { range, compared: by === undefined ? undefined : known, of, by };
  }
  /** What the present range is compared with, as far as that is known. */
  compared = $derived.by(() => (this.span?.of === `${this.range}${this.zone}` && this.span.by === this.compare ? this.span.compared : undefined));
  private isRange = (range: string) => !this.declared || this.declared.allowsCustom || this.declared.ranges.some((one) => one.range === range);
  range = $derived.by(() => {
    if (!this.declared?.time) return undefined;
    if (this.own?.range) return this.own.range;
    const { ranges, defaults } = this.declared;
    return (this.view.range && this.isRange(this.view.range) ? this.view.range : undefined) ?? defaults.range ?? ranges[0]?.range ?? "inf";
  });
  compare = $derived.by(() => {
    const { range, compare: own = range && "none" } = this.own ?? {};
    const said = own ?? this.view.compare ?? (this.view.by || !this.declared?.defaults.compares ? "none" : "-1P");
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
  grains = $derived.by(() => grainsOf(this.length, this.smallest));
  grain = $derived.by((): Grain => {
    const asked = this.view.grain;
    return asked && this.grains.includes(asked) ? asked : proposed(this.length, this.smallest);
  });

  private types = $derived.by(() => new Map(this.allDimensions.map(({ name, type }) => [name.toLowerCase(), type])));
  /** Conditions on fields that the viewer may not see, or that are gone: they are named, and left out. */
  idle = $derived.by(() => this.view.filters.filter((one) => !this.knows(one.field) || (one.sort === "groups" && !this.allMeasures.some(({ name }) => name === one.measure))));
  private knows = (field: string) => this.allDimensions.some(({ name }) => name === field);
  frame = $derived.by(
    (): Frame => ({ range: this.range, zone: this.zone, compare: this.compare, filters: this.mayFilter ? this.view.filters.filter((one) => !this.idle.includes(one)) : [], types: this.types, where: this.begun }),
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
