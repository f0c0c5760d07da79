// What a spec that somebody wrote may not say: what reaches out of the chart, and what has no end. Expressions are judged in `expressions.ts`, time and rows in `budget.ts`.

import { MOST_POINTS, Undrawable, words } from "./answer";
import { against } from "./expressions";
import type { Loose } from "./settings";

/** The most bytes of a spec. */
export const MOST_BYTES = 256 * 1024;
/** How deep maps and lists of a spec may be nested. */
const MOST_DEPTH = 32;
/** The longest text in a spec, outside its data. */
const MOST_TEXT = 4_000;
/** The most views in one spec. */
const MOST_VIEWS = 50;
/** The most steps that any setting may ask for: bins, ticks, transforms. */
const MOST_STEPS = 1_000;
const MOST_TICKS = 100;
const MOST_TRANSFORMS = 50;
const MOST_SIZE = 10_000;
/** Refusals that a frame names. */
const FEW = 3;

const isMap = (value: unknown): value is Loose => typeof value === "object" && value !== null && !Array.isArray(value);

/** Says how deep a value is nested, and stops where it is too deep: without calls of itself, which would run out of stack. */
function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > MOST_DEPTH) return true;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : [])).filter((one) => typeof one === "object");
  }
  return false;
}

const NOWHERE = "it leads out of the page";
const MAP = "maps are not drawn";
/** Keys that are refused wherever they stand. */
const REFUSED: Record<string, string> = {
  url: "nothing is loaded: rows come from the component's queries",
  href: NOWHERE,
  src: NOWHERE,
  projection: MAP,
  graticule: MAP,
  sphere: MAP,
  latitude: MAP,
  longitude: MAP,
  latitude2: MAP,
  longitude2: MAP,
  signals: "signals are Vega's: Vega-Lite has `params`",
  events: "what a chart listens to is not its author's choice",
  locale: "numbers and times are written as the page writes them",
};
const MARKS: Record<string, string> = { image: "images are not loaded", geoshape: MAP };
/** Keys whose texts are run. */
const RUN = new Set(["filter", "test", "and", "or", "not", "calculate", "expr", "labelExpr", "signal", "toggle"]);
/** Names that Vega has for what it keeps of a chart itself. */
const TAKEN = new Set(["cursor", "width", "height", "padding", "autosize", "background"]);
/** The most figures that one step makes: some of them take a second each. */
const MOST_FIGURES = 20;
/** Intervals that an axis may be cut into: smaller ones may be millions. */
const INTERVALS = ["year", "quarter", "month", "week", "day"];

