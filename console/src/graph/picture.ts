// The picture of a graph on a canvas.

import { SHAPES, type Tone } from "../parts/standing";
import { GAP, NODE, type Layout } from "./layout";
import type { Node, Scene } from "./scene";

/** The part of the drawing that is seen: its scale, and where its corner stands on the screen. */
export interface View {
  scale: number;
  x: number;
  y: number;
}

/** Below this scale names can't be read, and folders take their place. */
export const FAR = 0.42;
/** Below this scale a line below the name can't be read, and the name takes its room. */
const SMALL = 0.95;
/** The height of letters that people read with ease, and the least they can read, in pixels of the screen. */
const LETTERS = { good: 11, least: 9 };
/** Below this scale edges are a haze, so fewer of their bends are drawn. */
const HAZE = 0.2;

const shapes = new Map<Tone, Path2D>();
function shape(tone: Tone): Path2D {
  const path = shapes.get(tone) ?? new Path2D(SHAPES[tone]);
  shapes.set(tone, path);
  return path;
}

/** Colours of the theme, as a canvas takes them. */
export class Colours {
  private readonly known = new Map<string, string>();
  private readonly probe = document.createElement("i");

  /** The probe stands in an element that shows none of its content: so nothing else has to be looked at again. */
  constructor(within: Element) {
    within.append(this.probe);
  }

  /** Returns the colour of a variable of the theme. */
  get(name: string): string {
    let colour = this.known.get(name);
    if (colour === undefined) {
      this.probe.style.color = `var(--${name})`;
      colour = getComputedStyle(this.probe).color;
      this.known.set(name, colour);
    }
    return colour;
  }

  /** Forgets all: the theme has changed. */
  forget(): void {
    this.known.clear();
  }
}

/** The number of colours of folders. */
export const HUES = 8;

/** Returns the name of the colour of a folder, by its place among folders. */
export function hue(at: number): string {
  return `hue-${at % HUES}`;
}

/** All that a picture depends on, but for its scene's states. */
interface Ground {
  edges: Scene["edges"];
  layout: Layout;
  view: View;
  chosen: number | undefined;
  near: ReadonlySet<number>;
  width: number;
  height: number;
  dense: number;
}

/** Draws a scene. */
export class Picture {
  private readonly colours: Colours;
  private readonly names = new Map<string, string>();
  /** What was drawn last, and the picture of it without nodes once that was needed. */
  private last: { nodes: Node[]; ground: Ground; empty: ImageBitmap | undefined } | undefined;

  constructor(private readonly canvas: HTMLCanvasElement) {
    this.colours = new Colours(canvas);
  }

  /** Forgets all: the theme has changed. */
  forget(): void {
    this.colours.forget();
    this.last = undefined;
  }

  /** Draws all that the view shows; where only states have changed, only those nodes. `near` are the nodes beside the one that is chosen. */
  draw(scene: Scene, layout: Layout, view: View, chosen: number | undefined, near: ReadonlySet<number>): void {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ground: Ground = { edges: scene.edges, layout, view, chosen, near, width, height, dense: window.devicePixelRatio || 1 };
    const { last } = this;
    const { nodes } = scene;
    if (last && nodes.length === last.nodes.length && isApart(ground) && isSame(ground, last.ground)) {
      if (nodes.every((node, at) => node === last.nodes[at])) return;
      last.empty ??= this.empty(scene, ground);
      for (let at = 0; at < nodes.length; at++) if (nodes[at] !== last.nodes[at]) this.again(context, last.empty, scene, ground, at);
      last.nodes = nodes;
      return;
    }
    this.last?.empty?.close();
    this.last = { nodes, ground, empty: undefined };
    const [wide, high] = pixels(ground);
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    this.ground(context, scene, ground);
    const { left, top, right, bottom } = seen(ground);
    const hues = huesOf(scene);
    for (let at = 0; at < nodes.length; at++) {
      const [x, y] = [layout.x[at]!, layout.y[at]!];
      if (x <= right && y <= bottom && x + NODE.width >= left && y + NODE.height >= top) this.node(context, nodes[at]!, ground, at, hues);
    }
    context.globalAlpha = 1;
  }

  /** The picture without nodes. */
  private empty(scene: Scene, ground: Ground): ImageBitmap {
    const canvas = new OffscreenCanvas(...pixels(ground));
    this.ground(canvas.getContext("2d", { alpha: false })!, scene, ground);
    return canvas.transferToImageBitmap();
  }

