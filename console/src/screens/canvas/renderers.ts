// What draws a component, by the name of its renderer.

import type { Component } from "svelte";
import type { Component as Of } from "./document";
import Crossed from "./Crossed.svelte";
import Drawn from "./Drawn.svelte";
import Image from "./Image.svelte";
import Kpis from "./Kpis.svelte";
import Leaders from "./Leaders.svelte";
import Prose from "./Prose.svelte";
import Select from "./Select.svelte";
import Switch from "./Switch.svelte";
import Table from "./Table.svelte";

/** What each renderer is given. */
export interface PartProps {
  component: Of;
  isSeen: boolean;
  /** Height of the row, in pixels; 0 where its author says none. */
  height: number;
  /** What the component is called. */
  title: string;
}

export interface Renderer {
  draws: Component<PartProps>;
  /** Height below which it is not drawn, in pixels: what comes into sight is known before it is drawn. */
  least: number;
  /** True if it stands on the board itself, without a frame. */
  isBare?: boolean;
  /** True if its name stands above it even where its author gives none. */
  isTitled?: boolean;
  /** True if it says its name itself. */
  saysName?: boolean;
}

const chart: Renderer = { draws: Drawn, least: 320, isTitled: true };
const prose: Renderer = { draws: Prose, least: 40, isBare: true };
const kpi: Renderer = { draws: Kpis, least: 128 };

const ALL = new Map<string, Renderer>([
  ["kpi", kpi],
  ["kpi_grid", kpi],
  ["leaderboard", { draws: Leaders, least: 280 }],
  ["table", { draws: Table, least: 240, isTitled: true }],
  ["pivot", { draws: Crossed, least: 240, isTitled: true }],
  ["markdown", prose],
  ["text", prose],
  ["template", prose],
  ["image", { draws: Image, least: 80, isBare: true }],
  ["select", { draws: Select, least: 48, isBare: true, saysName: true }],
  ["switch", { draws: Switch, least: 48, isBare: true, saysName: true }],
]);
const CHARTS = ["line_chart", "area_chart", "bar_chart", "stacked_bar", "stacked_bar_normalized", "combo_chart", "scatter_plot", "heatmap", "donut_chart", "pie_chart", "funnel_chart", "vega_lite", "custom_chart"];
for (const name of CHARTS) ALL.set(name, chart);

export const rendererOf = (name: string): Renderer | undefined => ALL.get(name);
export const heightOf = (name: string): number => ALL.get(name)?.least ?? 64;
