// What one run of a chart may cost. Vega has no bounds of its own: each of its operators asks here before it runs, and tells what it made.

import { expressionFunction, Operator, Transform, transforms } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import type { Grain } from "../../explore/format/time";
import { LENGTHS } from "../../explore/grains";
import { Undrawable, words } from "./answer";
import { handOver, NAMED, PAID, REACHED, sizeOf } from "./expressions";

/** The longest that one run may take, in milliseconds. */
const MOST_MS = 3_000;
/** The most parts of expressions that one run evaluates. */
const MOST_COST = 20_000_000;
/** The most rows that any step of a chart may have. */
const MOST_ROWS = 100_000;
/** The longest text that an expression makes. */
const MOST_TEXT = 10_000;
/** The most parts that a chart is split into: lines, small charts. */
const MOST_FACETS = 500;
/** The most bins of numbers, and ticks of an axis. */
const MOST_BINS = 1_000;
/** Steps that make many rows of few, or take far longer than their rows, with the rows that they may have. */
const SLOW: Record<string, number> = { impute: 1_000, loess: 2_000, regression: MOST_ROWS, density: 10_000, kde: 5_000, quantile: 2_000 };
/** The same for figures that a window makes anew at each of its rows. */
const IN_WINDOWS: Record<string, number> = { ci0: 100, ci1: 100, median: 500, q1: 500, q3: 500, distinct: 500, values: 500, min: 5_000, max: 5_000, argmin: 5_000, argmax: 5_000 };
/** The most rows of a pivot, times its columns. */
const MOST_PIVOTED = 1_000_000;
/** The longest path of a shape: each is read anew. */
const MOST_SHAPE = 1_000;

/** What is left for one run. */
interface Budget {
  stamp: number | undefined;
  end: number;
  cost: number;
}
const budgets = new WeakMap<object, Budget>();
/** Charts whose specs are ours: they have rows and no other bounds, so that a slow machine draws them too. */
const trusted = new WeakSet<object>();
/** Lets a chart of ours take its time. */
export const trust = (view: object): unknown => trusted.add(view);
/** That of the chart that runs now: charts run one after the other. */
let current: Budget = { stamp: -1, end: Infinity, cost: Infinity };

const tooMuch = (what: string) => new Undrawable(`This chart is not drawn: ${what}.`);

function check(): void {
  if (current.cost < 0) throw tooMuch("its expressions cost too much");
  if (performance.now() > current.end) throw tooMuch(`it took more than ${MOST_MS / 1_000} seconds`);
}

/** Takes a cost from the budget. One step runs many expressions: the clock is looked at for each. */
function spend(cost: number): void {
  current.cost -= cost;
  check();
}

/** A step of a chart, as far as bounds need it. */
interface Step {
  value: unknown;
  evaluate(this: Step, pulse: Pulse): unknown;
}

/** What runs through the steps of a chart, where `stamp` counts its runs; or an event. */
interface Pulse {
  stamp: number | undefined;
  dataflow: object;
  source?: unknown[];
  add?: unknown[];
}

function begin({ dataflow, stamp }: Pulse): void {
  let budget = budgets.get(dataflow);
  // What an event asks is counted by itself: it is no run, and has no stamp.
  if (!budget || stamp === undefined || budget.stamp !== stamp) {
    budget = trusted.has(dataflow) ? { stamp, end: Infinity, cost: Infinity } : { stamp, end: performance.now() + MOST_MS, cost: MOST_COST };
    budgets.set(dataflow, budget);
  }
  current = budget;
  check();
}

function judgeRows(count = 0): void {
  if (count > MOST_ROWS) throw tooMuch(`one of its steps has ${count.toLocaleString()} rows`);
}

const judgeText = (text: unknown, most = MOST_TEXT): void => {
  if (typeof text === "string" && text.length > most) throw tooMuch("one of its texts is too long");
};

/** What a kind of step has in common. Vega's types don't know it. */
const prototypeOf = <T>(name: string): T => (transforms[name] as unknown as { prototype: T }).prototype;

/** Lets a kind of step run only if its settings and rows are judged to have an end. */
function before(name: string, judge: (settings: Record<string, unknown>, rows: unknown[]) => void): void {
  const step = prototypeOf<{ transform: (settings: Record<string, unknown>, pulse: Pulse) => unknown }>(name);
  const transform = step.transform;
  step.transform = function (settings, pulse) {
    judge(settings, pulse.source ?? []);
    return transform.call(this, settings, pulse);
  };
}