  /** Draws a node in the place of what it was. */
  private again(context: Context, empty: ImageBitmap, scene: Scene, ground: Ground, at: number): void {
    const { layout, view, dense } = ground;
    const edge = view.scale < FAR ? 0 : 1;
    const left = Math.max(0, Math.floor((layout.x[at]! * view.scale + view.x) * dense) - edge);
    const top = Math.max(0, Math.floor((layout.y[at]! * view.scale + view.y) * dense) - edge);
    const right = Math.min(empty.width, Math.ceil(((layout.x[at]! + NODE.width) * view.scale + view.x) * dense) + edge);
    const bottom = Math.min(empty.height, Math.ceil(((layout.y[at]! + NODE.height) * view.scale + view.y) * dense) + edge);
    if (right <= left || bottom <= top) return;
    const size = [left, top, right - left, bottom - top] as const;
    context.globalAlpha = 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(empty, ...size, ...size);
    this.place(context, ground);
    this.node(context, scene.nodes[at]!, ground, at, huesOf(scene));
    context.globalAlpha = 1;
  }

  private place(context: Context, { view, dense }: Ground): void {
    context.setTransform(dense * view.scale, 0, 0, dense * view.scale, dense * view.x, dense * view.y);
  }

  private ground(context: Context, scene: Scene, ground: Ground): void {
    const { layout, view, chosen } = ground;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = this.colours.get("canvas");
    context.fillRect(0, 0, ...pixels(ground));
    this.place(context, ground);
    this.edges(context, scene, layout, view, seen(ground), chosen);
  }

  private node(context: Context, node: Node, { layout, view, chosen, near }: Ground, at: number, hues: Map<string, string>): void {
    const [x, y] = [layout.x[at]!, layout.y[at]!];
    context.globalAlpha = chosen === undefined || chosen === at || near.has(at) ? 1 : 0.4;
    if (view.scale < FAR && node.resource) this.block(context, x, y, node.tone, hues.get(node.folder) ?? hue(0));
    else this.card(context, x, y, at === chosen, node, view.scale);
  }

  private edges(context: Context, scene: Scene, layout: Layout, view: View, seen: Seen, chosen: number | undefined): void {
    const { from, to } = scene.edges;
    const middle = NODE.height / 2;
    const line = (edge: number) => {
      const [a, b] = [from[edge]!, to[edge]!];
      const [x1, y1] = [layout.x[a]! + NODE.width, layout.y[a]! + middle];
      const [x2, y2] = [layout.x[b]!, layout.y[b]! + middle];
      if (Math.max(x1, x2) < seen.left || Math.min(x1, x2) > seen.right) return;
      if (Math.max(y1, y2) < seen.top || Math.min(y1, y2) > seen.bottom) return;
      context.moveTo(x1, y1);
      const bend = Math.max(24, Math.min((x2 - x1) / 2, 140));
      if (view.scale < HAZE) context.lineTo(x2, y2);
      else context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
    };
    context.lineWidth = Math.min(1.2, 1 / view.scale);
    context.strokeStyle = this.colours.get("edge");
    context.globalAlpha = chosen === undefined ? 1 : 0.35;
    context.beginPath();
    for (let edge = 0; edge < from.length; edge++) line(edge);
    context.stroke();
    context.globalAlpha = 1;
    if (chosen === undefined) return;
    context.lineWidth = 1.75 / Math.min(1, Math.max(view.scale, 0.5));
    context.strokeStyle = this.colours.get("accent");
    context.beginPath();
    for (let edge = 0; edge < from.length; edge++) if (from[edge] === chosen || to[edge] === chosen) line(edge);
    context.stroke();
  }

  /** A node from afar: the colour of its folder; that of its state where a person is needed, or something moves. */
  private block(context: Context, x: number, y: number, tone: Tone, folder: string): void {
    const isQuiet = tone === "ok" || tone === "none";
    context.fillStyle = this.colours.get(isQuiet ? folder : `tone-${tone}`);
    context.beginPath();
    context.roundRect(x, y, NODE.width, NODE.height, 8);
    context.fill();
    if (isQuiet) return;
    context.save();
    context.translate(x + NODE.width / 2 - 14, y + NODE.height / 2 - 14);
    context.scale(1.75, 1.75);
    context.fillStyle = this.colours.get("canvas");
    context.fill(shape(tone), "evenodd");
    context.restore();
  }

