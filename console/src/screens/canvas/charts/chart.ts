// What all kinds of charts have in common: what they are made of, axes, legends, and the orders of values.

import type { TopLevelSpec } from "vega-lite";
import { labelled } from "../../explore/chart";
import { labelOf } from "../../explore/moments";
import type { Grain } from "../../explore/format/time";
import { dimensionOf, keyOf, measured, MOST_POINTS, Names, Undrawable, words, type Answer, type Field } from "./answer";
import type { Palette } from "./palette";
import type { Channel, Loose } from "./settings";

/** What a chart is drawn from. */
export interface Ground {
  renderer: string;
  properties: Loose;
  answers: Answer[];
  palette: Palette;
  width: number;
  height: number;
}

/** A chart, ready to be drawn. */
export interface Chart {
  spec: TopLevelSpec;
  /** What its frame says beside it: what was left out, and why. */
  notes: string[];
  /** What it shows, for who can't see it. */
  summary: string;
  /** The dimension and the value behind a mark; none where a click says nothing. */
  pick: (datum: Loose) => Picked;
  /** The axis along which the pointer finds the nearest point; none where it has to meet what it tells of. */
  nearest?: "x" | "y";
}

export type Picked = [dimension: string, value: unknown] | undefined;

/** Finds what is behind a mark by its row in the answer. */
export const byRow = (field: Field | undefined, rows: unknown[][]) => (datum: Loose): Picked => {
  const row = typeof datum.row === "number" ? rows[datum.row] : undefined;
  return field?.sort === "words" && row ? [dimensionOf(field), row[field.place]] : undefined;
};

/** One row of the data: names of ours, and never those of a project. */
export type Row = Record<string, string | number | boolean | null>;

/** Returns the only answer that the chart draws. */
export function answerOf({ answers }: Ground): Answer {
  const answer = answers[0];
  if (!answer) throw new Undrawable("Nothing was asked for this chart.");
  return answer;
}

/** Returns the name of the field of a channel; throws where it has none. */
export function named(channel: Channel, key: string): string {
  const name = channel.fields[0];
  if (name === undefined) throw new Undrawable(`The chart needs a field for “${key}”.`);
  return name;
}

/** Throws where rows differ by a field that has no place in the chart: they would stand for one another. */
export function judgeFields({ columns }: Answer, shown: (Field | undefined)[]): void {
  const left = columns.find(({ role }, place) => role !== "measure" && role !== "computed" && !shown.some((field) => field?.place === place));
  if (left) throw new Undrawable(`The chart draws no “${words(left.display_name || left.name)}”, by which its rows differ.`);
}

/** Cuts rows to those that are drawn, and says so. */
export function drawn<T>(rows: T[], notes: string[], what = "points"): T[] {
  if (rows.length <= MOST_POINTS) return rows;
  notes.push(`The first ${MOST_POINTS.toLocaleString()} of ${rows.length.toLocaleString()} ${what} are drawn.`);
  return rows.slice(0, MOST_POINTS);
}

/** A value of a dimension, with its text and its size among others. */
export interface Value {
  value: unknown;
  name: string;
  size: number;
  /** True if the size is the largest of several. */
  isPeak: boolean;
}

/** Collects the values of a dimension in the order of the answer. What is measured several times for one value need not add up, as means don't: its size is the largest of them, or their sum where the chart itself puts them on each other. */
export function valuesOf(field: Field, rows: unknown[][], names: Names, measure: Field | undefined, adds = false): Value[] {
  const found = new Map<string, Value>();
  for (const row of rows) {
    const value = row[field.place];
    const key = keyOf(value);
    const known = found.get(key);
    const size = (measure && measured(row[measure.place])) ?? -Infinity;
    if (!known) found.set(key, { value, name: names.of(value), size, isPeak: false });
    else if (adds) known.size = Math.max(known.size, 0) + Math.max(size, 0);
    else [known.size, known.isPeak] = [Math.max(known.size, size), true];
  }
  return [...found.values()];
}

const collator = new Intl.Collator(undefined, { numeric: true });
/** Orders values as people do: numbers by size, texts by their letters, what is missing last. */
export function compared(a: unknown, b: unknown): number {
  if (a === null || a === undefined || b === null || b === undefined) return Number(a == null) - Number(b == null);
  return typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
}

