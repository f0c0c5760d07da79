// The view of an explore or a board as its address has it: `range=P4W&is.origin=JFK`, one readable word each.

import { GRAINS, isZone, type Grain } from "./format/time";

/** A condition that a person set. A missing value is null. */
export type Filter =
  | { sort: "values"; field: string; isNot: boolean; values: (string | null)[] }
  | { sort: "contains"; field: string; isNot: boolean; text: string }
  | { sort: "groups"; field: string; measure: string; op: ">" | "<" | "between"; low: string; high: string };

export const MODES = ["overview", "pivot", "rows"] as const;
export type Mode = (typeof MODES)[number];
export const RANKS = ["value", "share", "change"] as const;
export type Rank = (typeof RANKS)[number];

/** The kinds of what is looked at. */
export type Kind = "explore" | "canvas";

/** What is looked at. What is absent is as the file has it. */
export interface View {
  mode: Mode;
  range?: string;
  grain?: Grain;
  zone?: string;
  /** Offset or range to compare with; `none` for no comparison. */
  compare?: string;
  /** Dimension whose values are lines; `none` for none. */
  by?: string;
  measures?: string[];
  dimensions?: string[];
  sort?: string;
  rank: Rank;
  isAscending: boolean;
  filters: Filter[];
  /** Fields of the pivot: names, or `name:grain`. */
  rows: string[];
  columns: string[];
  /** Values of a board's variables by their names, and the tab that is open by its group. */
  variables: Record<string, string>;
  tabs: Record<string, string>;
  /** True if the conditions that a board's file begins with are taken away. */
  isBare: boolean;
  /** Words of the address that can't be read. */
  unread: string[];
}

/** The largest number of conditions, and of characters in a word of the address. */
export const MOST_FILTERS = 40;
export const MOST_VALUES = 200;
export const LONGEST = 500;

/** Words that one kind alone has. */
const OF_EXPLORES = ["view", "grain", "rank", "order", "sort", "measures", "dimensions", "rows", "columns"];
const OF_BOARDS = ["let", "tab", "filters"];
const SIGNS = ["is", "not", "empty", "filled", "has", "lacks", "of"];
const GROUPS = /^(.+?)\s*(?:([<>])\s*(-?[\d.]+(?:e[+-]?\d+)?)|:\s*(-?[\d.]+(?:e[+-]?\d+)?)\.\.(-?[\d.]+(?:e[+-]?\d+)?))$/i;

/** Returns true if a text is a number that JSON can have. */
export const isNumber = (text: string): boolean => /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text);

const list = (text: string): string[] => [...new Set(text.split(",").filter(Boolean))].slice(0, 64);

/** Reads a view. Whatever can't be read is named, and the rest holds. */
export function read(words: URLSearchParams, kind: Kind = "explore"): View {
  const view: View = { mode: "overview", rank: "value", isAscending: false, filters: [], rows: [], columns: [], variables: {}, tabs: {}, isBare: false, unread: [] };
  const others = kind === "explore" ? OF_BOARDS : OF_EXPLORES;
  for (const [key, value] of words) {
    if (value.length > LONGEST || others.includes(key.split(".", 1)[0]!) || !take(view, key, value)) view.unread.push(`${key}=${value}`.slice(0, 80));
  }
  return view;
}

/** Takes one word into a view; returns false if it can't be read. */
function take(view: View, key: string, value: string): boolean {
  const at = key.indexOf(".");
  if (at > 0 && SIGNS.includes(key.slice(0, at))) return filter(view, key.slice(0, at), key.slice(at + 1), value);
  if (key.startsWith("let.")) return named(view.variables, key.slice(4), value);
  if (key.startsWith("tab.")) return named(view.tabs, key.slice(4), value);
  switch (key) {
    case "view":
      return one(MODES, value, (mode) => (view.mode = mode));
    case "grain":
      return one(GRAINS, value, (grain) => (view.grain = grain));
    case "rank":
      return one(RANKS, value, (rank) => (view.rank = rank));
    case "order":
      view.isAscending = value === "ascending";
      return value === "ascending" || value === "descending";
    case "filters":
      view.isBare = value === "none";
      return view.isBare;
    case "zone":
      if (isZone(value)) view.zone = value;
      return view.zone === value;
    case "range":
    case "compare":
    case "by":
    case "sort":
      if (value) view[key] = value;
      return value !== "";
    case "measures":
    case "dimensions":
    case "rows":
    case "columns":
      view[key] = list(value);
      return true;
    default:
      return false;
  }
}

