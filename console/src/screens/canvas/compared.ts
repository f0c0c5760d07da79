// Charts that are compared by the values of a dimension: one line, area or bar becomes one for each value.

import type { Field } from "../explore/declared";
import type { Look } from "../explore/look.svelte";
import { axisGrain, axisName, type Order, type Query } from "../explore/questions";
import { block, channel } from "./charts/settings";
import type { Component } from "./document";

const OVER_TIME = new Set(["line_chart", "area_chart", "bar_chart", "stacked_bar", "stacked_bar_normalized"]);

type Of = Pick<Component, "renderer" | "properties" | "queries">;

/** Returns the dimension by which a chart is compared: one over time, of one measure, to whose colours its author gives no field. */
export function comparedBy({ renderer, properties, queries: [query, ...more] }: Of, look: Pick<Look, "by">): Field | undefined {
  if (!look.by || !query || more.length > 0 || !OVER_TIME.has(renderer) || channel(properties, "color").fields.length > 0) return undefined;
  const [first, ...rest] = query.dimensions ?? [];
  const isOverTime = first !== undefined && rest.length === 0 && axisGrain(first) !== undefined;
  return isOverTime && query.measures?.length === 1 ? look.by : undefined;
}

/** Returns the order by which the first values of a chart are found: that of its measure. */
export function measureOf({ queries: [query] }: Pick<Of, "queries">): Order | undefined {
  const [measure] = query?.measures ?? [];
  return typeof measure === "string" ? { measure, rank: "value", isAscending: false } : undefined;
}

/** Returns the settings of a chart as its query was asked: what was asked for apart is told apart by colours. */
export function withLines({ properties, queries: [query] }: Of, asked: Query | undefined): Record<string, unknown> {
  const [before, now] = [query?.dimensions?.length ?? 0, asked?.dimensions ?? []];
  const by = now.length > before ? now.at(-1) : undefined;
  return by === undefined ? properties : { ...properties, color: { field: axisName(by) } };
}

/** Returns true if a chart shows the total of its measure. */
export const showsTotal = ({ properties }: Of): boolean => ["measure", "theta"].some((key) => block(properties[key]).showTotal === true);
