// The table of the format: each key of canvases, components, renderers and themes, what it does on a board, and its test. The page about boards
// has to name each, and the gallery to use each in two values.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "./lib/program.ts";
import { copied } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** Files of tests, below `console/`. */
const TESTS = {
  board: "tests/canvas.test.ts",
  gallery: "tests/gallery.test.ts",
  truth: "tests/boards_random.test.ts",
  attacks: "tests/canvas_attacks.test.ts",
  layout: "src/screens/canvas/layout.test.ts",
  variables: "src/screens/canvas/variables.test.ts",
  pictures: "src/screens/canvas/pictures.test.ts",
  prose: "src/screens/canvas/prose.test.ts",
  compared: "src/screens/canvas/compared.test.ts",
  narrowed: "src/screens/canvas/narrowed.test.ts",
  times: "src/screens/canvas/times.test.ts",
  charts: "src/screens/canvas/charts/spec.test.ts",
  guard: "src/screens/canvas/charts/guard.test.ts",
  colours: "src/screens/explore/colours.test.ts",
  service: "../tests/tests/operations/boards.rs",
};
type Row = [key: string, does: string, test: keyof typeof TESTS];

/** Keys of a canvas, by their paths in its file. */
const CANVAS: Row[] = [
  ["display_name", "the heading", "board"],
  ["banner", "a note above the board", "gallery"],
  ["max_width", "the greatest width", "gallery"],
  ["gap_x", "room between columns", "gallery"],
  ["gap_y", "room between rows", "gallery"],
  ["theme", "colours, by name or as they are", "gallery"],
  ["allow_custom_time_range", "whether any range may be chosen", "board"],
  ["time_ranges", "ranges with their offsets", "board"],
  ["time_zones", "clocks, the first of which holds", "board"],
  ["filters.enable", "whether there are filters", "gallery"],
  ["filters.pinned", "filters that are always shown", "board"],
  ["filters.required", "filters before which nothing is asked", "board"],
  ["defaults.time_range", "the range at the first visit", "board"],
  ["defaults.comparison_mode", "what is compared at the first visit", "gallery"],
  ["defaults.comparison_dimension", "the dimension whose values are lines", "gallery"],
  ["defaults.filters", "conditions in SQL to begin with", "board"],
  ["variables", "values that components set and read", "gallery"],
  ["security", "who may see the board", "gallery"],
  ["rows.height", "the least height of a row", "gallery"],
  ["rows.items", "what stands in a row", "layout"],
  ["rows.name", "the name of tabs in the address", "board"],
  ["rows.tabs.name", "the name of a tab in the address", "gallery"],
  ["rows.tabs.label", "the name of a tab for people", "board"],
  ["rows.if", "whether a row is shown", "gallery"],
  ["rows.tabs.if", "whether a tab is shown", "gallery"],
  ["rows.items.if", "whether an item is shown", "gallery"],
  ["rows.items.width", "columns of twelve", "layout"],
  ["rows.items.component", "a component in a file of its own", "gallery"],
];

const COMPONENT: Row[] = [
  ["display_name", "the name of a part", "board"],
  ["description", "what its name says when it is pointed at", "gallery"],
  ["subtitle", "a line below its name", "gallery"],
  ["input", "variables that it reads, for people: templates read them by name", "gallery"],
  ["output", "the variable that it sets", "variables"],
];

/** Settings of all renderers that draw numbers. */
const OF_NUMBERS: Row[] = [
  ["time_filters", "a range, a comparison and a grain of its own", "times"],
  ["dimension_filters", "a filter of its own", "narrowed"],
];