/** Keeps a value by a name, of which there are not too many. */
function named(among: Record<string, string>, name: string, value: string): boolean {
  if (!name || name === "__proto__" || Object.keys(among).length >= MOST_FILTERS) return false;
  among[name] = value;
  return true;
}

function one<T extends string>(among: readonly T[], value: string, set: (value: T) => void): boolean {
  const found = among.find((one) => one === value);
  if (found !== undefined) set(found);
  return found !== undefined;
}

function filter(view: View, sign: string, field: string, value: string): boolean {
  if (!field || view.filters.length >= MOST_FILTERS) return false;
  if (sign === "has" || sign === "lacks") {
    if (value) view.filters = withFilter(view.filters, { sort: "contains", field, isNot: sign === "lacks", text: value });
    return value !== "";
  }
  if (sign === "of") {
    const [, measure, op, bound, low, high] = GROUPS.exec(value) ?? [];
    if (measure === undefined || ![bound ?? low!, bound ?? high!].every(isNumber)) return false;
    view.filters = withFilter(view.filters, { sort: "groups", field, measure, op: (op as ">" | "<" | undefined) ?? "between", low: bound ?? low!, high: high ?? "" });
    return true;
  }
  const isNot = sign === "not" || sign === "filled";
  const isMissing = sign === "empty" || sign === "filled";
  if (isMissing && value !== "yes") return false;
  const known = view.filters.find((one) => one.sort === "values" && one.field === field && one.isNot === isNot);
  const values = known?.sort === "values" ? known.values : [];
  if (!known) view.filters.push({ sort: "values", field, isNot, values });
  const said = isMissing ? null : value;
  if (values.length >= MOST_VALUES) return false;
  if (!values.includes(said)) values.push(said);
  return true;
}

/** Writes a view as the words of an address. */
export function write(view: View): URLSearchParams {
  const words = new URLSearchParams();
  const say = (key: string, value: string | undefined) => value && words.append(key, value);
  if (view.mode !== "overview") say("view", view.mode);
  for (const key of ["range", "grain", "zone", "compare", "by", "sort"] as const) say(key, view[key]);
  if (view.rank !== "value") say("rank", view.rank);
  if (view.isAscending) say("order", "ascending");
  for (const key of ["measures", "dimensions"] as const) if (view[key]) words.append(key, view[key].join(","));
  say("rows", view.rows.join(","));
  say("columns", view.columns.join(","));
  for (const [name, value] of Object.entries(view.variables)) words.append(`let.${name}`, value);
  for (const [name, value] of Object.entries(view.tabs)) say(`tab.${name}`, value);
  if (view.isBare) say("filters", "none");
  for (const one of view.filters) {
    if (one.sort === "contains") say(`${one.isNot ? "lacks" : "has"}.${one.field}`, one.text);
    else if (one.sort === "groups") say(`of.${one.field}`, `${one.measure}${one.op === "between" ? `:${one.low}..${one.high}` : one.op + one.low}`);
    else {
      for (const value of one.values) {
        if (value === null) say(`${one.isNot ? "filled" : "empty"}.${one.field}`, "yes");
        else words.append(`${one.isNot ? "not" : "is"}.${one.field}`, value);
      }
    }
  }
  return words;
}

/** Adds a condition, unless an equal one stands there. */
export function withFilter(filters: Filter[], one: Filter): Filter[] {
  const said = JSON.stringify(one);
  return filters.some((other) => JSON.stringify(other) === said) ? filters : [...filters, one];
}

/** Adds a value to what a dimension includes or excludes; takes it away where it stands there. */
export function toggled(filters: Filter[], field: string, value: string | null, isNot: boolean): Filter[] {
  const rest: Filter[] = [];
  let stood: (string | null)[] | undefined;
  for (const one of filters) {
    if (one.sort !== "values" || one.field !== field) rest.push(one);
    else if (one.isNot === isNot) stood = one.values;
    else if (one.values.some((other) => other !== value)) rest.push({ ...one, values: one.values.filter((other) => other !== value) });
  }
  const values = stood?.includes(value) ? stood.filter((other) => other !== value) : [...(stood ?? []), value];
  return values.length === 0 ? rest : [...rest, { sort: "values", field, isNot, values }];
}
