// The picture of a graph on a canvas.

import { SHAPES, type Tone } from "../parts/standing";
import { NODE, type Layout } from "./layout";
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

  /** Returns the colour of a variable of the theme. */
  get(name: string): string {
    let colour = this.known.get(name);
    if (colour === undefined) {
      this.probe.style.color = `var(--${name})`;
      document.body.append(this.probe);
      colour = getComputedStyle(this.probe).color;
      this.probe.remove();
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

/** Draws a scene. */
export class Picture {
  readonly colours = new Colours();
  private readonly names = new Map<string, string>();

  constructor(private readonly canvas: HTMLCanvasElement) {}

  /** Draws all that the view shows. `near` are the nodes beside the one that is chosen. */
  draw(scene: Scene, layout: Layout, view: View, chosen: number | undefined, near: ReadonlySet<number>): void {
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) return;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const dense = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * dense) || this.canvas.height !== Math.round(height * dense)) {
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(height * dense);
    }
    const { colours } = this;
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.fillStyle = colours.get("canvas");
    context.fillRect(0, 0, width, height);
    context.translate(view.x, view.y);
    context.scale(view.scale, view.scale);
    const seen = {
      left: -view.x / view.scale,
      top: -view.y / view.scale,
      right: (width - view.x) / view.scale,
      bottom: (height - view.y) / view.scale,
    };
    this.edges(context, scene, layout, view, seen, chosen);
    const hues = new Map(scene.folders.map((folder, at) => [folder.name, hue(at)]));
    const isFar = view.scale < FAR;
    scene.nodes.forEach((node, at) => {
      const [x, y] = [layout.x[at]!, layout.y[at]!];
      if (x > seen.right || y > seen.bottom || x + NODE.width < seen.left || y + NODE.height < seen.top) return;
      const isLit = chosen === undefined || chosen === at || near.has(at);
      context.globalAlpha = isLit ? 1 : 0.4;
      if (isFar && node.resource) this.block(context, x, y, node.tone, hues.get(node.folder) ?? hue(0));
      else this.card(context, x, y, at === chosen, scene.nodes[at]!, view.scale);
    });
    context.globalAlpha = 1;
  }

  private edges(context: CanvasRenderingContext2D, scene: Scene, layout: Layout, view: View, seen: Seen, chosen: number | undefined): void {
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
  private block(context: CanvasRenderingContext2D, x: number, y: number, tone: Tone, folder: string): void {
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
  private card(context: CanvasRenderingContext2D, x: number, y: number, isChosen: boolean, node: Node, scale: number): void {
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
  private name(context: CanvasRenderingContext2D, x: number, y: number, node: Node, scale: number): void {
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
  private fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
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

interface Seen {
  left: number;
  top: number;
  right: number;
  bottom: number;
}
