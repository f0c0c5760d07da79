// What expressions of a spec may call and reach. They are judged as Vega has parsed them, wherever in a spec they stood.

import { parseExpression } from "vega";
import { Undrawable, words } from "./answer";

/** A node of an expression, as Vega parses it. */
export interface Node {
  type: string;
  name?: string;
  operator?: string;
  regex?: unknown;
  raw?: string;
  computed?: boolean;
  value?: unknown;
  key?: Node;
  callee?: Node;
  object?: Node;
  property?: Node;
  [part: string]: unknown;
}

const MATHS = "isNaN isFinite abs acos asin atan atan2 ceil clamp cos exp floor hypot log max min pow random round sin sqrt tan";
const TIMES = "now utc datetime date day year month hours minutes seconds milliseconds time timezoneoffset utcdate utcday utcyear utcmonth utchours utcminutes utcseconds utcmilliseconds quarter utcquarter week utcweek isoweek utcisoweek dayofyear utcdayofyear timeOffset utcOffset timeUnitSpecifier";
const TEXTS = "length join indexof lastindexof slice reverse sort parseFloat parseInt upper lower substring split replace trim truncate";
const FORMATS = "format timeFormat utcFormat timeParse utcParse monthFormat monthAbbrevFormat dayFormat dayAbbrevFormat watershedNumber watershedTime";
const VALUES = "if isArray isBoolean isDate isDefined isNumber isObject isString isValid isTuple toBoolean toDate toNumber toString extent inrange lerp pluck peek span merge clampRange sequence";
const COLOURS = "rgb hsl lab hcl luminance contrast gradient";
/** What Vega and Vega-Lite themselves write for scales and selections; texts of authors that ask for what changes data are refused before. */
const VEGA = "flush setdata scale invert domain range bandwidth bandspace copy data indata inScope intersect item group view xy x y modify vlSelectionTest vlSelectionIdTest vlSelectionTuples vlSelectionResolve panLinear panLog panPow panSymlog zoomLinear zoomLog zoomPow zoomSymlog";
const CALLED = new Set([MATHS, TIMES, TEXTS, FORMATS, VALUES, COLOURS, VEGA].flatMap((names) => names.split(" ")));

/** Properties that lead out of the chart, or to what makes functions. */
const REACHED = new Set("constructor prototype __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ view vega dataflow target currentTarget relatedTarget srcElement originalTarget explicitOriginalTarget ownerDocument defaultView document window composedPath sourceCapabilities context _view".split(" "));
/** The most parts of one expression, and of all of them. */
export const MOST_PARTS = 5_000;
const MOST_OF_ALL = 50_000;

const sizes = new WeakMap<object, number>();
const inner = (node: Node): Node[] => Object.values(node).flatMap((part): Node[] => (Array.isArray(part) ? part.filter(isNode) : isNode(part) ? [part] : []));
const isNode = (part: unknown): part is Node => typeof part === "object" && part !== null && typeof (part as Node).type === "string";

/** Visits all parts of an expression, and counts them. */
function visit(root: Node, look: (node: Node) => void): number {
  const left = [root];
  let count = 0;
  for (let node = left.pop(); node; node = left.pop()) {
    look(node);
    count += 1;
    left.push(...inner(node));
  }
  return count;
}

/** The parts of an expression: what it costs to run it once. */
export function sizeOf(ast: object): number {
  const known = sizes.get(ast);
  if (known !== undefined) return known;
  const size = visit(ast as Node, () => {});
  sizes.set(ast, size);
  return size;
}

/** Where a chain of properties begins. */
function rootOf(node: Node | undefined): string | undefined {
  let at = node;
  while (at?.type === "MemberExpression") at = at.object;
  return at?.type === "CallExpression" ? "()" : at?.name;
}

function judge(node: Node): string | undefined {
  if (node.type === "Literal" && node.regex !== undefined && node.regex !== null) return "regular expressions are not run";
  if (node.type === "CallExpression") {
    const name = node.callee?.name ?? "";
    // Encoders call functions of scales by names with a mark before them.
    return CALLED.has(name.replace(/^_/, "")) ? undefined : name === "test" || name === "regexp" ? "regular expressions are not run" : `“${words(name)}” is not called`;
  }
  if (node.type === "MemberExpression" && node.property) {
    const { property, computed, object } = node;
    const name = computed ? (property.type === "Literal" ? String(property.value) : undefined) : property.name;
    if (name !== undefined) return REACHED.has(name) && rootOf(object) !== "datum" ? `“${words(name)}” is not read` : ["constructor", "__proto__", "prototype"].includes(name) ? `“${words(name)}” is not read` : undefined;
    // What is computed may be any name: of rows that is harmless.
    const root = rootOf(object);
    return root === "event" || root === "item" || root === "()" ? "properties of events are read by their names alone" : undefined;
  }
  return undefined;
}

/** Returns true for a text that would change the data of its chart, if it were run. */
export function asksToModify(text: string): boolean {
  if (!text.includes("(")) return false;
  try {
    let found = false;
    visit(parseExpression(text) as Node, (node) => (found ||= node.type === "CallExpression" && /^_*(modify|setdata)$/.test(node.callee?.name ?? "")));
    return found;
  } catch {
    return false;
  }
}

/** Judges all expressions of what Vega has parsed; throws where one is refused. */
export function judgeAll(runtime: unknown): void {
  let all = 0;
  const left: unknown[] = [runtime];
  while (left.length > 0) {
    const one = left.pop();
    if (typeof one !== "object" || one === null) continue;
    for (const [key, part] of Object.entries(one)) {
      if (key === "ast" && isNode(part)) {
        let reason: string | undefined;
        const size = visit(part, (node) => (reason ??= judge(node)));
        all += size;
        if (size > MOST_PARTS || all > MOST_OF_ALL) reason ??= "expressions are too long";
        if (reason) throw new Undrawable(`This spec is not drawn: in an expression ${reason}.`);
      } else if (key !== "$ingest") left.push(part);
    }
  }
}
