import { expect, test } from "vitest";
import { nearest } from "./near";
import { rowsOf } from "./own";
import { told } from "./palette";
import { chartOf, CHARTS, isOwn } from "./spec";
import { answer, DAY, drawn, ground, items, MEASURE, texts } from "./testing";

const days = (values: (number | null)[], skipped: number[] = []) => values.map((value, place) => [`2024-03-${String(place + 1).padStart(2, "0")}T00:00:00Z`, value]).filter((_, place) => !skipped.includes(place));
const FLIGHTS = answer({ origin: { display_name: "Origin" }, flights: { ...MEASURE, display_name: "Flights", format_d3: ",.0f" } }, [["JFK", 1500], ["LGA", 700], [null, 20], ["EWR", null]]);
const XY = { x: { field: "origin", type: "nominal" }, y: { field: "flights", type: "quantitative" } };
/** Two dimensions and two measures, one of which has no value. */
const PAIRS = answer(
  { origin: { display_name: "Origin" }, airline: { display_name: "Airline" }, flights: { ...MEASURE, display_name: "Flights" }, delay: { ...MEASURE, display_name: "Mean delay", format_preset: "humanize" } },
  [["JFK", "AA", 10, 1], ["JFK", "UA", 30, 2000], ["LGA", "AA", 5, null], ["LGA", "UA", null, 4]],
);
const heights = (bars: { height?: number }[]) => bars.map(({ height }) => Math.round(height ?? 0));

test("a line over time breaks where there is no value and where a bucket is missing", async () => {
  const data = answer({ day: DAY, flights: { ...MEASURE, display_name: "Flights" } }, days([1, 2, null, 4, 5, 6, 7], [5]));
  const { view, warnings, chart } = await drawn("line_chart", { x: { field: "day", type: "temporal" }, y: { field: "flights" } }, data);
  expect(warnings).toEqual([]);
  expect(items(view, "line").map(({ defined }) => defined)).toEqual([true, true, false, true, true, false, true]);
  // The last day stands alone.
  expect(items(view, "symbol").map(({ opacity }) => opacity)).toEqual([0, 0, 0, 0, 1]);
  expect(texts(view, "axis-title")).toEqual(["Flights"]);
  expect(texts(view, "axis-label").some((text) => /Mar/.test(text))).toBe(true);
  expect(chart.pick({ row: 0 })).toBeUndefined();
});

test("times are labelled by the clock of the answer's zone", async () => {
  const data = answer({ day: { type: "TIMESTAMP", grain: "hour" }, n: MEASURE }, [["2024-03-01T05:00:00Z", 1], ["2024-03-01T06:00:00Z", 2]], { time_zone: "America/New_York" });
  const { view } = await drawn("line_chart", { x: { field: "day" }, y: { field: "n" } }, data);
  expect(texts(view, "axis-label").some((text) => /00:00|12:00 AM/.test(text))).toBe(true);
});

test("days of a calendar are the same in every zone", async () => {
  for (const [grain, first] of [["day", "Jan 1|1 Jan"], ["month", "Jan 2013"]] as const) {
    const data = answer({ day: { type: "DATE", grain }, n: MEASURE }, [["2013-01-01", 1], ["2013-02-01", 2]], { time_zone: "America/New_York" });
    const { view, chart } = await drawn("bar_chart", { x: { field: "day" }, y: { field: "n" } }, data);
    expect(texts(view, "axis-label").some((text) => new RegExp(first).test(text)), grain).toBe(true);
    expect(texts(view, "axis-label").some((text) => /Dec/.test(text)), grain).toBe(false);
    expect(items(view, "rect")[0]!.tooltip).toMatch(/Jan.*2013/);
    expect(chart.notes).toEqual([]);
    expect(rowsOf(data)[0]!.day).toBe("2013-01-01T00:00:00");
  }
});

