// Questions to a metrics view, as `metrics --query` takes them too.

import type { Filter } from "./address";
import type { Field } from "./declared";
import type { Grain } from "./format/time";

/** A filter of a query. */
export type Condition = { name: string } | { val: unknown } | { cond: { op: string; exprs: Condition[] } } | { subquery: { dimension: string; measures: string[]; having: Condition } };
type Computed = { name: string; compute: Record<string, { measure?: string; dimension?: string }> };

/** A query in its JSON form. */
export interface Query {
  dimensions?: Axis[];
  measures?: (string | Computed)[];
  time_range?: string;
  comparison_time_range?: string | { offset: string };
  time_zone?: string;
  where?: Condition;
  sort?: { name: string; desc?: boolean }[];
  pivot_on?: string[];
  spine?: { time: true };
  totals?: true;
  rows?: true;
  offset?: number;
  limit?: number;
}

/** A query with what stands beside it in a request. */
export interface Question {
  query: Query;
  limit: number;
  /** A condition in SQL beside that of the query. */
  where?: string;
}

/** What all questions of the page have in common. */
export interface Frame {
  range: string | undefined;
  zone: string;
  compare: string | undefined;
  filters: Filter[];
  /** Types by the lower-case names of dimensions. */
  types: Map<string, string>;
  /** A condition in SQL that holds beside the filters; empty for none. */
  where?: string;
}

const NUMBERS = /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|FLOAT|REAL|DECIMAL.*)$/;

/** Returns a value as a filter compares it: a number or a truth where its field is one. */
export function typed(value: string | null, type: string): unknown {
  if (value === null) return null;
  if (type === "BOOLEAN") return value === "true" ? true : value === "false" ? false : value;
  if (!NUMBERS.test(type) || value.trim() === "") return value;
  const number = Number(value);
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number)) ? number : value;
}

const cond = (op: string, ...exprs: Condition[]): Condition => ({ cond: { op, exprs } });

/** A pattern that a text contains another one. `_` and `%` in it stand for any characters: patterns have no sign that takes their meaning away. */
export function containing(text: string): string {
  return `%${text}%`;
}

/** Returns the condition of a filter. */
export function conditionOf(one: Filter, types: Map<string, string>): Condition {
  const field = { name: one.field };
  if (one.sort === "contains") return cond(one.isNot ? "nilike" : "ilike", field, { val: containing(one.text) });
  if (one.sort === "groups") {
    const measure = { name: one.measure };
    const bounds = one.op === "between" ? [cond("gte", measure, { val: Number(one.low) }), cond("lte", measure, { val: Number(one.high) })] : [cond(one.op === ">" ? "gt" : "lt", measure, { val: Number(one.low) })];
    const having = bounds.length === 1 ? bounds[0]! : cond("and", ...bounds);
    return cond("in", field, { subquery: { dimension: one.field, measures: [one.measure], having } });
  }
  const values = one.values.map((value) => typed(value, types.get(one.field.toLowerCase()) ?? ""));
  return cond(one.isNot ? "nin" : "in", field, { val: values });
}

/** Returns the condition of filters, but for those that are left out; none if there are none. */
export function whereOf({ filters, types }: Frame, more: Condition[] = [], isLeftOut: (one: Filter) => boolean = () => false): Condition | undefined {
  const all = [...filters.filter((one) => !isLeftOut(one)).map((one) => conditionOf(one, types)), ...more];
  return all.length > 1 ? cond("and", ...all) : all[0];
}

/** Returns the range that a comparison means: an offset, or a range of its own. */
export function comparison(text: string): string | { offset: string } {
  return /^[-+]\d+[a-z]+$/i.test(text) || /^(P\d|PT\d|rill-P)/i.test(text) ? { offset: text } : text;
}

/** The range, zone, comparison and conditions of a question. */
function base(frame: Frame, where: Condition | undefined, compares: boolean): Query {
  return {
    ...(frame.range ? { time_range: frame.range } : {}),
    ...(frame.range && frame.compare && compares ? { comparison_time_range: comparison(frame.compare) } : {}),
    time_zone: frame.zone,
    ...(where ? { where } : {}),
  };
}

/** A question of the page: what its frame says in SQL stands beside the query. */
const question = ({ where }: Frame, query: Query, limit: number): Question => ({ query, limit, ...(where ? { where } : {}) });