/** Ticks of an interval are as many as there are intervals, however far the axis goes. */
function judgeTicks({ count, scale }: Record<string, unknown>): void {
  const interval = typeof count === "object" && count !== null ? (count as { interval?: unknown }).interval : count;
  if (typeof interval !== "string") return;
  const ends = (scale as { domain: () => unknown[] }).domain().map(Number);
  if (!((Math.max(...ends) - Math.min(...ends)) / (LENGTHS[interval as Grain] ?? 1) <= MOST_BINS)) throw tooMuch(`an axis has more than ${MOST_BINS.toLocaleString()} ticks`);
}

type Read = (row: unknown) => unknown;
/** Vega takes anything with a length for a list. */
const lengthIn = (read: Read, row: unknown): number => Number((read(row) as { length?: unknown } | null | undefined)?.length) || 0;
const judgeFlat = (settings: Record<string, unknown>, rows: unknown[]): void => judgeRows(rows.reduce<number>((sum, row) => sum + Math.max(...(settings.fields as Read[]).map((read) => lengthIn(read, row)), 0), 0));

/** A pivot looks for each of its columns in each of its rows. */
function judgePivot({ field }: Record<string, unknown>, rows: unknown[]): void {
  if (rows.length * new Set(rows.map(field as Read)).size > MOST_PIVOTED) throw tooMuch("“pivot” makes too many columns of too many rows");
}

/** Figures for which a window goes through all of its rows at each of them. */
function judgeWindow({ ops }: Record<string, unknown>, rows: unknown[]): void {
  for (const op of (ops ?? []) as string[]) {
    const most = Object.hasOwn(IN_WINDOWS, op) ? IN_WINDOWS[op]! : Infinity;
    if (rows.length > most) throw tooMuch(`“${op}” in a window is for ${most.toLocaleString()} rows at most`);
  }
}

/** Groups of rows, as far as their bounds need them. */
interface Groups {
  value: Record<string, { tuple: Record<string, unknown> }>;
  _prev: Groups["value"] | null;
  _dnames: string[];
  cross(this: Groups): void;
}

let isBounded = false;
/** Sets the bounds, once for all charts. */
export function bound(): void {
  if (isBounded) return;
  isBounded = true;
  for (const { prototype } of [Operator, Transform] as unknown as { prototype: Step }[]) {
    const evaluate = prototype.evaluate;
    prototype.evaluate = function (pulse) {
      begin(pulse);
      const slow = Object.entries(SLOW).find(([name]) => transforms[name] && this instanceof (transforms[name] as unknown as new () => object));
      if (slow && (pulse.source?.length ?? 0) > slow[1]) throw tooMuch(`“${slow[0]}” is for ${slow[1].toLocaleString()} rows at most`);
      const made = evaluate.call(this, pulse) as Partial<Pulse> | undefined;
      judgeRows(made?.source?.length);
      judgeRows(made?.add?.length);
      judgeText(this.value);
      return made;
    };
  }
  const facet = prototypeOf<{ value: object; subflow: (...all: unknown[]) => unknown }>("facet");
  const subflow = facet.subflow;
  facet.subflow = function (...all) {
    check();
    if (Object.keys(this.value).length > MOST_FACETS) throw tooMuch(`it has more than ${MOST_FACETS} lines or small charts`);
    return subflow.apply(this, all);
  };
  const groups = prototypeOf<Groups>("aggregate");
  const cross = groups.cross;
  groups.cross = function () {
    const found = [...Object.values(this.value), ...Object.values<Groups["value"][string]>(this._prev ?? {})];
    const parts = this._dnames.reduce((all, name) => all * new Set(found.map(({ tuple }) => tuple[name])).size, 1);
    if (parts > MOST_FACETS) throw tooMuch(`it has more than ${MOST_FACETS} lines or small charts`);
    cross.call(this);
  };
  before("flatten", judgeFlat);
  before("fold", ({ fields }, rows) => judgeRows(rows.length * (fields as unknown[]).length));
  before("pivot", judgePivot);
  before("window", judgeWindow);
  before("axisticks", judgeTicks);
  before("legendentries", judgeTicks);
  const bin = prototypeOf<{ _bins: (...all: unknown[]) => { start: number; stop: number; step: number } }>("bin");
  const bins = bin._bins;
  bin._bins = function (...all) {
    const made = bins.apply(this, all);
    if (!((made.stop - made.start) / made.step <= MOST_BINS)) throw tooMuch(`its rows fall into more than ${MOST_BINS.toLocaleString()} bins`);
    return made;
  };
  boundFunctions();
}

