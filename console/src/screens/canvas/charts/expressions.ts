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
  left?: Node;
  right?: Node;
  argument?: Node;
  arguments?: Node[];
  [part: string]: unknown;
}

const MATHS = "isNaN isFinite abs acos asin atan atan2 ceil clamp cos exp floor hypot log max min pow random round sin sqrt tan";
const TIMES = "now utc datetime date day year month hours minutes seconds milliseconds time timezoneoffset utcdate utcday utcyear utcmonth utchours utcminutes utcseconds utcmilliseconds quarter utcquarter week utcweek isoweek utcisoweek dayofyear utcdayofyear timeOffset utcOffset timeUnitSpecifier";
const TEXTS = "length join indexof lastindexof slice reverse sort parseFloat parseInt upper lower substring split replace trim truncate";
const FORMATS = "format timeFormat utcFormat timeParse utcParse monthFormat monthAbbrevFormat dayFormat dayAbbrevFormat watershedNumber watershedTime";
const VALUES = "if isArray isBoolean isDate isDefined isNumber isObject isString isValid isTuple toBoolean toDate toNumber toString extent inrange lerp pluck peek span merge clampRange sequence";
const COLOURS = "rgb hsl lab hcl luminance contrast gradient";
/** What Vega and Vega-Lite themselves write for scales and selections, besides what changes data. */
const VEGA = "flush scale invert domain range bandwidth bandspace copy data indata inScope intersect item group xy x y vlSelectionTest vlSelectionIdTest vlSelectionTuples vlSelectionResolve panLinear panLog panPow panSymlog zoomLinear zoomLog zoomPow zoomSymlog";
const CALLED = new Set([MATHS, TIMES, TEXTS, FORMATS, VALUES, COLOURS, VEGA].flatMap((names) => names.split(" ")));

/** What changes data, and whose data it may change: those of selections, and those that Vega makes for domains. */
const CHANGES = new Map([
  ["modify", /_store$/],
  ["setdata", /^_:vega:_/],
]);
/** Calls that don't look into the lists and texts that they are given. */
const FREE = new Set("if length isArray isBoolean isDate isDefined isNumber isObject isString isValid isTuple peek toBoolean data indata inScope item group x y xy".split(" "));

/** What may be read of an event. */
const OF_EVENTS = new Set("item type shiftKey ctrlKey altKey metaKey button buttons clientX clientY pageX pageY screenX screenY offsetX offsetY movementX movementY deltaX deltaY deltaMode touches changedTouches pointerType key code detail timeStamp".split(" "));
/** Names by which a page turns objects into texts: an object that has one of its own runs it. */
const CONVERTS = new Set(["toString", "valueOf", "toJSON"]);
/** Properties that lead out of the chart, or to what makes functions. */
export const REACHED = new Set("constructor prototype __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__ view vega dataflow target currentTarget relatedTarget srcElement originalTarget explicitOriginalTarget ownerDocument defaultView document window composedPath sourceCapabilities context _view _el _renderer parentNode parentElement fromElement toElement".split(" "));
/** The most parts of one expression, and of all of them. */
export const MOST_PARTS = 5_000;
const MOST_OF_ALL = 50_000;

const sizes = new WeakMap<object, number>();
/** Names stand in a node like values: those of what is called or read, and those of an event, which is judged with what is read of it. */
const isName = (node: Node, key: string): boolean => key === "callee" || key === "key" || (key === "property" && !node.computed) || (key === "object" && node.object?.name === "event");
const inner = (node: Node): Node[] => Object.entries(node).flatMap(([key, part]): Node[] => (isName(node, key) ? [] : Array.isArray(part) ? part.filter(isNode) : isNode(part) ? [part] : []));
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

const isBare = (node: Node | undefined, name: string): boolean => node?.type === "Identifier" && node.name === name;

function judge(node: Node): string | undefined {
  if (node.type === "Literal" && node.regex !== undefined && node.regex !== null) return "regular expressions are not run";
  if (isBare(node, "event")) return "properties of events are read by their names alone";
  if (node.type === "Property") {
    const name = String(node.key?.name ?? node.key?.value);
    return CONVERTS.has(name) ? `“${name}” is no key` : undefined;
  }
  if (node.type === "CallExpression") {
    // Encoders call functions of scales by names with a mark before them.
    const name = (node.callee?.name ?? "").replace(/^_/, "");
    const changed = node.arguments?.[0]?.value;
    if (CHANGES.has(name)) return typeof changed === "string" && CHANGES.get(name)!.test(changed) ? undefined : "data are changed";
    return CALLED.has(name) ? undefined : name === "test" || name === "regexp" ? "regular expressions are not run" : `“${words(name)}” is not called`;
  }
  if (node.type === "MemberExpression" && node.property) {
    const { property, computed, object } = node;
    const name = computed ? (property.type === "Literal" ? String(property.value) : undefined) : property.name;
    // What is computed is judged when it is known.
    if (name === undefined) return isBare(object, "event") ? "properties of events are read by their names alone" : undefined;
    const isRead = isBare(object, "event") ? OF_EVENTS.has(name) : isBare(object, "datum") ? !["constructor", "__proto__", "prototype"].includes(name) : !REACHED.has(name);
    return isRead ? undefined : `“${words(name)}” is not read`;
  }
  return undefined;
}

/** Functions of ours through which an expression hands what costs time, and names that it computes. */
export const [PAID, NAMED] = ["watershedPaid", "watershedName"];
const handed = new WeakSet<object>();

/** Operators and calls look into all of a list or a text, and names may lead anywhere: what they are given goes through functions of ours first. */
export function handOver(ast: object): void {
  // Small charts share their expressions.
  if (handed.has(ast)) return;
  handed.add(ast);
  const through = (name: string, part: Node): Node => (part.type === "Literal" ? part : { type: "CallExpression", callee: { type: "Identifier", name }, arguments: [part] });
  visit(ast as Node, (node) => {
    const { type, operator, callee, computed, object, property, left, right, argument } = node;
    const called = callee?.name?.replace(/^_/, "") ?? "";
    if (type === "BinaryExpression" && left && right && operator !== "===" && operator !== "!==") Object.assign(node, { left: through(PAID, left), right: through(PAID, right) });
    else if (type === "UnaryExpression" && argument && operator !== "!") node.argument = through(PAID, argument);
    else if (type === "MemberExpression" && computed && property) node.property = through(isBare(object, "datum") ? PAID : NAMED, property);
    else if (type === "CallExpression" && node.arguments && !FREE.has(called) && called !== PAID && called !== NAMED) node.arguments = node.arguments.map((part) => through(PAID, part));
  });
}

/** Says what speaks against a text of a spec: that it would change the data of its chart if it were run, or that it is run and yet no whole expression, as halves are that only together show what they do. */
export function against(text: string, isRun: boolean): string | undefined {
  if (!isRun && !text.includes("(")) return undefined;
  try {
    let found = false;
    visit(parseExpression(text) as Node, (node) => (found ||= node.type === "CallExpression" && CHANGES.has(node.callee?.name?.replace(/^_+/, "") ?? "")));
    return found ? "it changes its own data" : undefined;
  } catch {
    return isRun ? "it is no expression" : undefined;
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