type Rule = (value: unknown, parent: Loose) => string | undefined;
const number = (most: number): Rule => (value) => (typeof value !== "number" || (value >= 0 && value <= most) ? undefined : `${most.toLocaleString()} is the most`);
const fixed = (most: number): Rule => (value, parent) => (value === undefined || typeof value === "number" ? number(most)(value, parent) : "only a number is taken");
const list = (most: number): Rule => (value) => (Array.isArray(value) && value.length > most ? `it has ${value.length.toLocaleString()} items; ${most.toLocaleString()} is the most` : undefined);
const count: Rule = (value) => {
  const { start = 0, stop, step = 1 } = isMap(value) ? value : {};
  const all = [start, stop, step].every((one) => typeof one === "number") ? Math.abs(((stop as number) - (start as number)) / (step as number)) : Infinity;
  return all <= MOST_STEPS ? undefined : `more than ${MOST_STEPS.toLocaleString()} values`;
};
const pattern: Rule = (value) => (typeof value === "string" && (value.length > 200 || /\d{3}/.test(value)) ? "the format is too wide" : undefined);
const ticks: Rule = (value) => {
  const interval = isMap(value) ? value.interval : value;
  if (typeof value === "number") return value <= MOST_TICKS ? undefined : `${MOST_TICKS} is the most`;
  const isKnown = typeof interval === "string" && INTERVALS.includes(interval);
  const steps = isMap(value) ? Object.keys(value).every((key) => key === "interval" || (key === "step" && typeof value.step === "number" && value.step >= 1)) : true;
  return value === undefined || value === null || (isKnown && steps) ? undefined : `only a number, or ${INTERVALS.join(", ")}, is taken`;
};
const dashes: Rule = (value) => (Array.isArray(value) && value.length > 0 && !(value.every((one) => typeof one === "number" && one >= 0) && value.reduce((sum: number, one) => sum + (one as number), 0) >= 1) ? "dashes are shorter than a pixel" : undefined);
/** Events inside the view, as `click`, `@bars:click` or `[pointerdown, pointerup] > pointermove`. */
const stream: Rule = (value) => {
  if (typeof value === "string") return /window|timer|document|container|[#.{"']|(^|[^@\w])\w+:(?!:)/.test(value.replaceAll(/@\w+:|view:/g, "")) ? "it listens outside the chart" : undefined;
  if (Array.isArray(value)) return value.map((one) => stream(one, {})).find(Boolean);
  if (!isMap(value)) return undefined;
  const from = [value.source ?? "view", value.type ?? ""];
  if (from[0] !== "view" || from[1] === "timer" || value.markname !== undefined) return "it listens outside the chart";
  return stream(value.between, {}) ?? stream(value.merge, {}) ?? stream(value.stream, {});
};
const binding: Rule = (value) => (value === undefined || value === "scales" || value === "legend" || (isMap(value) && Object.keys(value).every((key) => key === "legend") && stream(value.legend, {}) === undefined) ? undefined : "a chart has no fields to fill in");
const mark: Rule = (value) => MARKS[String(isMap(value) ? value.type : value)];
const RULES: Record<string, Rule> = {
  mark,
  bind: binding,
  on: stream,
  clear: stream,
  translate: stream,
  zoom: stream,
  tickCount: ticks,
  sequence: count,
  keyvals: (value) => (Array.isArray(value) ? list(MOST_STEPS)(value, {}) : count(value, {})),
  bins: (value) => (Array.isArray(value) ? list(MOST_STEPS)(value, {}) : "only a list is taken"),
  binned: (_, parent) => (parent.step === undefined ? undefined : "bins of rows take no step"),
  maxbins: fixed(MOST_STEPS),
  minsteps: fixed(MOST_STEPS),
  maxsteps: fixed(MOST_STEPS),
  steps: (value) => (Array.isArray(value) ? list(MOST_STEPS)(value, {}) : fixed(MOST_STEPS)(value, {})),
  order: (value, parent) => (parent.regression === undefined ? undefined : fixed(10)(value, {})),
  step: (value, parent) => (parent.quantile === undefined || (typeof value === "number" && value >= 1 / MOST_STEPS) ? undefined : "it is too small"),
  fold: list(MOST_STEPS / 10),
  flatten: list(MOST_STEPS / 10),
  transform: list(MOST_TRANSFORMS),
  aggregate: list(MOST_FIGURES),
  joinaggregate: list(MOST_FIGURES),
  window: list(MOST_FIGURES),
  // A cursor may be a picture, which is loaded.
  cursor: (value) => (value === null || (typeof value === "string" && /^[a-z-]+$/.test(value)) ? undefined : "only the name of a cursor is taken"),
  params: (value) => {
    const taken = Array.isArray(value) ? value.map((one) => String(isMap(one) ? one.name : "")).find((name) => TAKEN.has(name)) : undefined;
    return taken === undefined ? undefined : `“${taken}” is a name of Vega's own`;
  },
  layer: list(MOST_VIEWS),
  format: (value, parent) => pattern(typeof value === "object" ? "" : value, parent),
  numberFormat: pattern,
  normalizedNumberFormat: pattern,
  width: number(MOST_SIZE),
  height: number(MOST_SIZE),
  nice: number(MOST_TICKS),
  $schema: (value) => (typeof value === "string" && /\/vega\/v/.test(value) ? "it is a spec of Vega; those of Vega-Lite are drawn" : undefined),
};

/** Names of keys, as they lead to a place. */
const at = (path: (string | number)[]): string => words(path.reduce<string>((text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${key}` : key), ""));

/** Lists what of a spec is refused, each with its place and the reason. `queries` are the names of its rows. */
export function refusals(spec: unknown, queries: string[]): string[] {
  if (!isMap(spec)) return ["a spec is a map"];
  if (isTooDeep(spec)) return [`it is nested more than ${MOST_DEPTH} deep`];
  const bytes = new TextEncoder().encode(JSON.stringify(spec)).length;
  if (bytes > MOST_BYTES) return [`it has more than ${MOST_BYTES / 1024} KiB`];
  const found: string[] = [];
  const names = new Set([...queries, ...Object.keys(isMap(spec.datasets) ? spec.datasets : {})]);
  let [views, repeated] = [0, 1];
  const rows = (values: unknown, path: (string | number)[]) => {
    if (Array.isArray(values) && values.length > MOST_POINTS) found.push(`${at(path)}: ${MOST_POINTS.toLocaleString()} rows are the most`);
    // What reads texts makes functions of them, which the page forbids.
    if (typeof values === "string") found.push(`${at(path)}: rows are a list`);
  };
  const named = (name: string, path: (string | number)[]) => {
    if (name.endsWith("_store")) found.push(`${at(path)}: names of this end are those of selections`);
  };
  const walk = (value: unknown, path: (string | number)[], times = 1): void => {
    if (typeof value === "string") {
      const reason = value.length > MOST_TEXT ? `a text of more than ${MOST_TEXT.toLocaleString()} characters` : against(value, RUN.has(String(path.findLast((key) => typeof key === "string"))));
      if (reason) found.push(`${at(path)}: ${reason}`);
      return;
    }
    if (Array.isArray(value)) return value.forEach((one, place) => walk(one, [...path, place], times));
    if (!isMap(value)) return;
    if (value.mark !== undefined) views += times;
    if (isMap(value.repeat) || Array.isArray(value.repeat)) {
      // What is repeated inside of what is repeated is as many times more.
      times *= (Array.isArray(value.repeat) ? [value.repeat] : Object.values(value.repeat)).reduce<number>((all, one) => all * (Array.isArray(one) || typeof one === "string" ? one.length : 1), 1);
      repeated = Math.max(repeated, times);
    }
    for (const [key, inner] of Object.entries(value)) {
      const reason = Object.hasOwn(REFUSED, key) ? REFUSED[key] : Object.hasOwn(RULES, key) ? RULES[key]!(inner, value) : /dash$/i.test(key) ? dashes(inner, value) : undefined;
      if (reason) found.push(`${at([...path, key])}: ${reason}`);
      else if (key === "datasets" && path.length === 0 && isMap(inner)) {
        for (const [name, values] of Object.entries(inner)) {
          named(name, [key, name]);
          rows(values, [key, name]);
        }
      } else if (key === "data" && isMap(inner)) {
        const { values, ...rest } = inner;
        const { type = "json" } = isMap(rest.format) ? rest.format : {};
        if (type !== "json") found.push(`${at([...path, key, "format"])}: rows are a list`);
        if (typeof rest.name === "string") named(rest.name, [...path, key]);
        if (typeof rest.name === "string" && values === undefined && rest.sequence === undefined && !names.has(rest.name)) found.push(`${at([...path, key])}: no query is called “${words(rest.name)}”`);
        if (typeof rest.name === "string" && values !== undefined && queries.includes(rest.name)) found.push(`${at([...path, key])}: the name is that of a query`);
        rows(values, [...path, key, "values"]);
        walk(rest, [...path, key], times);
      } else if (key !== "$schema") walk(inner, [...path, key], times);
    }
  };
  walk(spec, []);
  views = Math.max(views, repeated);
  if (views > MOST_VIEWS) found.push(`it has ${views.toLocaleString()} views; ${MOST_VIEWS} are the most`);
  return found;
}

/** Throws where a spec is refused, with the first reasons. */
export function guard(spec: unknown, queries: string[]): void {
  const found = refusals(spec, queries);
  if (found.length === 0) return;
  const more = found.length > FEW ? `; and ${found.length - FEW} more` : "";
  throw new Undrawable(`This spec is not drawn: ${found.slice(0, FEW).join("; ")}${more}.`);
}