/** Settings of renderers that are no charts on their own. */
const RENDERERS: Record<string, Row[]> = {
  kpi: [["measure", "the figure", "board"], ["sparkline", "`none` leaves the small line out", "gallery"]],
  kpi_grid: [["measures", "figures beside each other", "gallery"], ["sparkline", "`none` leaves the small lines out", "gallery"]],
  leaderboard: [["dimensions", "one list for each", "board"], ["measures", "columns, the first of which orders", "board"], ["num_rows", "rows of each list", "gallery"]],
  table: [["columns", "columns in their order", "truth"]],
  pivot: [["row_dimensions", "what rows are", "board"], ["col_dimensions", "what columns are", "board"], ["measures", "what cells are", "board"]],
  markdown: [["content", "a text with signs", "prose"], ["alignment", "where the text stands in its place", "layout"]],
  text: [],
  template: [],
  image: [["url", "a picture that stands in its address", "pictures"], ["alt", "what it says to those who can't see it", "gallery"]],
  select: [["label", "what is chosen", "gallery"]],
  switch: [["label", "what is switched", "gallery"]],
  vega_lite: [["metrics_sql", "queries in SQL, whose rows are `query1`, `query2` ...", "gallery"]],
  custom_chart: [["metrics_sql", "queries in SQL", "gallery"], ["vega_spec", "the spec, as a text or as it is", "charts"]],
  line_chart: [],
  area_chart: [],
  bar_chart: [],
  stacked_bar: [],
  stacked_bar_normalized: [],
  combo_chart: [["y1", "the first axis", "charts"], ["y2", "the second axis", "charts"]],
  scatter_plot: [["dimension", "what a point is", "charts"], ["size", "the measure that points are as large as", "charts"]],
  heatmap: [],
  donut_chart: [["measure", "how large slices are", "charts"], ["innerRadius", "the hole, in percent", "charts"]],
  pie_chart: [],
  funnel_chart: [["measure", "how wide steps are", "charts"], ["breakdownMode", "steps by `measures`, or by values of `stage`", "charts"], ["percentMode", "`previous`: shares of the step before", "charts"], ["mode", "`order`: widths by order", "charts"]],
};

/** Settings of each channel of a chart (`x`, `y`, `color` ...). */
const CHANNEL: Row[] = [
  ["field", "the field that it shows", "charts"],
  ["fields", "several measures", "charts"],
  ["title", "the title of its axis", "charts"],
  ["showAxisTitle", "whether its axis has a title", "charts"],
  ["labelAngle", "how labels are turned", "charts"],
  ["zeroBasedOrigin", "whether the axis begins at zero", "charts"],
  ["min", "where the axis begins", "charts"],
  ["max", "where the axis ends", "charts"],
  ["sort", "the order of values", "charts"],
  ["limit", "how many values are drawn", "charts"],
  ["showNull", "whether missing values are drawn", "charts"],
  ["mark", "bars or a line", "charts"],
  ["legendOrientation", "where the legend stands", "charts"],
  ["showTotal", "the total in the middle", "gallery"],
  ["colorMapping", "colours of values", "charts"],
  ["colorRange", "colours of numbers", "charts"],
];
/** Settings of all charts of ours. */
const CHARTS: Row[] = [["x", "the axis along", "charts"], ["y", "the axis up", "charts"], ["color", "a field, or a colour", "charts"], ["vl_config", "how a chart looks, its colours too", "charts"]];

const THEME: Row[] = [
  "primary", "secondary", "kpi-positive", "kpi-negative", "fg-primary", "fg-secondary", "fg-muted", "fg-accent", "border", "input", "tooltip", "ring-focus", "radius",
  "surface-background", "surface-subtle", "surface-card", "surface-muted", "surface-hover", "surface-active", "surface-header", "popover", "popover-foreground", "popover-accent", "icon-default", "destructive",
  "color-sequential-1", "color-diverging-1", "color-qualitative-1",
].map((key): Row => [key, "a colour of the page", "colours"]);

const docs = readFileSync(join(ROOT, "docs/boards.md"), "utf8");
const last = (key: string) => key.split(".").at(-1)!;