test("rows that differ by a field without a place in the chart are not drawn over each other", async () => {
  for (const [renderer, settings] of [
    ["bar_chart", { x: { field: "origin" }, y: { field: "flights" }, tooltip: { field: "airline" } }],
    ["line_chart", { x: { field: "origin" }, y: { fields: ["flights", "delay"] }, color: { field: "rill_measures" } }],
    ["combo_chart", { x: { field: "origin" }, y1: { field: "flights" }, y2: { field: "delay" }, color: { field: "airline" } }],
    ["pie_chart", { color: { field: "origin" }, measure: { field: "flights" } }],
    ["funnel_chart", { breakdownMode: "measures", stage: { field: "airline" }, measure: { fields: ["flights", "delay"] } }],
    ["heatmap", { x: { field: "origin" }, y: { field: "origin" }, color: { field: "flights" } }],
  ] as const) {
    await expect(drawn(renderer, settings, PAIRS), renderer).rejects.toThrow(/^The chart draws no “(Airline|Origin)”, by which its rows differ\.$/);
  }
  await expect(drawn("scatter_plot", { x: { field: "flights" }, y: { field: "delay" } }, PAIRS)).resolves.toBeDefined();
});

test("who is among the first is not found by adding up what need not add up", async () => {
  const means = answer({ day: DAY, origin: { display_name: "Origin" }, mean: MEASURE }, [["2024-03-01T00:00:00Z", "many", 3], ["2024-03-02T00:00:00Z", "many", 3], ["2024-03-03T00:00:00Z", "many", 3], ["2024-03-01T00:00:00Z", "high", 5], ["2024-03-01T00:00:00Z", "low", null]]);
  const settings = { x: { field: "day" }, y: { field: "mean" }, color: { field: "origin", limit: 1 } };
  const made = await drawn("line_chart", settings, means);
  expect(new Set(items(made.view, "line").map(({ datum }) => datum.s))).toEqual(new Set(["high"]));
  expect(made.chart.notes).toEqual(["1 of 3 values of Origin are drawn: the order is that of the largest figure of each."]);
  // What stands on each other is as high as its sum.
  const sums = await drawn("stacked_bar", settings, means);
  expect(new Set(items(sums.view, "rect").map(({ datum }) => datum.s))).toEqual(new Set(["many"]));
  expect(sums.chart.notes).toEqual(["1 of 3 values of Origin are drawn."]);
});

test("a note is said once", async () => {
  const data = answer({ a: { display_name: "Place" }, b: { display_name: "Place" }, n: MEASURE }, [["a", "x", 1], ["b", "y", 2], ["c", "z", 3]]);
  const { chart } = await drawn("heatmap", { x: { field: "a", limit: 2 }, y: { field: "b", limit: 2 }, color: { field: "n" } }, data);
  expect(chart.notes).toEqual(["2 of 3 values of Place are drawn."]);
});

test("a tooltip that holds itself has an end", () => {
  const item: Record<string, unknown> = { name: "bar" };
  item.mark = { item, group: item };
  expect(told(item)).toBe("name: bar\nmark: …");
  expect(told({ a: { b: 1 } })).toBe('a: {"b":1}');
});

test("a line for each value of a dimension has its colour, its name in the legend, and gaps of its own", async () => {
  const data = answer({ day: DAY, origin: {}, n: MEASURE }, [["2024-03-01T00:00:00Z", "a", 1], ["2024-03-01T00:00:00Z", "b", 5], ["2024-03-02T00:00:00Z", "b", 6], ["2024-03-03T00:00:00Z", "a", 3], ["2024-03-03T00:00:00Z", "b", 7]]);
  const { view, warnings, chart } = await drawn("line_chart", { x: { field: "day" }, y: { field: "n" }, color: { field: "origin", colorMapping: [{ value: "b", color: "teal" }] } }, data);
  expect(warnings).toEqual([]);
  expect(texts(view, "legend-label")).toEqual(["a", "b"]);
  const of = (name: string) => items(view, "line").filter(({ datum }) => datum.s === name);
  expect(of("a").map(({ defined }) => defined)).toEqual([true, false, true]);
  expect(of("b").map(({ stroke }) => stroke)).toEqual(["teal", "teal", "teal"]);
  expect(chart.pick({ row: 1 })).toEqual(["origin", "b"]);
});

