// Parts of a whole, and steps that lead from many to few.

import { fieldOf, measured, Names, tip, Undrawable, type Answer, type Field } from "./answer";
import { answerOf, arranged, byRow, framed, judgeFields, legendOf, named, valuesOf, type Chart, type Ground, type Row } from "./chart";
import { coloursFor, fixedColour, rampOf } from "./palette";
import { channel, type Channel } from "./settings";

/** The most slices and steps, unless the author limits them. */
const MOST_PARTS = 30;

/** A part: a value of a dimension, or a measure. */
interface Part {
  value: unknown;
  name: string;
  row: number;
  measure: Field;
  size: number | null;
}

/** Reads the parts of a chart: the values of a dimension, or the measures of the only row. */
function partsOf(answer: Answer, measures: Field[], by: { field: Field; channel: Channel; own: string } | undefined, notes: string[], falls: boolean): Part[] {
  if (!by) {
    const row = answer.rows[0] ?? [];
    const titles = new Names({ text: (place) => measures[place as number]!.title });
    return measures.map((measure, place) => ({ value: measure.column.name, name: titles.of(place), row: -1, measure, size: measured(row[measure.place]) }));
  }
  const [measure] = measures as [Field];
  const names = new Names(by.field);
  const all = arranged(valuesOf(by.field, answer.rows, names, measure), by.channel, by.own, notes, by.field.title, MOST_PARTS, falls);
  const places = new Map(answer.rows.map((row, place) => [names.of(row[by.field.place]), place]));
  return all.map(({ value, name }) => {
    const row = places.get(name)!;
    return { value, name, row, measure, size: measured(answer.rows[row]![measure.place]) };
  });
}

/** A pie, or a ring with room for the whole. */
export function slices(ground: Ground): Chart {
  const { properties, palette, width, height, renderer } = ground;
  const answer = answerOf(ground);
  const notes: string[] = [];
  const key = properties.measure === undefined ? "theta" : "measure";
  const [size, colour] = [channel(properties, key), channel(properties, "color")];
  const measures = (size.fields.length > 0 ? size.fields : [named(size, key)]).map((name) => fieldOf(answer, name));
  const [dimension] = colour.isMeasures ? [] : colour.fields;
  const by = dimension === undefined ? undefined : fieldOf(answer, dimension);
  judgeFields(answer, [by]);
  const all = partsOf(answer, measures, by && { field: by, channel: colour, own: "color" }, notes, true);
  const parts = all.filter((part): part is Part & { size: number } => part.size !== null && part.size > 0);
  if (all.some((one) => one.size !== null && one.size < 0)) notes.push("Values below zero can't be parts of a whole: they are not drawn.");
  const missing = all.filter((one) => one.size === null).length;
  if (missing > 0) notes.push(`${missing} of ${all.length} have no value.`);
  if (parts.length === 0) throw new Undrawable("Nothing is above zero, so there is nothing to draw.");
  const sum = parts.reduce((total, part) => total + part.size, 0);
  const rows = parts.map(({ name, size, row, measure }, slot): Row => {
    const text = row < 0 ? measure.text(answer.rows[0]?.[measure.place]) : measure.text(answer.rows[row]![measure.place]);
    return { s: name, v: size, slot, row, tip: tip([by?.title ?? "measure", name], [measure.title, text], ["share of what is drawn", `${((size / sum) * 100).toFixed(1)}%`]) };
  });
  const names = parts.map(({ name }) => name);
  const inner = typeof properties.innerRadius === "number" ? properties.innerRadius : renderer === "donut_chart" ? 50 : 0;
  // The legend takes its room first.
  const radius = "max(min(width, height) / 2 - 4, 8)";
  const arcs = {
    data: { values: rows },
    mark: { type: "arc", outerRadius: { expr: radius }, innerRadius: { expr: `${Math.min(Math.max(inner, 0), 95) / 100} * ${radius}` }, cursor: by ? "pointer" : "default" },
    encoding: {
      theta: { field: "v", type: "quantitative", stack: true },
      order: { field: "slot", type: "quantitative" },
      color: { field: "s", type: "nominal", sort: null, scale: { domain: names, range: coloursFor(palette, parts, colour) }, legend: legendOf({ ...colour, legend: colour.legend ?? (width > height ? "right" : "top") }, names, width) },
      tooltip: { field: "tip", type: "nominal" },
    },
  };
  // A whole is what the service says it is: measures need not add up.
  const [measure] = measures as [Field];
  const whole = answer.totals?.[measure.place];
  if (size.showsTotal && whole === undefined) notes.push("The answer has no total.");
  const spec = framed(ground, size.showsTotal && whole !== undefined && inner > 0 ? { layer: [arcs, { data: { values: [{ t: measure.text(whole) }] }, mark: { type: "text", fontSize: 18 }, encoding: { text: { field: "t" } } }] } : arcs);
  return { spec, notes, summary: `${renderer === "donut_chart" ? "ring" : "pie"} of ${measure.title}${by ? ` by ${by.title}` : ""}, ${parts.length} parts`, pick: byRow(by, answer.rows) };
}