const lengthOf = (value: unknown): number => (typeof value === "string" || Array.isArray(value) ? value.length : 0);

/** Takes the cost of going through all of a text or a list, with what is in it. */
function pay(value: unknown): void {
  if (lengthOf(value) > 0) spend(lengthOf(value));
  if (Array.isArray(value)) value.forEach(pay);
}

/** Functions of expressions whose cost grows with what they are given. */
function boundFunctions(): void {
  type Called = (this: unknown, ...all: unknown[]) => unknown;
  // The types of Vega know neither `this` nor that one argument asks for the function.
  const get = expressionFunction as unknown as (name: string) => Called | undefined;
  const set = expressionFunction as unknown as (name: string, called: Called) => void;
  set(PAID, (value) => {
    pay(value);
    return value;
  });
  const readable = (value: unknown): number | string => {
    pay(value);
    const name = typeof value === "number" ? value : String(value);
    if (typeof name === "string" && REACHED.has(name)) throw new Undrawable(`This spec is not drawn: in an expression “${words(name)}” is not read.`);
    return name;
  };
  set(NAMED, readable);
  /** What a function costs besides what it is given. */
  const paying = (name: string, cost: Called) => {
    const called = get(name);
    set(name, function (...all) {
      spend(Number(cost(...all)));
      return called?.apply(this, all);
    });
  };
  paying("join", (list, between = ",") => lengthOf(list) * lengthOf(between));
  // A replacement may have the whole text in it, many times over.
  paying("replace", (text, _, by) => (String(by).includes("$") ? lengthOf(text) * lengthOf(by) : 0));
  paying("intersect", () => MOST_TEXT);
  paying("watershedTime", () => 500);
  const pluck = get("pluck");
  set("pluck", function (rows, path) {
    const name = readable(path);
    if (/[.[\]]/.test(String(name))) throw new Undrawable("This spec is not drawn: in an expression “pluck” takes the name of a column.");
    return pluck?.call(this, rows, name);
  });
  const sequence = get("sequence");
  set("sequence", function (...all) {
    const [start, stop, step] = (all.length < 2 ? [0, all[0], 1] : [all[0], all[1], all[2] ?? 1]).map(Number) as [number, number, number];
    const count = Math.ceil((stop - start) / step);
    if (count > MOST_ROWS / 10) throw tooMuch("a sequence of an expression is too long");
    spend(Math.max(count, 0) * 10);
    return sequence?.apply(this, all);
  });
  for (const name of ["format", "timeFormat", "utcFormat"]) {
    const format = get(name);
    set(name, function (...all) {
      if (typeof all[1] === "string" && (all[1].length > 200 || /\d{3}/.test(all[1]))) throw tooMuch("a format is too wide");
      return format?.apply(this, all);
    });
  }
}

/** An expression as Vega hands it to its interpreter. */
interface Expression {
  ast?: object;
  channels?: Record<string, { ast: object }>;
}
type Maker = (context: unknown, expression: Expression) => (...all: unknown[]) => unknown;

/** Vega's interpreter, which runs expressions without `eval`; each run of one is paid for. */
export const interpreter = Object.fromEntries(
  Object.entries(expressionInterpreter as unknown as Record<string, Maker>).map(([name, make]): [string, Maker] => [
    name,
    (context, expression) => {
      const all = expression.ast ? [expression.ast] : Object.values(expression.channels ?? {}).map(({ ast }) => ast);
      const size = all.reduce((sum, ast) => sum + sizeOf(ast), 0);
      all.forEach(handOver);
      const run = make.call(expressionInterpreter, context, expression);
      return (...given) => {
        if (name === "event") begin(given[0] as Pulse);
        spend(size);
        const made = run(...given);
        judgeText(made);
        // A function could be kept, and run where nobody asks what it costs.
        if (typeof made === "function") throw tooMuch("an expression makes a function");
        if (name === "encode") {
          const { text, shape } = given[0] as { text?: unknown; shape?: unknown };
          judgeText(text);
          judgeText(shape, MOST_SHAPE);
        }
        return made;
      };
    },
  ]),
);
