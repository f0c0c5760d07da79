// What units of charts are made from: answers, a palette without a browser, and a scene that says what stands in it.

import type { View } from "vega";
import { safe } from "../../explore/colours";
import type { Answer } from "./answer";
import type { Ground } from "./chart";
import { ready } from "./draw";
import type { Palette } from "./palette";

export const PALETTE: Palette = {
  chart: "#0000ff",
  second: "#777777",
  lines: ["#000001", "#000002", "#000003", "#000004", "#000005", "#000006", "#000007"],
  ramp: ["#eeeeff", "#0000ff"],
  diverging: ["#ff0000", "#eeeeee", "#00ff00"],
  text: "#111111",
  muted: "#222222",
  line: "#dddddd",
  ground: "#ffffff",
  font: "sans-serif",
  colour: (text) => safe(text, (one) => /^(#|rgb|hsl|red$|teal$)/.test(one)),
};

type Columns = Record<string, Partial<Answer["columns"][number]>>;

/** An answer of a view; columns are dimensions of texts unless they say otherwise. */
export function answer(columns: Columns, rows: unknown[][], more: Partial<Answer> = {}): Answer {
  const all = Object.entries(columns).map(([name, one]) => ({ name, display_name: name, role: "dimension" as const, type: "VARCHAR", ...one }));
  return { schema: "watershed.metrics/1", metrics_view: "v", time_zone: "UTC", columns: all, rows, ...more };
}
export const MEASURE = { role: "measure" as const, type: "DOUBLE" };
export const DAY = { type: "TIMESTAMP", grain: "day" };

export const ground = (renderer: string, properties: Record<string, unknown>, ...answers: Answer[]): Ground => ({ renderer, properties, answers, palette: PALETTE, width: 600, height: 300 });

/** One thing that is drawn. */
export interface Item {
  datum: Record<string, unknown>;
  text?: unknown;
  fill?: unknown;
  stroke?: unknown;
  opacity?: number;
  x?: number;
  y?: number;
  width?: number;
  height?: number;
  defined?: boolean;
  tooltip?: unknown;
}
interface Mark {
  marktype: string;
  role: string;
  items: (Item & { items?: Mark[] })[];
}

/** Lists what stands in a scene: marks by type and role. */
export function items(view: View, type: string, role = "mark"): Item[] {
  const found: Item[] = [];
  const walk = (mark: Mark): void => {
    for (const item of mark.items) {
      if (mark.marktype === type && mark.role === role) found.push(item);
      item.items?.forEach(walk);
    }
  };
  walk((view.scenegraph() as unknown as { root: Mark }).root);
  return found;
}

/** The texts of axes, their titles or legends. */
export const texts = (view: View, role: string): string[] => items(view, "text", role).map(({ text }) => String(text));

/** Draws a chart without a page, and says of what Vega warned. */
export async function drawn(renderer: string, properties: Record<string, unknown>, ...answers: Answer[]) {
  return ready(ground(renderer, properties, ...answers));
}
