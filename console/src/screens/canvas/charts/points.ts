// Points of two measures, and cells of two dimensions.

import { fieldOf, measured, Names, tip, type Field } from "./answer";
import { answerOf, arranged, byRow, compared, drawn, framed, judgeFields, legendOf, named, namesAxis, numberAxis, numberFormat, numberScale, valuesOf, type Chart, type Ground, type Row } from "./chart";
import { coloursFor, fixedColour, rampOf } from "./palette";
import { channel, type Channel, type Loose } from "./settings";

/** The most colours of points. */
const MOST_COLOURS = 30;

/** A point for each value of a dimension, where two measures put it. */
export function scatter(ground: Ground): Chart {
  const { properties, palette, width, height } = ground;
  const answer = answerOf(ground);
  const notes: string[] = [];
  const [along, up, colour, size, dots] = ["x", "y", "color", "size", "dimension"].map((key) => channel(properties, key)) as [Channel, Channel, Channel, Channel, Channel];
  const [x, y] = [fieldOf(answer, named(along, "x")), fieldOf(answer, named(up, "y"))];
  const optional = (of: Channel): Field | undefined => (of.fields[0] === undefined ? undefined : fieldOf(answer, of.fields[0]));
  const [by, large, dot] = [optional(colour), optional(size), optional(dots)];
  const isRamp = by?.sort === "measure";
  const names = by && !isRamp ? new Names(by) : undefined;
  const values = by && names ? arranged(valuesOf(by, answer.rows, names, y), colour, "color", notes, by.title, MOST_COLOURS) : [];
  const shown = new Set(values.map(({ name }) => name));
  const points = answer.rows.flatMap((row, place): Row[] => {
    const [at, high] = [measured(row[x.place]), measured(row[y.place])];
    const name = by && names ? names.of(row[by.place]) : "";
    if (at === null || high === null || (names && !shown.has(name))) return [];
    const told = [...new Set([dot, by, x, y, large])].filter((one): one is Field => one !== undefined);
    return [{ x: at, y: high, s: by && isRamp ? measured(row[by.place]) : name, z: large ? measured(row[large.place]) : null, row: place, tip: tip(...told.map((one): [string, string] => [one.title, one.text(row[one.place])])) }];
  });
  const missing = answer.rows.filter((row) => measured(row[x.place]) === null || measured(row[y.place]) === null).length;
  if (missing > 0) notes.push(`${missing.toLocaleString()} points have no value of ${x.title} or ${y.title}.`);
  const chosen = dot ?? (isRamp ? undefined : by);
  const all = drawn(dots.limit === undefined ? points : points.sort((a, b) => (b.y as number) - (a.y as number)).slice(0, dots.limit), notes);
  const encoding: Loose = {
    x: { field: "x", type: "quantitative", scale: numberScale(along, false), axis: { ...numberAxis(x, along, width / 2), grid: true } },
    y: { field: "y", type: "quantitative", scale: numberScale(up, false), axis: numberAxis(y, up, height) },
    ...(names ? { color: { field: "s", type: "nominal", sort: null, scale: { domain: values.map(({ name }) => name), range: coloursFor(palette, values, colour) }, legend: legendOf(colour, values.map(({ name }) => name), width) } } : {}),
    ...(by && isRamp ? { color: rampColour(by, colour, ground) } : {}),
    ...(large ? { size: { field: "z", type: "quantitative", scale: { zero: true, range: [16, 400] }, legend: null } } : {}),
    tooltip: { field: "tip", type: "nominal" },
  };
  const spec = framed(ground, {
    data: { values: all },
    mark: { type: "point", filled: true, opacity: 0.75, size: 48, invalid: "filter", ...(by ? {} : { color: fixedColour(palette, colour.fixed) }), cursor: chosen ? "pointer" : "default" },
    encoding,
  });
  return { spec, notes, summary: `points of ${y.title} by ${x.title}, ${all.length.toLocaleString()} values`, pick: byRow(chosen, answer.rows) };
}

/** Colours of a measure, from few to many. */
function rampColour(field: Field, colour: Channel, { palette }: Ground): Loose {
  const legend = colour.legend === "none" ? null : { title: field.title, ...numberFormat(field), ...(colour.legend ? { orient: colour.legend } : { orient: "right" }), gradientLength: 100 };
  return { field: "s", type: "quantitative", scale: { range: rampOf(palette, colour), zero: false, ...(colour.min === undefined ? {} : { domainMin: colour.min }), ...(colour.max === undefined ? {} : { domainMax: colour.max }) }, legend };
}

/** A cell for each pair of values of two dimensions, coloured by a measure. */
export function heatmap(ground: Ground): Chart {
  const { properties, width, height } = ground;
  const answer = answerOf(ground);
  const notes: string[] = [];
  const [along, up, colour] = ["x", "y", "color"].map((key) => channel(properties, key)) as [Channel, Channel, Channel];
  const [x, y, z] = [fieldOf(answer, named(along, "x")), fieldOf(answer, named(up, "y")), fieldOf(answer, named(colour, "color"))];
  judgeFields(answer, [x, y]);
  const [across, upright] = [new Names(x), new Names(y)];
  // A limit counts names: of times all are drawn.
  const free = (field: Field, of: Channel): Channel => (field.sort === "time" ? { ...of, limit: undefined } : of);
  const columns = arranged(valuesOf(x, answer.rows, across, z), free(x, along), "x", notes, x.title);
  const lines = arranged(valuesOf(y, answer.rows, upright, z), free(y, up), "y", notes, y.title);
  if (x.sort === "time" && along.sort === undefined) columns.sort((a, b) => compared(a.value, b.value));
  const [inColumns, inLines] = [new Set(columns.map(({ name }) => name)), new Set(lines.map(({ name }) => name))];
  const cells = answer.rows.flatMap((row, place): Row[] => {
    const [at, high, value] = [across.of(row[x.place]), upright.of(row[y.place]), measured(row[z.place])];
    if (value === null || !inColumns.has(at) || !inLines.has(high)) return [];
    return [{ x: at, y: high, s: value, row: place, tip: tip([x.title, at], [y.title, high], [z.title, z.text(row[z.place])]) }];
  });
  const all = drawn(cells, notes, "cells");
  const chosen = x.sort === "words" ? x : y.sort === "words" ? y : undefined;
  const axis = (field: "x" | "y", of: Channel, title: string, names: string[], room: number): Loose => ({ field, type: "nominal", sort: null, scale: { domain: names, padding: 0.03 }, axis: { ...namesAxis(title, of, names, room, field === "y"), ticks: false, domain: false } });
  const spec = framed(ground, {
    data: { values: all },
    mark: { type: "rect", cursor: chosen ? "pointer" : "default" },
    encoding: {
      x: axis("x", along, x.title, columns.map(({ name }) => name), width),
      y: axis("y", up, y.title, lines.map(({ name }) => name), height),
      color: rampColour(z, colour, ground),
      tooltip: { field: "tip", type: "nominal" },
    },
  });
  return { spec, notes, summary: `heat map of ${z.title} by ${x.title} and ${y.title}, ${all.length.toLocaleString()} cells`, pick: byRow(chosen, answer.rows) };
}
