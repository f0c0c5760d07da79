// Charts on two axes: what lines, areas and bars are made of, before a spec says how they look.

import { endOf } from "../../explore/moments";
import { instant } from "../../explore/format/time";
import { fieldOf, keyOf, measured, MOST_POINTS, Names, NO_VALUE, tip, Undrawable, type Answer, type Field } from "./answer";
import { answerOf, arranged, byRow, compared, judgeFields, valuesOf, type Chart, type Ground, type Row, type Value } from "./chart";
import { coloursFor, fixedColour } from "./palette";
import { channel, type Channel } from "./settings";

/** One line, or all bars of one colour. */
export interface Series {
  name: string;
  colour: string;
  measure: Field;
  /** The value of the dimension that the series stands for; none where it stands for a measure. */
  value: unknown;
}

/** All that is drawn on two axes. */
export interface Across {
  answer: Answer;
  x: Field;
  y: Field;
  along: Channel;
  up: Channel;
  colour: Channel;
  by: Field | undefined;
  series: Series[];
  /** Places on the axis of the dimension, in order: times, or names. */
  places: (number | string)[];
  /** A row for each place and series, in the order of places; those that are missing have no value. */
  rows: Row[];
  isTime: boolean;
  /** Where the axis of times begins and ends. */
  ends: [number, number] | undefined;
  /** True if the dimension goes up, and the measure goes along. */
  isLying: boolean;
  notes: string[];
  /** The dimension that a click filters by. */
  chosen: Field | undefined;
  pick: Chart["pick"];
}

/** The most series that a chart has, unless its author limits them. */
const MOST_SERIES = 30;

/** Charts that put the figures of one place on each other. */
const STACKED = new Set(["stacked_bar", "stacked_bar_normalized", "area_chart"]);

/** Reads what a chart on two axes is made of. `keys` are the channels of its measures. */
export function across(ground: Ground, keys: string[] = ["y"]): Across {
  const answer = answerOf(ground);
  const notes: string[] = [];
  const [first, ...rest] = keys.map((key) => channel(ground.properties, key));
  let [along, up] = [channel(ground.properties, "x"), first!];
  const colour = channel(ground.properties, "color");
  const field = (of: Channel) => (of.fields[0] === undefined ? undefined : fieldOf(answer, of.fields[0]));
  const isLying = rest.length === 0 && field(along)?.sort === "measure" && field(up) !== undefined && field(up)?.sort !== "measure";
  if (isLying) [along, up] = [up, along];
  const x = field(along);
  if (!x) throw new Undrawable("The chart needs a field for “x”.");
  const named = [up, ...rest].flatMap(({ fields }) => fields);
  const by = rest.length > 0 || colour.isMeasures || colour.fields[0] === undefined ? undefined : fieldOf(answer, colour.fields[0]);
  const measures = (by ? named.slice(0, 1) : named).map((name) => fieldOf(answer, name));
  const y = measures[0];
  if (!y) throw new Undrawable("The chart needs a measure for “y”.");
  judgeFields(answer, [x, by]);
  const isTime = x.sort === "time";

  const rows = isTime ? answer.rows.filter((row) => typeof row[x.place] === "string" && instant(row[x.place] as string) !== undefined) : answer.rows;
  if (rows.length < answer.rows.length) notes.push(`${(answer.rows.length - rows.length).toLocaleString()} rows without a time are not drawn.`);
  const names = new Names(x);
  const at = (row: unknown[]): number | string => (isTime ? instant(row[x.place] as string)! : names.of(row[x.place]));
  const own = isLying ? "y" : "x";
  const values = isTime ? [] : arranged(valuesOf(x, rows, names, y, STACKED.has(ground.renderer)), along, own, notes, x.title);
  // A limit counts names: of times all are drawn.
  let places: (number | string)[] = isTime ? [...new Set(rows.map(at))].sort(compared) : values.map(({ name }) => name);

  const series = seriesOf(ground, { by, measures, colour, rows, notes });
  const most = Math.max(Math.floor(MOST_POINTS / series.length), 1);
  if (places.length > most) {
    notes.push(`The first ${most.toLocaleString()} of ${places.length.toLocaleString()} places are drawn: a chart has ${MOST_POINTS.toLocaleString()} points at most.`);
    places = places.slice(0, most);
  }
  if (isTime) places = withGaps(places as number[], x);

  const found = new Map<string, number>();
  for (const [place, row] of rows.entries()) found.set(`${at(row)}\u0000${by ? keyOf(row[by.place]) : ""}`, place);
  const drawn: Row[] = [];
  for (const place of places) {
    for (const [slot, one] of series.entries()) {
      const source = found.get(`${place}\u0000${by ? keyOf(one.value) : ""}`);
      const row = source === undefined ? undefined : rows[source];
      const value = row ? measured(row[one.measure.place]) : null;
      const text = row ? one.measure.text(row[one.measure.place]) : NO_VALUE;
      const label = row ? x.text(row[x.place]) : "";
      drawn.push({ x: place, s: one.name, slot, y: value, y0: 0, row: source ?? -1, tip: row ? tip([x.title, isTime ? label : String(place)], ...(by ? [[by.title, one.name] as [string, string]] : []), [one.measure.title, text]) : "" });
    }
  }
  const chosen = x.sort === "words" ? x : by?.sort === "words" ? by : undefined;
  return { answer, x, y, along, up, colour, by, series, places, rows: drawn, isTime, ends: isTime ? [Math.min(...(places as number[])), Math.max(...(places as number[]))] : undefined, isLying, notes, chosen, pick: byRow(chosen, rows) };
}