test("the colours of an author's config win over those of the theme", async () => {
  const category = ["#ff0000", "rgb(0, 128, 0)"];
  const settings = { x: { field: "origin" }, y: { field: "flights" }, color: { field: "airline" } };
  const fills = async (renderer: string, properties: Record<string, unknown>, mark: string) => {
    const { view, warnings } = await drawn(renderer, properties, PAIRS);
    expect(warnings).toEqual([]);
    return [...new Set(items(view, mark).map(({ fill }) => fill))];
  };
  for (const vl_config of [{ range: { category } }, JSON.stringify({ range: { category } })]) {
    expect(await fills("stacked_bar", { ...settings, vl_config }, "rect")).toEqual(category);
    expect(await fills("scatter_plot", { x: { field: "flights" }, y: { field: "delay" }, color: { field: "airline" }, vl_config }, "symbol")).toEqual(category);
  }
  // What maps a value to a colour says more than that, and what is no colour says nothing.
  expect(await fills("stacked_bar", { ...settings, color: { field: "airline", colorMapping: [{ value: "UA", color: "teal" }] }, vl_config: { range: { category } } }, "rect")).toEqual(["#ff0000", "teal"]);
  expect(await fills("stacked_bar", { ...settings, vl_config: { range: { category: ["url(x)", 7] } } }, "rect")).toEqual(["#000001", "#000002"]);
  expect(await fills("stacked_bar", { ...settings, vl_config: { range: { category: "category10" } } }, "rect")).toEqual(["#1f77b4", "#ff7f0e"]);
  const cells = await fills("heatmap", { x: { field: "origin" }, y: { field: "airline" }, color: { field: "flights" }, vl_config: { range: { heatmap: ["#000000", "#ff0000"] } } }, "rect");
  expect(cells).toContain("rgb(255, 0, 0)");
});

test("a limit counts names, and all times are drawn", async () => {
  const data = answer({ day: DAY, origin: {}, n: MEASURE }, days([1, 2, 3, 4, 5]).flatMap(([day, n]) => ["a", "b", "c"].map((origin) => [day, origin, n])));
  const settings = { x: { field: "day", type: "temporal", limit: 2, sort: "-y" }, y: { field: "n" }, color: { field: "origin", limit: 2 } };
  for (const renderer of ["line_chart", "area_chart", "stacked_bar"]) {
    const { view, chart } = await drawn(renderer, settings, data);
    expect(items(view, renderer === "line_chart" ? "symbol" : renderer === "area_chart" ? "area" : "rect"), renderer).toHaveLength(10);
    expect(chart.notes.join(), renderer).toMatch(/^2 of 3 values of origin are drawn[^,]*$/);
  }
  const { view, chart } = await drawn("heatmap", { x: { field: "day", limit: 2 }, y: { field: "origin", limit: 2 }, color: { field: "n" } }, data);
  expect(items(view, "rect")).toHaveLength(10);
  expect(chart.notes).toHaveLength(1);
});

test("the pointer finds the nearest point of lines, and of those of one time the nearest one", async () => {
  const data = answer({ day: DAY, origin: {}, n: MEASURE }, ["a", "b"].flatMap((origin, of) => days([1, 2, 3, 4, 5]).map(([day]) => [day, origin, of * 100])));
  const { view, chart } = await drawn("line_chart", { x: { field: "day" }, y: { field: "n" }, color: { field: "origin" } }, data);
  expect(chart.nearest).toBe("x");
  const [width, height] = [view.width(), view.height()];
  const at = (x: number, y: number) => String(nearest(view, { x: width * x, y: height * y }, "x")?.tooltip);
  expect(at(0.02, 0.3)).toMatch(/Mar 1.*\norigin: b/s);
  expect(at(0.02, 0.7)).toMatch(/Mar 1.*\norigin: a/s);
  expect(at(0.55, 0.95)).toMatch(/Mar 3.*\norigin: a/s);
  expect(at(0.99, 0.01)).toMatch(/Mar 5.*\norigin: b/s);
  expect(nearest(view, { x: -5, y: 10 }, "x")).toBeUndefined();
  expect((await drawn("bar_chart", XY, FLIGHTS)).chart.nearest).toBeUndefined();
});

