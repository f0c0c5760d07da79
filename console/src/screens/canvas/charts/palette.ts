// The colours of a chart: those of the board's theme, which style sheets know and a canvas does not.

import type { Config } from "vega-lite";
import { safe } from "../../explore/colours";
import { visible } from "../../../parts/text";
import { block, type Channel } from "./settings";

/** What a chart is drawn with. */
export interface Palette {
  chart: string;
  second: string;
  /** Colours of lines and parts, in order. */
  lines: string[];
  /** From few to many. */
  ramp: string[];
  /** From one end over the middle to the other. */
  diverging: string[];
  text: string;
  muted: string;
  line: string;
  ground: string;
  font: string;
  /** Returns a text if it is nothing but a colour that the browser knows. */
  colour: (text: unknown) => string | undefined;
}

/** Variables of style sheets, as an element has them. */
export function paletteOf(element: HTMLElement): Palette {
  const style = getComputedStyle(element);
  // A canvas knows no variables: an element says what they come to. A pixel makes it red, green and blue, which is all that Vega can mix.
  const probe = element.appendChild(document.createElement("i"));
  const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const mixable = (colour: string) => {
    if (!pixel) return colour;
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0, alpha = 0] = pixel.getImageData(0, 0, 1, 1).data;
    return alpha === 255 ? `rgb(${red}, ${green}, ${blue})` : `rgba(${red}, ${green}, ${blue}, ${(alpha / 255).toFixed(3)})`;
  };
  const read = (value: string) => {
    probe.style.setProperty("color", value);
    return mixable(getComputedStyle(probe).color);
  };
  const has = (name: string) => style.getPropertyValue(name).trim() !== "";
  const first = (...names: string[]) => read(`var(${names.find(has) ?? names.at(-1)})`);
  // A scale that the theme has for the other ground alone can't be seen on this one.
  const isSeen = (colour: string) => !colour.endsWith(", 0.000)");
  const all = (name: string, most: number) => Array.from({ length: most }, (_, place) => `${name}-${place}`).filter(has).map((one) => read(`var(${one})`)).filter(isSeen);
  const chart = first("--chart", "--accent");
  const second = first("--chart-before", "--muted");
  const ground = first("--bg");
  const mixed = (colour: string, share: number) => read(`color-mix(in oklab, ${colour} ${share}%, ${ground})`);
  const lines = all("--line", 24);
  const ramp = all("--sequential", 9);
  const diverging = all("--diverging", 11);
  const palette: Palette = {
    chart,
    second,
    lines: lines.length > 0 ? lines : [chart, second, first("--ok"), first("--tone-fails"), first("--stale"), first("--blocked"), first("--text")],
    ramp: ramp.length > 1 ? ramp : [15, 45, 75, 100].map((share) => mixed(chart, share)),
    diverging: diverging.length > 1 ? diverging : [first("--down", "--failed"), mixed(second, 25), first("--up", "--ok")],
    text: first("--text"),
    muted: first("--muted"),
    line: read("var(--line)"),
    ground,
    font: style.fontFamily,
    colour: (text) => {
      const said = safe(text, (one) => CSS.supports("color", one));
      return said === undefined ? undefined : mixable(said);
    },
  };
  probe.remove();
  return palette;
}

/** Returns a palette with the colours that the config of an author has for values and numbers: lists of them, or schemes by name. */
export function repainted(palette: Palette, range: unknown, schemed: (name: string) => unknown): Palette {
  const said = block(range);
  const listed = (one: unknown): string[] => {
    const name = typeof one === "string" ? one : block(one).scheme;
    const all = typeof name === "string" ? schemed(name) : one;
    // A scheme of numbers is a function from 0 to 1.
    const colours: unknown[] = Array.isArray(all) ? all : typeof all === "function" ? [0, 0.25, 0.5, 0.75, 1].map((at) => (all as (at: number) => unknown)(at)) : [];
    return colours.flatMap((colour) => palette.colour(colour) ?? []);
  };
  const some = (least: number, otherwise: string[], ...keys: string[]) => keys.map((key) => listed(said[key])).find(({ length }) => length >= least) ?? otherwise;
  return { ...palette, lines: some(1, palette.lines, "category"), ramp: some(2, palette.ramp, "heatmap", "ramp", "ordinal"), diverging: some(2, palette.diverging, "diverging") };
}

