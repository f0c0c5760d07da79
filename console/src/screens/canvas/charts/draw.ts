// Draws charts with Vega: loaded with the first one. No expression is compiled, nothing is loaded, and nothing outside the chart is listened to.

import { expressionFunction, mergeConfig, parse, scheme, View, type Config, type Loader, type LoggerInterface, type Runtime, type Spec } from "vega";
import { compile } from "vega-lite";
import { d3 } from "../../explore/format/pattern";
import { preset } from "../../explore/format/preset";
import { MOST_POINTS, Undrawable, words } from "./answer";
import { bound, interpreter, trust } from "./budget";
import { timeLabel, type Chart, type Ground } from "./chart";
import { judgeAll } from "./expressions";
import { refusals } from "./guard";
import { nearest } from "./near";
import { json } from "./own";
import { configOf, repainted, told } from "./palette";
import { chartOf, isOwn } from "./spec";

/** The most marks of all sorts, with those of axes and legends. */
const MOST_MARKS = MOST_POINTS * 3;
/** The most pixels of a side. */
const MOST_PIXELS = 8_000;

const forms = new Map<string, (value: number) => string>();
/** A number by the format of the view, on axes and legends. */
function numberText(value: unknown, form: unknown): string {
  if (typeof value !== "number" || typeof form !== "string") return "";
  let write = forms.get(form);
  if (!write) {
    const [pattern, name] = JSON.parse(form) as [string, string];
    write = (pattern ? d3(pattern) : undefined) ?? (name ? preset(name) : undefined) ?? String;
    forms.set(form, write);
  }
  return write(value);
}
expressionFunction("watershedNumber", numberText);
expressionFunction("watershedTime", (value: unknown, form: unknown) => (typeof form === "string" ? timeLabel(Number(value), form) : ""));
// The interpreter takes a lone number for a year, where Vega's own compiler takes it for an instant.
expressionFunction("datetime", (...all: unknown[]) => new Date(...((all.length > 1 ? [all[0], all[1], ...[1, 0, 0, 0, 0].map((least, place) => all[place + 2] ?? least)] : all) as [number])));

const refused = (): never => {
  throw new Undrawable("Nothing is loaded for charts.");
};
const loader = { load: async () => refused(), sanitize: async () => refused(), http: async () => refused(), file: async () => refused() } as unknown as Loader;
/** What a chart may listen to: the pointer over itself. */
const EVENTS = { bind: "none", window: false, selector: false, timer: false, container: false, defaults: { prevent: false } };

/** A logger that says nothing, and keeps what is wrong. */
function keeping(warnings: string[], failed: (reason: unknown) => void): LoggerInterface {
  const logger = {
    level: () => logger,
    error: (...all: unknown[]) => (failed(all[0]), logger),
    warn: (...all: unknown[]) => (warnings.push(all.map(String).join(" ")), logger),
    info: () => logger,
    debug: () => logger,
  };
  return logger as unknown as LoggerInterface;
}

/** A chart as Vega has computed it, not yet on the page. */
export interface Ready {
  chart: Chart;
  view: View;
  warnings: string[];
  /** Calls back if a later run goes wrong; what went wrong first is thrown by `ready`. */
  onFail: (hear: (reason: string) => void) => void;
}

/** The config of a chart of ours that its author sets, as far as it is harmless. */
function authored({ properties }: Ground): Record<string, unknown> {
  const own = properties.vl_config === undefined ? {} : json(properties.vl_config, "The setting “vl_config”");
  const found = refusals(own, []);
  if (found.length > 0) throw new Undrawable(`The setting “vl_config” is refused: ${found[0]}.`);
  return own;
}

const reasonOf = (error: unknown): string => (error instanceof Undrawable ? error.message : `The chart can't be drawn: ${words(error instanceof Error ? error.message : String(error))}`);