test("bars have their order, their limit, and no height where there is no value", async () => {
  const { view, warnings, chart } = await drawn("bar_chart", { ...XY, x: { field: "origin", sort: "-y", limit: 3 } }, FLIGHTS);
  expect(warnings).toEqual([]);
  const bars = items(view, "rect");
  expect(bars.map(({ datum }) => datum.x)).toEqual(["JFK", "LGA", "no value"]);
  expect(chart.notes).toEqual(["3 of 4 values of Origin are drawn."]);
  expect(texts(view, "axis-title").sort()).toEqual(["Flights", "Origin"]);
  expect(texts(view, "axis-label")).toContain("1,400");
  expect(bars[0]!.fill).toBe("#0000ff");
  expect(bars[0]!.tooltip).toBe("Origin: JFK\nFlights: 1,500");
  expect(chart.pick({ row: 0 })).toEqual(["origin", "JFK"]);
  expect(chart.pick({ row: 2 })).toEqual(["origin", null]);
});

test("bars of two measures stand beside each other, and those of a bar chart that lies go along", async () => {
  const beside = await drawn("bar_chart", { x: { field: "origin" }, y: { field: "flights", fields: ["flights", "delay"] }, color: { field: "rill_measures", type: "value" } }, answer({ origin: {}, flights: MEASURE, delay: MEASURE }, [["a", 1, 2], ["b", 3, null]]));
  expect(beside.warnings).toEqual([]);
  expect(new Set(items(beside.view, "rect").map(({ x }) => x)).size).toBe(3);
  expect(texts(beside.view, "legend-label")).toEqual(["flights", "delay"]);
  const lying = await drawn("bar_chart", { x: { field: "flights" }, y: { field: "origin" }, color: "secondary" }, FLIGHTS);
  expect(lying.warnings).toEqual([]);
  const bars = items(lying.view, "rect");
  expect(new Set(bars.map(({ height }) => height)).size).toBe(1);
  expect(bars.map(({ fill }) => fill)).toEqual(["#777777", "#777777", "#777777"]);
});

test("bars over time are as wide as their buckets", async () => {
  const { view, warnings } = await drawn("bar_chart", { x: { field: "day" }, y: { field: "n" } }, answer({ day: DAY, n: MEASURE }, days([1, 2, 3, 4], [2])));
  expect(warnings).toEqual([]);
  const bars = items(view, "rect");
  expect(bars).toHaveLength(3);
  const [a, b, c] = bars.map(({ x }) => x!);
  expect((c! - b!) / (b! - a!)).toBeCloseTo(2, 1);
  expect(bars[0]!.width! / (b! - a!)).toBeCloseTo(0.84, 1);
});

test("stacked bars add up, and those of shares reach to one", async () => {
  const settings = { x: { field: "origin" }, y: { field: "flights" }, color: { field: "airline" } };
  const stacked = await drawn("stacked_bar", settings, PAIRS);
  expect(stacked.warnings).toEqual([]);
  const ends = (view: typeof stacked.view) => items(view, "rect").map(({ datum }) => [datum.y0, datum.y]);
  expect(ends(stacked.view)).toEqual([[0, 10], [10, 40], [0, 5]]);
  const shares = await drawn("stacked_bar_normalized", settings, PAIRS);
  expect(shares.warnings).toEqual([]);
  expect(ends(shares.view)).toEqual([[0, 0.25], [0.25, 1], [0, 1]]);
  expect(texts(shares.view, "axis-label")).toContain("100%");
  expect(items(shares.view, "rect")[0]!.tooltip).toContain("share: 25.0%");
});

test("areas stand on each other, and end where there is no value", async () => {
  const data = answer({ day: DAY, a: MEASURE, b: MEASURE }, [["2024-03-01T00:00:00Z", 1, 2], ["2024-03-02T00:00:00Z", null, 3], ["2024-03-03T00:00:00Z", 4, 5]]);
  const { view, warnings } = await drawn("area_chart", { x: { field: "day" }, y: { fields: ["a", "b"] }, color: { field: "rill_measures" } }, data);
  expect(warnings).toEqual([]);
  const areas = items(view, "area");
  expect(areas.map(({ datum, defined }) => [datum.s, datum.y0, datum.y, defined])).toEqual([["a", 0, 1, true], ["a", null, null, false], ["a", 0, 4, true], ["b", 1, 3, true], ["b", 0, 3, true], ["b", 4, 9, true]]);
});