test("the page about boards names each key, and each key has a test", () => {
  const rows = [...CANVAS, ...COMPONENT, ...OF_NUMBERS, ...Object.values(RENDERERS).flat(), ...CHANNEL, ...CHARTS, ...THEME];
  const words = new Set([...docs.matchAll(/`([^`\n]+)`/g)].flatMap(([, word]) => [word!, last(word!), word!.split(":")[0]!]));
  const unnamed = [...rows.map(([key]) => last(key).replace(/^(color-\w+)-1$/, "$1-N")), ...Object.keys(RENDERERS)].filter((key) => !words.has(key));
  expect(unnamed).toEqual([]);
  expect(rows.filter(([, does]) => does === "").map(([key]) => key)).toEqual([]);
  expect(Object.values(TESTS).filter((path) => !existsSync(join(ROOT, "console", path)))).toEqual([]);
});

type Loose = Record<string, any>;

served("the gallery", () => copied("gallery"), (on) => {
  test("uses each key in two values", async () => {
    const { resources } = JSON.parse(await on.program.answer("", "validate", "--spec", "--json")) as { resources: { kind: string; name: string; spec: Loose }[] };
    const of = (kind: string) => resources.filter((one) => one.kind === kind).map(({ spec }) => spec);
    const [canvases, components, themes] = [of("canvas"), of("component"), of("theme")];
    const rows = canvases.flatMap((one): Loose[] => one.rows.flatMap((row: Loose) => [row, ...row.tabs.flatMap((tab: Loose) => tab.rows)]));
    const tabs = rows.flatMap((row): Loose[] => row.tabs ?? []);
    const items = rows.flatMap((row): Loose[] => row.items);
    /** Where a spec keeps a key of a file. */
    const KEPT: Record<string, unknown[]> = {
      theme: canvases.map((one) => one.theme || one.embedded_theme),
      security: canvases.map((one) => one.security_rules),
      variables: canvases.flatMap((one) => one.variables),
      "filters.enable": canvases.map((one) => one.filters_enabled),
      "filters.pinned": canvases.map((one) => one.pinned_filters),
      "filters.required": canvases.map((one) => one.required_filters),
      "rows.height": rows.map((one) => one.height),
      "rows.items": items.map((one) => one.component),
      "rows.name": rows.map((one) => one.name),
      "rows.tabs.name": tabs.map((one) => one.name),
      "rows.tabs.label": tabs.map((one) => one.label),
      "rows.if": rows.map((one) => one.condition),
      "rows.tabs.if": tabs.map((one) => one.condition),
      "rows.items.if": items.map((one) => one.condition),
      "rows.items.width": items.map((one) => one.width),
      "rows.items.component": items.filter((one) => !one.defined_in_canvas).map((one) => one.component),
    };
    const missing: string[] = [];
    const twice = (what: string, values: unknown[]) => {
      const different = new Set(values.filter((value) => value !== undefined && value !== null).map((value) => JSON.stringify(value)));
      if (different.size < 2) missing.push(`${what}: ${[...different].join()}`);
    };
    for (const [key] of CANVAS) twice(`canvas ${key}`, KEPT[key] ?? canvases.map((one) => (key.startsWith("defaults.") ? one.defaults?.[last(key)] : one[key])));
    for (const [key] of COMPONENT) twice(`component ${key}`, components.map((one) => one[key]));
    for (const [key] of OF_NUMBERS) twice(`settings ${key}`, components.map((one) => one.renderer_properties?.[key]));
    const settings = (renderer: string) => components.filter((one) => one.renderer === renderer).map((one): Loose => one.renderer_properties);
    for (const [renderer, keys] of Object.entries(RENDERERS)) {
      twice(renderer, settings(renderer));
      for (const [key] of keys) twice(`${renderer} ${key}`, settings(renderer).map((one) => one[key]));
    }
    const charts = components.filter(({ renderer }) => /_(chart|bar|bar_normalized|plot)$|^heatmap$/.test(renderer) && renderer !== "custom_chart").map((one): Loose => one.renderer_properties);
    for (const [key] of CHARTS) twice(`charts ${key}`, charts.map((one) => one[key]));
    const channels = charts.flatMap((one) => Object.values(one).filter((value): value is Loose => typeof value === "object" && value !== null));
    for (const [key] of CHANNEL) twice(`charts, channel ${key}`, channels.map((one) => one[key]));
    for (const [key] of THEME) twice(`theme ${key}`, themes.flatMap((one) => [one.light[key], one.dark[key]]));
    expect(missing).toEqual([]);
  });
}, false);