  /** A node from nearby: shape, name, and a line on how it stands. */
  private card(context: Context, x: number, y: number, isChosen: boolean, node: Node, scale: number): void {
    const { colours } = this;
    const isSmall = scale < SMALL;
    const colour = colours.get(`tone-${node.tone}`);
    context.beginPath();
    context.roundRect(x + 0.5, y + 0.5, NODE.width - 1, NODE.height - 1, 7);
    context.fillStyle = colours.get(node.tone === "failed" || node.tone === "fails" ? "failed-tint" : node.tone === "blocked" || node.tone === "stale" ? "stale-tint" : "bg");
    context.fill();
    const isCalm = node.tone === "ok" || node.tone === "none" || node.tone === "unbuilt";
    context.lineWidth = isChosen ? 2 : 1;
    context.strokeStyle = isChosen ? colours.get("accent") : isCalm ? colours.get("edge") : colour;
    context.stroke();
    context.save();
    context.translate(x + 10, y + (isSmall ? 13 : 7.5));
    context.scale(0.6, 0.6);
    context.fillStyle = colour;
    context.fill(shape(node.tone), "evenodd");
    context.restore();
    const room = NODE.width - 36;
    context.textBaseline = "alphabetic";
    if (isSmall) {
      this.name(context, x, y, node, scale);
      return;
    }
    context.font = "500 12px system-ui, sans-serif";
    context.fillStyle = colours.get("text");
    context.fillText(this.fitted(context, node.label, room), x + 25, y + 16);
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = isCalm ? colours.get("muted") : colour;
    context.fillText(this.fitted(context, node.detail, room), x + 25, y + 29);
  }

  /** The name alone, in letters as large as it has room for; behind it the kind where others have the same name. */
  private name(context: Context, x: number, y: number, node: Node, scale: number): void {
    let room = NODE.width - 30;
    const font = (size: number) => `500 ${Math.round(size * 2) / 2}px system-ui, sans-serif`;
    const least = LETTERS.least / scale;
    if (node.mark) {
      context.font = font(least);
      const width = context.measureText(node.mark).width;
      context.fillStyle = this.colours.get("muted");
      context.fillText(node.mark, x + NODE.width - width - 6, y + NODE.height / 2 + least * 0.36);
      room -= width + 6;
    }
    let size = Math.max(15, LETTERS.good / scale);
    context.font = font(size);
    const width = context.measureText(node.label).width;
    if (width > room) {
      size = Math.max(Math.min(15, size), least, (size * room) / width);
      context.font = font(size);
    }
    context.fillStyle = this.colours.get("text");
    context.fillText(this.fitted(context, node.label, room), x + 25, y + NODE.height / 2 + size * 0.36);
  }

  /** Cuts a text to a width. What was measured is kept. */
  private fitted(context: Context, text: string, room: number): string {
    const key = `${context.font} ${Math.round(room)} ${text}`;
    const known = this.names.get(key);
    if (known !== undefined) return known;
    if (this.names.size > 50_000) this.names.clear();
    let short = text;
    if (context.measureText(text).width > room) {
      let [fits, wide] = [0, text.length];
      while (fits + 1 < wide) {
        const half = (fits + wide) >> 1;
        if (context.measureText(`${text.slice(0, half)}…`).width > room) wide = half;
        else fits = half;
      }
      short = `${text.slice(0, fits)}…`;
    }
    this.names.set(key, short);
    return short;
  }
}

type Context = CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D;

/** True if no pixel belongs to two nodes. */
function isApart({ view, dense }: Ground): boolean {
  return GAP.y * view.scale * dense >= 1;
}

function isSame(one: Ground, other: Ground): boolean {
  return (Object.keys(one) as (keyof Ground)[]).every((name) => one[name] === other[name]);
}

function pixels({ width, height, dense }: Ground): [number, number] {
  return [Math.max(1, Math.round(width * dense)), Math.max(1, Math.round(height * dense))];
}

function seen({ view, width, height }: Ground): Seen {
  return { left: -view.x / view.scale, top: -view.y / view.scale, right: (width - view.x) / view.scale, bottom: (height - view.y) / view.scale };
}

const hues = new WeakMap<Scene["folders"], Map<string, string>>();
/** The colours of a scene's folders. */
function huesOf({ folders }: Scene): Map<string, string> {
  const known = hues.get(folders) ?? new Map(folders.map((folder, at) => [folder.name, hue(at)]));
  hues.set(folders, known);
  return known;
}

interface Seen {
  left: number;
  top: number;
  right: number;
  bottom: number;
}