/** Orders and limits the values of a dimension as its channel says. `own` is the name of the channel itself; every other name stands for the measure. */
export function arranged(all: Value[], channel: Channel, own: string, notes: string[], title: string, most = Infinity, falls = false): Value[] {
  const { sort, limit } = channel;
  const kept = channel.showsMissing ? all : all.filter(({ value }) => value !== null && value !== undefined);
  const byName = (a: Value, b: Value) => compared(a.value, b.value);
  const bySize = (a: Value, b: Value) => b.size - a.size || byName(a, b);
  const key = typeof sort === "string" ? sort.replace(/^[-+]/, "") : undefined;
  const sign = typeof sort === "string" && sort.startsWith("-") ? -1 : 1;
  const listed = Array.isArray(sort) ? new Map(sort.map((value, place) => [String(value).toLowerCase(), place])) : undefined;
  const place = ({ value, name }: Value) => listed?.get(String(value).toLowerCase()) ?? listed?.get(name.toLowerCase()) ?? Infinity;
  const order = listed ? (a: Value, b: Value) => (place(a) === place(b) ? byName(a, b) : place(a) - place(b)) : key === own || key === "label" ? (a: Value, b: Value) => sign * byName(a, b) : key !== undefined ? (a: Value, b: Value) => -sign * bySize(a, b) : falls ? bySize : byName;
  const bound = Math.min(limit ?? Infinity, most);
  if (kept.length <= bound) return [...kept].sort(order);
  // Without an order of its own a limit keeps what is largest.
  const first = [...kept].sort(sort === undefined ? bySize : order).slice(0, bound);
  const isByPeak = kept.some(({ isPeak }) => isPeak) && !listed && key !== own && key !== "label";
  notes.push(`${bound.toLocaleString()} of ${kept.length.toLocaleString()} values of ${title} are drawn${isByPeak ? ": the order is that of the largest figure of each" : ""}.`);
  return first.sort(order);
}

/** The pattern and the type of a format of ours, for an axis of numbers; nothing where the view has no format. */
export function numberFormat({ column }: Field): { format: string; formatType: string } | undefined {
  if (!column.format_d3 && !column.format_preset) return undefined;
  return { format: JSON.stringify([column.format_d3 ?? "", column.format_preset ?? ""]), formatType: "watershedNumber" };
}

/** An axis of numbers. */
export function numberAxis(field: Field, { title, isTitled }: Channel, height: number): Loose {
  return { title: isTitled ? (title ?? field.title) : null, ...numberFormat(field), tickCount: Math.max(Math.min(Math.floor(height / 48), 8), 2) };
}

/** The scale of an axis of numbers. */
export function numberScale({ isFromZero, min, max }: Channel, byDefault: boolean): Loose {
  return { zero: isFromZero ?? byDefault, nice: true, ...(min === undefined ? {} : { domainMin: min }), ...(max === undefined ? {} : { domainMax: max }) };
}

/** An axis of times, labelled by the clock of the zone at beginnings of buckets. */
export function timeAxis(field: Field, { title, isTitled, angle }: Channel, times: number[], width: number): Loose {
  const places = labelled(times.length, Math.max(width - 56, 96));
  const form = JSON.stringify([field.grain ?? "day", field.zone]);
  return { title: isTitled && title ? title : null, values: places.map((place) => times[place]!), format: form, formatType: "watershedTime", labelFlush: true, ...(angle === undefined ? {} : { labelAngle: angle }) };
}

/** An axis of names: upright where they are short enough for that. */
export function namesAxis(title: string, { title: own, isTitled, angle }: Channel, names: string[], width: number, isLying: boolean): Loose {
  const longest = Math.max(...names.map((name) => name.length), 1);
  const fits = Math.min(longest, 22) * 7 * names.length < width;
  return { title: isTitled ? (own ?? title) : null, labelAngle: angle ?? (isLying || fits ? 0 : -40), labelOverlap: names.length * 16 > width, ...(isLying || fits ? {} : { labelLimit: 90 }) };
}

/** The legend of a chart's colours; none for one colour. */
export function legendOf({ legend }: Channel, names: string[], width: number): Loose | null {
  if (legend === "none" || names.length < 2) return null;
  const orient = legend ?? "top";
  const columns = Math.max(Math.floor(width / (Math.min(Math.max(...names.map((name) => name.length)), 22) * 7 + 32)), 1);
  return { title: null, orient, direction: orient === "left" || orient === "right" ? "vertical" : "horizontal", ...(orient === "top" || orient === "bottom" ? { columns } : {}) };
}

/** What is common to all specs of ours. */
export function framed({ width, height }: Ground, inner: Loose): TopLevelSpec {
  return { width, height, autosize: { type: "fit", contains: "padding" }, ...inner } as unknown as TopLevelSpec;
}

/** The short label of a time on an axis. */
export function timeLabel(at: number, form: string): string {
  const [grain, zone] = JSON.parse(form) as [Grain, string];
  return labelOf(grain, zone).short(at);
}