test("bars and lines have an axis each", async () => {
  const { view, warnings } = await drawn("combo_chart", { x: { field: "day" }, y1: { field: "n", mark: "bar" }, y2: { field: "share", mark: "line" }, color: { field: "measures", type: "value" } }, answer({ day: DAY, n: { ...MEASURE, display_name: "Flights" }, share: { ...MEASURE, display_name: "Late", format_d3: ".0%" } }, [["2024-03-01T00:00:00Z", 100, 0.5], ["2024-03-02T00:00:00Z", 300, null], ["2024-03-03T00:00:00Z", 200, 0.1]]));
  expect(warnings).toEqual([]);
  expect(items(view, "rect")).toHaveLength(3);
  expect(items(view, "line").map(({ defined }) => defined)).toEqual([true, false, true]);
  expect(texts(view, "axis-title").sort()).toEqual(["Flights", "Late"]);
  expect(texts(view, "axis-label")).toContain("50%");
});

test("points lie where two measures put them, and those without a value are counted", async () => {
  const { view, warnings, chart } = await drawn("scatter_plot", { x: { field: "flights" }, y: { field: "delay" }, dimension: { field: "origin" }, color: { field: "airline" }, size: { field: "flights" } }, PAIRS);
  expect(warnings).toEqual([]);
  expect(items(view, "symbol")).toHaveLength(2);
  expect(chart.notes).toEqual(["2 points have no value of Flights or Mean delay."]);
  expect(chart.pick({ row: 1 })).toEqual(["origin", "JFK"]);
  expect(texts(view, "axis-title").sort()).toEqual(["Flights", "Mean delay"]);
});

test("a heat map has a cell for each pair that has a value", async () => {
  const { view, warnings, chart } = await drawn("heatmap", { x: { field: "origin" }, y: { field: "airline", sort: "-color" }, color: { field: "delay", colorRange: { mode: "scheme", scheme: "sequential" } } }, PAIRS);
  expect(warnings).toEqual([]);
  const cells = items(view, "rect");
  expect(cells).toHaveLength(3);
  // The greatest stands first.
  expect(texts(view, "axis-label").slice(-2)).toEqual(["UA", "AA"]);
  expect(cells.map(({ fill }) => fill)).toContain("rgb(0, 0, 255)");
  expect(texts(view, "legend-label").some((text) => text.endsWith("k"))).toBe(true);
  expect(chart.pick({ row: 0 })).toEqual(["origin", "JFK"]);
});

test("slices are parts of what is drawn, the largest first", async () => {
  for (const [renderer, inner] of [["pie_chart", 0], ["donut_chart", 71]] as const) {
    const { view, warnings, chart } = await drawn(renderer, { color: { field: "origin", limit: 3 }, measure: { field: "flights", showTotal: true } }, { ...FLIGHTS, totals: [null, 2220] });
    expect(warnings).toEqual([]);
    const arcs = items(view, "arc") as { datum: Record<string, unknown>; innerRadius?: number; tooltip?: unknown }[];
    expect(arcs.map(({ datum }) => datum.s)).toEqual(["JFK", "LGA", "no value"]);
    expect(Math.round(arcs[0]!.innerRadius!)).toBe(inner);
    expect(arcs[0]!.tooltip).toContain("67.6%");
    expect(chart.notes[0]).toBe("3 of 4 values of Origin are drawn.");
    expect(texts(view, "mark")).toEqual(inner > 0 ? ["2,220"] : []);
  }
});

test("a funnel narrows, and says how much is left", async () => {
  const data = answer({ seen: MEASURE, bought: { ...MEASURE, format_d3: ".1f" }, returned: MEASURE }, [[200, 50, null]]);
  const { view, warnings } = await drawn("funnel_chart", { breakdownMode: "measures", color: "name", percentMode: "previous", measure: { fields: ["seen", "bought", "returned"] } }, data);
  expect(warnings).toEqual([]);
  const [wide, narrow, ...none] = items(view, "rect").map(({ width }) => width!);
  expect(narrow! / wide!).toBeCloseTo(0.25);
  expect(none).toEqual([]);
  expect(texts(view, "mark")).toEqual(["200.0  100.0%", "50.0  25.0%", "no value"]);
  const staged = await drawn("funnel_chart", { stage: { field: "origin" }, measure: { field: "flights" }, color: "value" }, FLIGHTS);
  expect(staged.warnings).toEqual([]);
  expect(heights(items(staged.view, "rect"))).toHaveLength(3);
});