/** Steps from many to few, each as wide as what is left. */
export function funnel(ground: Ground): Chart {
  const { properties, palette, width, height } = ground;
  const answer = answerOf(ground);
  const notes: string[] = [];
  const [stage, size, colour] = [channel(properties, "stage"), channel(properties, "measure"), channel(properties, "color")];
  named(size, "measure");
  const isByMeasures = properties.breakdownMode === "measures" || stage.fields.length === 0;
  const measures = (isByMeasures ? size.fields : size.fields.slice(0, 1)).map((name) => fieldOf(answer, name));
  const by = isByMeasures ? undefined : fieldOf(answer, named(stage, "stage"));
  judgeFields(answer, [by]);
  const steps = partsOf(answer, measures, by && { field: by, channel: stage, own: "stage" }, notes, true);
  const known = steps.map(({ size }) => Math.max(size ?? 0, 0));
  const most = Math.max(...known, 0);
  if (most === 0) throw new Undrawable("Nothing is above zero, so there is nothing to draw.");
  if (steps.some(({ size }) => size !== null && size < 0)) notes.push("Values below zero have no width.");
  const isByOrder = properties.mode === "order";
  const isOfPrevious = properties.percentMode === "previous";
  const percent = (value: number, of: number | null | undefined) => (of ? `${((value / of) * 100).toFixed(1)}%` : "");
  const rows = steps.map(({ name, size, row, measure }, place): Row => {
    const text = measure.text((row < 0 ? answer.rows[0] : answer.rows[row])?.[measure.place]);
    const [ofFirst, ofPrevious] = size === null ? ["", ""] : [percent(size, steps[0]!.size), percent(size, place === 0 ? size : steps[place - 1]!.size)];
    const wide = size === null ? null : (isByOrder ? (steps.length - place) / steps.length : Math.max(size, 0) / most) / 2;
    const share = isOfPrevious ? ofPrevious : ofFirst;
    return { s: name, x: wide === null ? null : -wide, x2: wide, v: size, row, end: wide ?? 0, label: `${text}${share ? `  ${share}` : ""}`, tip: tip([by?.title ?? "step", name], [measure.title, text], ["of the first", ofFirst || "-"], ["of the one before", ofPrevious || "-"]) };
  });
  const names = steps.map(({ name }) => name);
  const isByValue = colour.fixed === "value" || colour.fixed === "measure";
  const isByName = colour.fixed === "stage" || colour.fixed === "name" || colour.mapping.length > 0;
  const fill = isByValue ? { color: { field: "v", type: "quantitative", scale: { range: rampOf(palette, colour) }, legend: null } } : isByName ? { color: { field: "s", type: "nominal", sort: null, scale: { domain: names, range: coloursFor(palette, steps, colour) }, legend: null } } : {};
  const y = { field: "s", type: "nominal", sort: null, scale: { domain: names, paddingInner: 0.15 }, axis: { title: null, ticks: false, domain: false, labelLimit: Math.max(width * 0.3, 60) } };
  const x = (field: string) => ({ field, type: "quantitative", scale: { domain: [-0.5, 0.9], nice: false }, axis: null });
  const spec = framed(ground, {
    data: { values: rows },
    layer: [
      { transform: [{ filter: "isValid(datum.x)" }], mark: { type: "bar", orient: "horizontal", cursor: by ? "pointer" : "default", ...(isByValue || isByName ? {} : { color: fixedColour(palette, colour.fixed) }) }, encoding: { y, x: { ...x("x"), stack: null }, x2: { field: "x2" }, ...fill, tooltip: { field: "tip", type: "nominal" } } },
      { mark: { type: "text", align: "left", dx: 6, ...(height / names.length < 14 ? { fontSize: 9 } : {}) }, encoding: { y, x: x("end"), text: { field: "label" } } },
    ],
  });
  return { spec, notes, summary: `funnel of ${measures[0]!.title}${by ? ` by ${by.title}` : ""}, ${steps.length} steps`, pick: byRow(by, answer.rows) };
}