/** Names of computed columns. */
export const BEFORE = (measure: string) => `${measure} before`;
export const DELTA = (measure: string) => `${measure} difference`;
export const CHANGE = (measure: string) => `${measure} change`;
export const SHARE = (measure: string) => `${measure} share`;
export const TIME_BEFORE = "time before";
export const LINK = "link";

const compute = (name: string, kind: string, of: { measure?: string; dimension?: string }): Computed => ({ name, compute: { [kind]: of } });
const withChange = (frame: Frame, measure: string): (string | Computed)[] =>
  frame.range && frame.compare ? [measure, compute(BEFORE(measure), "comparison_value", { measure }), compute(CHANGE(measure), "comparison_ratio", { measure })] : [measure];

/** Asks for the figures of measures over the whole range. */
export function figures(frame: Frame, measures: string[]): Question {
  return question(frame, { measures: measures.flatMap((measure) => withChange(frame, measure)), ...base(frame, whereOf(frame), true) }, 1);
}

/** Returns a condition that both ask for. */
export function both(one: Condition | undefined, other: Condition | undefined): Condition | undefined {
  return one && other ? cond("and", one, other) : (one ?? other);
}

/**
 * Lays the time, the conditions and, where it is told to, the comparison of the page over a query of a component. A time that the
 * query names itself stays. `isLeftOut` names filters that don't narrow it.
 */
export function over(frame: Frame, asked: Query, limit: number, { compares = false, isLeftOut }: { compares?: boolean; isLeftOut?: (one: Filter) => boolean } = {}): Question {
  const all = { ...frame, range: asked.time_range ?? frame.range };
  const isCompared = compares && asked.comparison_time_range === undefined;
  const measures = asked.measures?.flatMap((one) => (isCompared && typeof one === "string" ? withChange(all, one) : [one]));
  return question(frame, { ...asked, ...(measures ? { measures } : {}), ...base(all, both(asked.where, whereOf(frame, [], isLeftOut)), isCompared), ...(asked.time_zone ? { time_zone: asked.time_zone } : {}) }, limit);
}

/** Asks for what a query of a component asks for, over time. */
export function along(frame: Frame, asked: Query, time: string, grain: Grain): Question {
  const { sort: _, limit: __, ...rest } = asked;
  const range = asked.time_range ?? frame.range;
  return over(frame, { ...rest, dimensions: [{ name: time, grain }], ...(range ? { spine: { time: true as const } } : {}), sort: [{ name: time, desc: false }] }, 10_000);
}

/** Some values of a dimension. */
interface Some {
  field: Field;
  values: (string | null)[];
}
const oneOf = ({ field, values }: Some): Condition => cond("in", { name: field.name }, { val: values.map((value) => typed(value, field.type)) });

/** Returns a query of a component apart for some values of a dimension. */
export function apart(asked: Query, by: Some): Query {
  return { ...asked, dimensions: [...(asked.dimensions ?? []), by.field.name], where: both(asked.where, oneOf(by))! };
}

/** Asks for measures over time; by the values of a dimension too, where one is named. */
export function series(frame: Frame, measures: string[], time: string, grain: Grain, by?: Some): Question {
  const compares = !by && frame.range !== undefined && frame.compare !== undefined;
  const only = by && oneOf(by);
  return question(
    frame,
    {
      dimensions: [{ name: time, grain }, ...(by ? [by.field.name] : [])],
      measures: [...measures.flatMap((measure) => (compares ? [measure, compute(BEFORE(measure), "comparison_value", { measure })] : [measure])), ...(compares ? [compute(TIME_BEFORE, "comparison_time", { dimension: time })] : [])],
      ...base(frame, whereOf(frame, only ? [only] : []), compares),
      ...(frame.range ? { spine: { time: true as const } } : {}),
      sort: [{ name: time, desc: false }, ...(by ? [{ name: by.field.name, desc: false }] : [])],
    },
    10_000,
  );
}

/** True for filters of values of a field: what is set on a field does not narrow its own values, so that others can be added. */
export const isOfValues = (field: string) => (one: Filter): boolean => one.sort === "values" && one.field === field;

/** The order of a leaderboard. */
export interface Order {
  measure: string;
  rank: "value" | "share" | "change";
  isAscending: boolean;
}

