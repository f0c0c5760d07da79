// The point of a chart that the pointer is nearest to: a line is too thin to be met.

import type { View } from "vega";

/** A point of a scene, where it stands in it. */
export interface Near {
  tooltip: unknown;
  x: number;
  y: number;
}

interface Item {
  x?: number;
  y?: number;
  tooltip?: unknown;
  items?: Mark[];
}
interface Mark {
  marktype: string;
  items: Item[];
}

/** Returns the point with a tooltip that is nearest along an axis, and among those of one place the nearest one; none outside of the chart. */
export function nearest(view: View, at: { x: number; y: number }, along: "x" | "y"): Near | undefined {
  if (at.x < 0 || at.y < 0 || at.x > view.width() || at.y > view.height()) return undefined;
  const up = along === "x" ? "y" : "x";
  let found: Near | undefined;
  let [least, then] = [Infinity, Infinity];
  const look = (mark: Mark, left: number, top: number): void => {
    for (const item of mark.items) {
      const place = { x: left + (item.x ?? 0), y: top + (item.y ?? 0) };
      item.items?.forEach((inner) => look(inner, place.x, place.y));
      if (mark.marktype !== "symbol" || typeof item.tooltip !== "string" || item.tooltip === "") continue;
      const [far, beside] = [Math.abs(place[along] - at[along]), Math.abs(place[up] - at[up])];
      // Places that are the same to a pixel are one.
      if (far > least + 0.5 || (far > least - 0.5 && beside >= then)) continue;
      [found, least, then] = [{ tooltip: item.tooltip, ...place }, Math.min(far, least), beside];
    }
  };
  look((view.scenegraph() as unknown as { root: Mark }).root, 0, 0);
  return found;
}