/** The colour that an author names: `primary`, `secondary`, or any other; that of charts where it is none. */
export function fixedColour(palette: Palette, said: unknown): string {
  if (said === "secondary") return palette.second;
  return said === "primary" ? palette.chart : (palette.colour(said) ?? palette.chart);
}

/** Colours of values in order: those that the author maps, then those of the theme. */
export function coloursFor(palette: Palette, values: { value: unknown; name: string }[], channel: Pick<Channel, "mapping">): string[] {
  const mapped = new Map(channel.mapping.map(({ value, colour }) => [String(value).toLowerCase(), palette.colour(colour)]));
  return values.map(({ value, name }, place) => mapped.get(String(value).toLowerCase()) ?? mapped.get(name.toLowerCase()) ?? palette.lines[place % palette.lines.length]!);
}

/** The colours of numbers, from few to many, as the author set them. */
export function rampOf(palette: Palette, { range }: Pick<Channel, "range">): string[] {
  const [start, end] = [palette.colour(range.start === "primary" ? palette.chart : range.start === "secondary" ? palette.second : range.start), palette.colour(range.end === "primary" ? palette.chart : range.end === "secondary" ? palette.second : range.end)];
  if (start && end) return [start, end];
  return range.scheme === "diverging" ? palette.diverging : palette.ramp;
}

/** The look that all charts have, those of authors too. */
export function configOf(palette: Palette): Config {
  const { text, muted, line, font, chart } = palette;
  const label = { labelColor: muted, labelFont: font, labelFontSize: 11, titleColor: text, titleFont: font, titleFontSize: 11, titleFontWeight: "normal" as const };
  const mark = { color: chart };
  return {
    background: "transparent",
    aria: false,
    customFormatTypes: true,
    font,
    padding: 4,
    view: { stroke: null },
    axis: { ...label, domainColor: line, tickColor: line, gridColor: line, labelOverlap: true, labelSeparation: 8, labelLimit: 140 },
    axisX: { grid: false },
    legend: { ...label, labelLimit: 160, symbolLimit: 30, symbolType: "circle" },
    header: label,
    title: { color: text, font, fontSize: 12, fontWeight: "normal" },
    text: { color: text, font, fontSize: 11 },
    bar: mark,
    tick: mark,
    line: { ...mark, strokeWidth: 2 },
    area: mark,
    point: mark,
    circle: mark,
    square: mark,
    rect: mark,
    arc: { stroke: palette.ground, strokeWidth: 1 },
    rule: { color: muted },
    range: { category: palette.lines, ordinal: palette.ramp, ramp: palette.ramp, heatmap: palette.ramp, diverging: palette.diverging },
    selection: {
      // Drags end where the chart ends: nothing listens to the page.
      interval: { on: "[pointerdown, pointerup] > pointermove!", translate: "[pointerdown, pointerup] > pointermove!" },
    },
  };
}

/** A tooltip of Vega, which may be anything, as text. */
export function told(value: unknown, most = 1_000): string {
  if (value === null || value === undefined || value === "") return "";
  const one = (part: unknown): string => {
    if (typeof part !== "object" || part === null) return String(part);
    try {
      return JSON.stringify(part) ?? "";
    } catch {
      // What holds itself has no end.
      return "…";
    }
  };
  const text = typeof value === "object" && !Array.isArray(value) ? Object.entries(value).map(([title, part]) => `${title}: ${one(part)}`).join("\n") : one(value);
  return visible(text.slice(0, most));
}
