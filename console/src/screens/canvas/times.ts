// The time that a component has for itself: `time_filters: tr=P4W&compare_tr=rill-PP&grain=week`.

import { visible } from "../../parts/text";
import { GRAINS, isZone, type Grain } from "../explore/format/time";
import type { Own } from "../explore/look.svelte";
import { axisGrain, axisName, type Axis } from "../explore/questions";
import type { Asked, Component } from "./document";

/** Older and longer names of grains. */
const grainOf = (word: string): Grain | undefined => GRAINS.find((one) => one === word.toLowerCase().replace(/^time_grain_/, ""));

/** What draws a comparison with another time. */
const COMPARES = new Set(["kpi", "kpi_grid", "leaderboard"]);

/** Returns the time of a component's own; none where it has that of the board. */
export function timeOf({ renderer, properties }: Pick<Component, "renderer" | "properties">): Own | undefined {
  const said = properties.time_filters;
  if (typeof said !== "string" || said.trim() === "") return undefined;
  const own: Own = { range: undefined, compare: undefined, zone: undefined, grain: undefined, unread: [] };
  for (const [key, word] of new URLSearchParams(said.trim().replace(/^\?/, ""))) {
    const value = word.trim();
    // A filter is read beside the other one of the component.
    if (value === "" || key === "f") continue;
    if (key === "tr") own.range = value;
    else if (key === "compare_tr" && COMPARES.has(renderer)) own.compare = value;
    else if (key === "tz" && isZone(value)) own.zone = value;
    else if (key === "grain" && grainOf(value)) own.grain = grainOf(value);
    else own.unread.push(visible(`${key}=${value}`));
  }
  return own;
}

/** Cuts the times of a query to the grain of its component. A grain that a field names stays, and none is below the smallest of the view. */
export function cutTo(asked: Asked, time: string | undefined, grain: Grain | undefined, smallest: Grain | undefined): Asked {
  const { dimensions } = asked;
  if (!grain || !time || !dimensions) return asked;
  const least = GRAINS.indexOf(smallest ?? "second");
  const cut = GRAINS[Math.max(GRAINS.indexOf(grain), least)]!;
  const isTime = (axis: Axis): axis is { name: string; grain: Grain } => typeof axis !== "string" && "grain" in axis && axis.name.toLowerCase() === time.toLowerCase();
  return { ...asked, dimensions: dimensions.map((axis) => (isTime(axis) ? { ...axis, grain: cut } : axis)) };
}

/** Returns true if a component draws something over time, so that its grain can be seen. */
export function isOverTime({ renderer, properties, queries }: Pick<Component, "renderer" | "properties" | "queries">): boolean {
  if (renderer === "kpi" || renderer === "kpi_grid") return properties.sparkline !== "none";
  return queries.some(({ dimensions }) => dimensions?.some((axis) => axisGrain(axis) !== undefined && !/_rill_TIME_GRAIN_/.test(axisName(axis))));
}