test("names of projects mean nothing: dots, quotes, brackets, spaces, marks of direction and names of objects", async () => {
  const hostile = ["a.b", "a[0]", "it's", 'say "x"', "back\\slash", "__proto__", "constructor", "datum.x); alert(1", "line\nend", "\u202Ereversed", "x".repeat(300), "{{a}}"];
  for (const name of hostile) {
    const data = answer({ [`d ${name}`]: { display_name: name }, [name]: { ...MEASURE, display_name: name } }, hostile.map((value, place) => [value, place + 1]));
    for (const [renderer, settings] of [
      ["bar_chart", { x: { field: `d ${name}` }, y: { field: name } }],
      ["line_chart", { x: { field: `d ${name}` }, y: { field: name }, color: { field: `d ${name}` } }],
      ["heatmap", { x: { field: `d ${name}` }, y: { field: `d ${name}` }, color: { field: name } }],
      ["pie_chart", { color: { field: `d ${name}` }, measure: { field: name } }],
      ["funnel_chart", { stage: { field: `d ${name}` }, measure: { field: name } }],
      ["scatter_plot", { x: { field: name }, y: { field: name }, dimension: { field: `d ${name}` }, color: { field: `d ${name}` } }],
    ] as const) {
      const { view, warnings } = await drawn(renderer, settings, data);
      expect([name, renderer, warnings]).toEqual([name, renderer, []]);
      const said = JSON.stringify([...texts(view, "axis-label"), ...texts(view, "axis-title"), ...texts(view, "legend-label")]);
      expect(said).not.toContain("\u202E");
      if (renderer === "bar_chart") expect(items(view, "rect")).toHaveLength(hostile.length);
    }
  }
}, 60_000);

test("values whose texts are the same stay apart", async () => {
  const { view } = await drawn("bar_chart", XY, answer({ origin: {}, flights: MEASURE }, [[null, 1], ["no value", 2], ["", 3], ["empty text", 4]]));
  expect(new Set(items(view, "rect").map(({ datum }) => datum.x)).size).toBe(4);
});

test("ten thousand points are drawn, and the frame says so", async () => {
  const data = answer({ id: {}, a: MEASURE, b: MEASURE }, Array.from({ length: 12_000 }, (_, place) => [`p${place}`, place, place % 7]));
  const { view, chart } = await drawn("scatter_plot", { x: { field: "a" }, y: { field: "b" }, dimension: { field: "id" } }, data);
  expect(items(view, "symbol")).toHaveLength(10_000);
  expect(chart.notes).toEqual([`The first ${(10_000).toLocaleString()} of ${(12_000).toLocaleString()} points are drawn.`]);
  const bars = chartOf(ground("bar_chart", { x: { field: "id" }, y: { field: "a" } }, data));
  expect(bars.notes[0]).toContain("10,000 points at most");
}, 60_000);

test("what can't be drawn says why", async () => {
  for (const renderer of CHARTS.filter((one) => !isOwn(one))) {
    await expect(drawn(renderer, {}, FLIGHTS), renderer).rejects.toThrow(/^The chart needs a/);
    await expect(drawn(renderer, { x: { field: "nothing" }, y: { field: "flights" }, y1: "flights", color: { field: "nothing" }, measure: { field: "nothing" } }, FLIGHTS), renderer).rejects.toThrow(/no column “nothing”/);
    await expect(drawn(renderer, XY, answer({ origin: {}, flights: MEASURE }, [])), renderer).rejects.toThrow("No rows: there is nothing to draw.");
    await expect(drawn(renderer, XY), renderer).rejects.toThrow("Nothing was asked for this chart.");
  }
  await expect(drawn("constructor", {}, FLIGHTS)).rejects.toThrow("No chart is called “constructor”.");
  await expect(drawn("pie_chart", { color: { field: "origin" }, measure: { field: "flights" } }, answer({ origin: {}, flights: MEASURE }, [["a", -1]]))).rejects.toThrow("Nothing is above zero");
});