/** Computes a chart; throws `Undrawable` with the reason where that can't be done. */
export async function ready(ground: Ground): Promise<Ready> {
  bound();
  const warnings: string[] = [];
  let failure: unknown;
  let hear: ((reason: string) => void) | undefined;
  const logger = keeping(warnings, (reason) => {
    failure ??= reason ?? "unknown";
    hear?.(reasonOf(failure));
  });
  let view: View | undefined;
  try {
    const own = authored(ground);
    const palette = repainted(ground.palette, own.range, (name) => scheme(name) as unknown);
    const chart = chartOf({ ...ground, palette });
    const compiled = compile(chart.spec, { config: mergeConfig(configOf(palette) as Config, own as Config) as object, logger: logger as never }).spec as Spec;
    const runtime = parse({ ...compiled, config: { ...compiled.config, events: EVENTS } as Config }, {}, { ast: true }) as Runtime;
    judgeAll(runtime);
    view = new View(runtime, { expr: interpreter as never, loader, logger, renderer: "canvas" });
    if (!isOwn(ground.renderer) && ground.properties.vl_config === undefined) trust(view);
    await view.runAsync();
    if (failure !== undefined) throw failure;
    measure(view);
    return { chart, view, warnings, onFail: (call) => (hear = call) };
  } catch (error) {
    view?.finalize();
    throw new Undrawable(reasonOf(failure ?? error));
  }
}

/** Marks of a scene, with those inside groups. */
interface Scene {
  items?: { items?: Scene[] }[];
}

function measure(view: View): void {
  const root = (view.scenegraph() as unknown as { root: Scene & { bounds: { width(): number; height(): number } } }).root;
  let marks = 0;
  const left: Scene[] = [root];
  for (let one = left.pop(); one; one = left.pop()) {
    marks += one.items?.length ?? 0;
    if (marks > MOST_MARKS) throw new Undrawable(`The chart has more than ${MOST_MARKS.toLocaleString()} marks: ${MOST_POINTS.toLocaleString()} points are drawn at most.`);
    for (const { items } of one.items ?? []) left.push(...(items ?? []));
  }
  if (Math.max(root.bounds.width(), root.bounds.height()) > MOST_PIXELS) throw new Undrawable(`The chart is larger than ${MOST_PIXELS.toLocaleString()} pixels.`);
}

/** What a chart tells its frame. */
export interface Hooks {
  pick: (dimension: string, value: unknown) => void;
  /** Shows a tooltip at a place of the window, and the point that it speaks of; none with an empty text. */
  tell: (text: string, left: number, top: number, point?: { left: number; top: number }) => void;
  fail: (reason: string) => void;
}

/** Puts a chart into an element. Returns what takes it away. */
export async function show({ chart, view, onFail }: Ready, into: HTMLElement, { pick, tell, fail }: Hooks): Promise<() => void> {
  // A chart that ends takes its tooltip away, and has no event to say.
  view.tooltip((_, event: MouseEvent | null, __, value) => tell(event ? told(value) : "", event?.clientX ?? 0, event?.clientY ?? 0));
  view.addEventListener("click", (_, item) => {
    const datum: unknown = item?.datum;
    const found = typeof datum === "object" && datum !== null ? chart.pick(datum as Record<string, unknown>) : undefined;
    if (found) pick(...found);
  });
  const { nearest: along } = chart;
  const near = (event: PointerEvent) => {
    const canvas = into.querySelector("canvas");
    if (!along || !canvas) return;
    const [frame, [x, y], padding] = [canvas.getBoundingClientRect(), view.origin(), view.padding() as { left: number; top: number }];
    const [left, top] = [frame.left + x + padding.left, frame.top + y + padding.top];
    const found = nearest(view, { x: event.clientX - left, y: event.clientY - top }, along);
    tell(found ? told(found.tooltip) : "", event.clientX, event.clientY, found && { left: left + found.x, top: top + found.y });
  };
  if (along) view.addEventListener("pointermove", (event, item) => (item as { tooltip?: unknown } | null)?.tooltip == null && near(event as PointerEvent));
  const leave = () => tell("", 0, 0);
  into.addEventListener("pointerleave", leave);
  onFail(fail);
  await view.initialize(into).runAsync();
  return () => {
    into.removeEventListener("pointerleave", leave);
    tell("", 0, 0);
    view.finalize();
    into.replaceChildren();
  };
}