function seriesOf({ palette, renderer }: Ground, { by, measures, colour, rows, notes }: { by: Field | undefined; measures: Field[]; colour: Channel; rows: unknown[][]; notes: string[] }): Series[] {
  if (by) {
    const measure = measures[0]!;
    const values = arranged(valuesOf(by, rows, new Names(by), measure, STACKED.has(renderer)), colour, "color", notes, by.title, MOST_SERIES);
    const colours = coloursFor(palette, values, colour);
    return values.map(({ value, name }, place) => ({ name, colour: colours[place]!, measure, value }));
  }
  if (measures.length === 1) {
    const [measure] = measures as [Field];
    const mapped = coloursFor(palette, [{ value: measure.column.name, name: measure.title }], colour)[0]!;
    return [{ name: measure.title, colour: colour.mapping.length > 0 ? mapped : fixedColour(palette, colour.fixed), measure, value: undefined }];
  }
  const titles = new Names({ text: (place) => measures[place as number]!.title });
  const all: Value[] = measures.map(({ column }, place) => ({ value: column.name, name: titles.of(place), size: 0, isPeak: false }));
  const colours = coloursFor(palette, all, colour);
  return all.map(({ name }, place) => ({ name, colour: colours[place]!, measure: measures[place]!, value: undefined }));
}

/** Adds a place where a bucket is missing, so that lines stop there. */
function withGaps(times: number[], { grain }: Field): number[] {
  if (!grain) return times;
  return times.flatMap((time, place) => {
    const [next, end] = [times[place + 1], endOf(time, grain)];
    return next !== undefined && next - time > (end - time) * 1.5 ? [time, end] : [time];
  });
}

/** Marks values that stand alone between gaps, where no line would show them. */
export function withLone({ rows, series }: Across): void {
  const count = series.length;
  for (const [place, row] of rows.entries()) {
    const near = [rows[place - count], rows[place + count]].some((one) => one && one.y !== null);
    row.lone = row.y !== null && !near;
  }
}

/** Puts values on top of each other, those below zero downwards; as shares of each place where `isShare`. What is missing has no height. */
export function stacked({ rows, series }: Across, isShare: boolean): void {
  for (let start = 0; start < rows.length; start += series.length) {
    const group = rows.slice(start, start + series.length);
    const whole = group.reduce((sum, { y }) => sum + Math.abs((y as number | null) ?? 0), 0);
    let [above, below] = [0, 0];
    for (const row of group) {
      if (row.y === null) {
        row.y0 = null;
        continue;
      }
      const value = row.y as number;
      const height = isShare ? (whole === 0 ? 0 : value / whole) : value;
      row.y0 = height < 0 ? below : above;
      row.y = row.y0 + height;
      if (height < 0) below = row.y;
      else above = row.y;
      if (isShare) row.tip += `\nshare: ${(Math.abs(height) * 100).toFixed(1)}%`;
    }
  }
}

/** Gives bars over time their beginnings and ends: buckets with some room, shared by bars that stand beside each other. */
export function spread(found: Across, isBeside: boolean): void {
  const { rows, x, series, places } = found;
  const times = places as number[];
  const least = Math.min(...times.slice(1).map((time, place) => time - times[place]!), Infinity);
  const lengthOf = (start: number) => (x.grain ? endOf(start, x.grain) - start : Number.isFinite(least) ? least : 86_400_000);
  for (const row of rows) {
    const start = row.x as number;
    const whole = lengthOf(start);
    const [count, slot] = isBeside ? [series.length, row.slot as number] : [1, 0];
    const wide = (whole * 0.84) / count;
    row.x = start + whole * 0.08 + wide * slot;
    row.x2 = (row.x as number) + wide;
  }
  if (found.ends) found.ends[1] += lengthOf(found.ends[1]);
}