/** Asks for the first values of a dimension. */
export function leaderboard(frame: Frame, dimension: Field, order: Order, hasShare: boolean, limit: number): Question {
  const compares = frame.range !== undefined && frame.compare !== undefined;
  const { measure } = order;
  const key = order.rank === "change" && compares ? CHANGE(measure) : order.rank === "share" && hasShare ? SHARE(measure) : measure;
  return question(
    frame,
    {
      dimensions: [dimension.name],
      measures: [...withChange(frame, measure), ...(hasShare ? [compute(SHARE(measure), "percent_of_total", { measure })] : []), ...(dimension.hasLinks ? [compute(LINK, "uri", { dimension: dimension.name })] : [])],
      ...base(frame, whereOf(frame, [], isOfValues(dimension.name)), true),
      sort: [{ name: key, desc: !order.isAscending }, { name: dimension.name, desc: false }],
    },
    limit,
  );
}

/** Asks for a page of all values of a dimension, those that contain a text; within what a query of a component is narrowed to. */
export function values(frame: Frame, dimension: Field, measures: string[], search: string, sort: { name: string; desc: boolean }, offset: number, limit: number, asked: Query = {}): Question {
  const more = search ? [cond("ilike", { name: dimension.name }, { val: containing(search) })] : [];
  return question(
    frame,
    {
      dimensions: [dimension.name],
      measures: [...measures.flatMap((measure) => withChange(frame, measure)).slice(0, 60), ...(dimension.hasLinks ? [compute(LINK, "uri", { dimension: dimension.name })] : [])],
      ...base({ ...frame, range: asked.time_range ?? frame.range }, both(asked.where, whereOf(frame, more, isOfValues(dimension.name))), true),
      sort: sort.name === dimension.name ? [sort] : [sort, { name: dimension.name, desc: false }],
      ...(offset ? { offset } : {}),
    },
    limit,
  );
}

/** Asks for values of a dimension that contain a text, in the order of their names. */
export function suggestions(frame: Frame, dimension: Field, search: string, limit: number): Question {
  const more = search ? [cond("ilike", { name: dimension.name }, { val: containing(search) })] : [];
  const where = whereOf(frame, more, (one) => one.field === dimension.name);
  return question(frame, { dimensions: [dimension.name], ...base({ ...frame, compare: undefined }, where, false), sort: [{ name: dimension.name, desc: false }] }, limit);
}

/** Asks for the rows behind. */
export function behind(frame: Frame, offset: number, limit: number): Question {
  return question(frame, { rows: true, ...base(frame, whereOf(frame), false), ...(offset ? { offset } : {}) }, limit);
}

/** A dimension, with its grain where it is a time. */
export type Axis = string | { name: string; grain: Grain } | { name: string; compute: { time_floor: { dimension: string; grain: Grain } } };
export const axisName = (axis: Axis): string => (typeof axis === "string" ? axis : axis.name);
export const axisGrain = (axis: Axis): Grain | undefined => (typeof axis === "string" ? undefined : "grain" in axis ? axis.grain : axis.compute.time_floor.grain);

/** What is asked for by rows and columns. `asked` has what its component says beside. */
export interface Crossed {
  rows: Axis[];
  columns: Axis[];
  measures: Query["measures"];
  asked?: Query;
}

/** Asks for a pivot: its body, its row of totals, and its column of totals. */
export function pivot(frame: Frame, { rows, columns, measures, asked = {} }: Crossed, part: "body" | "row" | "column", sort: { name: string; desc: boolean } | undefined, offset: number, limit: number): Question {
  const dimensions = part === "body" ? [...rows, ...columns] : part === "row" ? columns : rows;
  const across = part === "column" ? [] : columns;
  const order = part === "row" ? [] : [...(sort ? [sort] : []), ...rows.map(axisName).filter((name) => name !== sort?.name).map((name) => ({ name, desc: false }))];
  const { sort: _, pivot_on: __, limit: ___, ...rest } = asked;
  return over(
    frame,
    {
      ...rest,
      dimensions,
      ...(measures ? { measures } : {}),
      ...(across.length > 0 ? { pivot_on: across.map(axisName) } : {}),
      ...(order.length > 0 ? { sort: order } : {}),
      ...(columns.length === 0 && part === "body" && rows.length > 0 ? { totals: true as const } : {}),
      ...(offset && part !== "row" ? { offset } : {}),
    },
    limit,
  );
}
