// One spec of Vega-Lite for each renderer of the format that is a chart.

import { Undrawable, words } from "./answer";
import type { Chart, Ground } from "./chart";
import { bars, combo, lines } from "./lines";
import { own } from "./own";
import { funnel, slices } from "./parts";
import { heatmap, scatter } from "./points";

const KINDS: Record<string, (ground: Ground) => Chart> = {
  line_chart: lines,
  area_chart: lines,
  bar_chart: bars,
  stacked_bar: bars,
  stacked_bar_normalized: bars,
  combo_chart: combo,
  scatter_plot: scatter,
  heatmap,
  donut_chart: slices,
  pie_chart: slices,
  funnel_chart: funnel,
  vega_lite: own,
  custom_chart: own,
};

/** Renderers that are charts. */
export const CHARTS: readonly string[] = Object.keys(KINDS);
/** Renderers whose spec an author wrote. */
export const isOwn = (renderer: string): boolean => renderer === "vega_lite" || renderer === "custom_chart";

/** Returns the chart of a renderer; throws `Undrawable` with the reason where there is none. */
export function chartOf(ground: Ground): Chart {
  const made = Object.hasOwn(KINDS, ground.renderer) ? KINDS[ground.renderer] : undefined;
  if (!made) throw new Undrawable(`No chart is called “${words(ground.renderer).trim()}”.`);
  if (ground.answers.length > 0 && ground.answers.every(({ rows }) => rows.length === 0)) throw new Undrawable("No rows: there is nothing to draw.");
  const chart = made(ground);
  if (ground.answers.some(({ truncated }) => truncated)) chart.notes.push("There are more rows than the answer holds.");
  // Fields of one title may say the same.
  return { ...chart, notes: [...new Set(chart.notes)] };
}
