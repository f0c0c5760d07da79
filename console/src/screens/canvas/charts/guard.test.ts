import { Operator } from "vega";
import { expect, test, vi } from "vitest";
import { bound, interpreter } from "./budget";
import { refusals } from "./guard";
import { answer, DAY, drawn, items, MEASURE, texts } from "./testing";

const ROWS = answer({ origin: {}, day: DAY, flights: MEASURE }, [["JFK", "2024-03-01T00:00:00Z", 30], ["LGA", "2024-03-02T00:00:00Z", null], [null, "2024-03-03T00:00:00Z", 10]]);
const many = (count: number) => answer({ origin: {}, flights: MEASURE }, Array.from({ length: count }, (_, place) => [`o${place}`, place]));
const BARS = { mark: "bar", encoding: { x: { field: "origin", type: "nominal" }, y: { field: "flights", type: "quantitative" } } };
const chart = (spec: unknown, ...answers: (typeof ROWS)[]) => drawn("custom_chart", { metrics_sql: ["SELECT 1"], vega_spec: typeof spec === "string" ? spec : JSON.stringify(spec) }, ...(answers.length > 0 ? answers : [ROWS]));
const refused = (spec: object) => refusals({ ...BARS, ...spec }, ["query1"]);

test("a spec is drawn over the rows of its queries, which are its data unless it says otherwise", async () => {
  const { view, warnings, chart: made } = await chart(BARS);
  expect(warnings).toEqual([]);
  expect(items(view, "rect").map(({ datum }) => datum.origin)).toContain("JFK");
  expect(texts(view, "axis-title").sort()).toEqual(["flights", "origin"]);
  expect(made.pick({ origin: "JFK", flights: 30 })).toEqual(["origin", "JFK"]);
  const two = await chart({ layer: [{ ...BARS }, { data: { name: "query2" }, mark: "rule", encoding: { y: { field: "goal", type: "quantitative" } } }] }, ROWS, answer({ goal: MEASURE }, [[20]]));
  expect(two.warnings).toEqual([]);
  expect(items(two.view, "rule")).toHaveLength(1);
  const map = await drawn("vega_lite", { ...BARS, metrics_sql: "SELECT 1" }, ROWS);
  expect(items(map.view, "rect")).toHaveLength(2);
  const named = await drawn("vega_lite", { spec: JSON.stringify(BARS) }, ROWS);
  expect(items(named.view, "rect")).toHaveLength(2);
});

test("a click says the value of the answer, exact and with names that objects have", async () => {
  const data = answer({ id: { type: "BIGINT" }, flights: MEASURE }, [["9007199254740992", 1], ["9007199254740993", 2], ["7", 3]]);
  const { view, chart: made } = await chart({ ...BARS, encoding: { ...BARS.encoding, x: { field: "id", type: "nominal" } } }, data);
  expect(items(view, "rect").map(({ datum }) => made.pick(datum))).toEqual([["id", "9007199254740992"], ["id", "9007199254740993"], ["id", "7"]]);
  expect(items(view, "rect")[2]!.datum.id).toBe(7);
  const names = ["__proto__", "constructor", "toString", "JFK"];
  const named = await chart({ ...BARS, transform: [{ window: [{ op: "rank", as: "rank" }], groupby: ["origin"] }], encoding: { ...BARS.encoding, detail: { field: "origin" } } }, answer({ origin: {}, flights: MEASURE }, names.map((name, place) => [name, place + 1])));
  expect(items(named.view, "rect").map(({ datum }) => named.chart.pick(datum))).toEqual(names.map((name) => ["origin", name]));
  expect(named.chart.pick({ origin: "made by the spec" })).toBeUndefined();
});

test("times of a spec are those of the answer's zone, whatever the browser's", async () => {
  const { view } = await chart({ mark: "point", encoding: { x: { field: "hour", type: "temporal", timeUnit: "hours" }, y: { field: "n", type: "quantitative" } } }, answer({ hour: { type: "TIMESTAMP", grain: "hour" }, n: MEASURE }, [["2024-03-01T05:00:00Z", 1]], { time_zone: "Asia/Tokyo" }));
  expect(new Date(items(view, "symbol")[0]!.datum.hours_hour as number).getHours()).toBe(14);
});

test("what specs of public projects use is drawn", async () => {
  for (const spec of [
    { $schema: "https://vega.github.io/schema/vega-lite/v5.json", width: "container", height: "container", autosize: { type: "fit" }, data: { name: "query1" }, mark: { type: "bar", tooltip: true }, encoding: { x: { field: "origin", type: "nominal", sort: "-y", axis: { labelAngle: -45, labelExpr: "upper(datum.label)" } }, y: { field: "flights", type: "quantitative", title: "Flights" }, tooltip: [{ field: "origin", type: "nominal" }, { field: "flights", type: "quantitative", format: ",.2f" }], color: { condition: { test: "datum.flights > 20", value: "red" }, value: "steelblue" } } },
    { transform: [{ filter: "isValid(datum.flights)" }, { calculate: "datum.flights * 2", as: "twice" }, { window: [{ op: "rank", as: "rank" }], sort: [{ field: "twice", order: "descending" }] }], mark: "point", encoding: { x: { field: "rank", type: "ordinal" }, y: { field: "twice", type: "quantitative" } } },
    { mark: { type: "arc", innerRadius: 40 }, encoding: { theta: { field: "flights", type: "quantitative" }, color: { field: "origin", type: "nominal" } } },
    { mark: "bar", encoding: { x: { field: "flights", bin: { maxbins: 10 }, type: "quantitative" }, y: { aggregate: "count", type: "quantitative" } } },
    { params: [{ name: "brush", select: "interval" }, { name: "picked", select: { type: "point", fields: ["origin"] }, bind: "legend" }], mark: "point", encoding: { x: { field: "day", type: "temporal", timeUnit: "yearmonthdate" }, y: { field: "flights", type: "quantitative" }, color: { field: "origin", type: "nominal" }, opacity: { condition: { param: "brush", value: 1 }, value: 0.2 } } },
    { params: [{ name: "grid", select: "interval", bind: "scales" }], mark: "point", encoding: { x: { field: "flights", type: "quantitative" }, y: { field: "flights", type: "quantitative" } } },
    { params: [{ name: "hover", select: { type: "point", on: "pointerover", nearest: true, clear: "pointerout" } }], mark: { type: "point", filled: true }, encoding: { x: { field: "day", type: "temporal", axis: { tickCount: "month", format: "%b %Y" } }, y: { field: "flights", type: "quantitative" } } },
    { facet: { column: { field: "origin", type: "nominal" } }, spec: { width: 80, height: 80, mark: "bar", encoding: { y: { field: "flights", type: "quantitative" } } } },
    { hconcat: [BARS, { mark: "boxplot", encoding: { y: { field: "flights", type: "quantitative" } } }] },
    { layer: [{ mark: "area", encoding: { y: { field: "flights", type: "quantitative" } } }, { mark: { type: "text", dy: -6 }, encoding: { y: { field: "flights", type: "quantitative" }, text: { field: "flights", format: "$,.1f" } } }], encoding: { x: { field: "day", type: "temporal" } } },
  ]) {
    const { warnings } = await chart(spec);
    expect(warnings.filter((text) => !/container|deprecated|Infinite extent/i.test(text)), JSON.stringify(spec)).toEqual([]);
  }
}, 60_000);

test("what leads out of the chart is refused with its place", () => {
  for (const [spec, reason] of [
    [{ data: { url: "https://example.com/rows.csv" } }, "data.url: nothing is loaded"],
    [{ layer: [{ ...BARS, data: { url: "//x" } }], mark: undefined }, "layer[0].data.url: nothing is loaded"],
    [{ transform: [{ lookup: "a", from: { data: { url: "x" }, key: "a" } }] }, "transform[0].from.data.url"],
    [{ mark: { type: "point", href: "javascript:alert(1)" } }, "mark.href: it leads out of the page"],
    [{ encoding: { href: { field: "origin" } } }, "encoding.href: it leads out"],
    [{ encoding: { url: { field: "origin" } } }, "encoding.url"],
    [{ mark: "image" }, "mark: images are not loaded"],
    [{ mark: { type: "image", aspect: true } }, "mark: images are not loaded"],
    [{ config: { bar: { href: "x" } } }, "config.bar.href"],
    [{ config: { events: { window: true } } }, "config.events: what a chart listens to"],
    [{ config: { signals: [{ name: "a", on: [{ events: "window:click", update: "1" }] }] } }, "config.signals"],
    [{ config: { locale: {} } }, "config.locale"],
    [{ data: { name: "query1" }, usermeta: { src: "x" } }, "usermeta.src"],
    [{ projection: { type: "mercator" } }, "projection: maps are not drawn"],
    [{ data: { graticule: true } }, "data.graticule: maps"],
    [{ data: { name: "query7" } }, "data: no query is called “query7”"],
    [{ data: { name: "query1", values: [1] } }, "data: the name is that of a query"],
    [{ $schema: "https://vega.github.io/schema/vega/v5.json" }, "$schema: it is a spec of Vega; those of Vega-Lite are drawn"],
    [{ params: [{ name: "a", bind: { input: "range" } }] }, "params[0].bind: a chart has no fields to fill in"],
    [{ params: [{ name: "a", bind: { element: "#password" } }] }, "params[0].bind"],
    [{ params: [{ name: "a", select: { type: "point", on: "window:keydown" } }] }, "params[0].select.on: it listens outside the chart"],
    [{ params: [{ name: "a", select: { type: "point", on: "#token:input" } }] }, "params[0].select.on: it listens outside"],
    [{ params: [{ name: "a", select: { type: "point", on: "body:keydown" } }] }, "params[0].select.on: it listens outside"],
    [{ params: [{ name: "a", select: { type: "point", on: { source: "window", type: "click" } } }] }, "params[0].select.on: it listens outside"],
    [{ params: [{ name: "a", select: { type: "interval", on: "[pointerdown, window:pointerup] > window:pointermove" } }] }, "params[0].select.on: it listens outside"],
    [{ params: [{ name: "a", select: { type: "point", on: "timer{1}" } }] }, "params[0].select.on: it listens outside"],
    [{ mark: { type: "bar", cursor: "url(https://example.com/x), auto" } }, "mark.cursor: only the name of a cursor is taken"],
    [{ mark: { type: "bar", cursor: { expr: "datum.origin" } } }, "mark.cursor: only the name"],
    [{ config: { view: { cursor: "URL(//x)" } } }, "config.view.cursor: only the name"],
    [{ params: [{ name: "cursor", value: "url(//x)" }] }, "params: “cursor” is a name of Vega's own"],
    [{ config: { params: [{ name: "autosize", value: "none" }] } }, "config.params: “autosize” is a name"],
    [{ data: { values: "a,b\n1,2", format: { type: "csv" } } }, "data.values: rows are a list"],
    [{ data: { values: ["a,b"], format: { type: "csv" } } }, "data.format: rows are a list"],
    [{ data: { name: "query1", format: { type: "tsv" } } }, "data.format: rows are a list"],
    [{ datasets: { a: "a,b\n1,2" } }, "datasets.a: rows are a list"],
    [{ datasets: { a_store: [1] } }, "datasets.a_store: names of this end are those of selections"],
    [{ data: { name: "a_store", values: [1] } }, "data: names of this end are those of selections"],
    [{ transform: [{ filter: { and: ["modify('query1',{a:1}", "1)"] } }] }, "transform[0].filter.and[0]: it is no expression"],
    [{ encoding: { color: { condition: { test: "modify('query1',{}) ? 1 : (1", value: "red" } } } }, "encoding.color.condition.test: it is no expression"],
    [{ mark: { type: "bar", opacity: { expr: "1) + modify('query1', {}" } } }, "mark.opacity.expr: it is no expression"],
  ] as const) {
    expect(refused(spec).join("\n"), JSON.stringify(spec)).toContain(reason);
  }
});

test("what has no end is refused before it runs", () => {
  const deep = (depth: number): unknown => (depth === 0 ? BARS : { layer: [deep(depth - 1)] });
  let bottomless: Record<string, unknown> = {};
  for (let depth = 0; depth < 100_000; depth += 1) bottomless = { layer: bottomless };
  expect(refusals(bottomless, [])).toEqual(["it is nested more than 32 deep"]);
  expect(refusals(deep(1_000), [])).toEqual(["it is nested more than 32 deep"]);
  expect(refusals(deep(8), [])).toEqual([]);
  expect(refused({ description: "x".repeat(300_000) })).toEqual(["it has more than 256 KiB"]);
  for (const [spec, reason] of [
    [{ data: { values: Array.from({ length: 10_001 }, () => 1) } }, "data.values: 10,000 rows are the most"],
    [{ datasets: { a: Array.from({ length: 10_001 }, () => 1) } }, "datasets.a: 10,000 rows"],
    [{ data: { sequence: { start: 0, stop: 1e9 } } }, "data.sequence: more than 1,000 values"],
    [{ data: { sequence: { start: 0, stop: 1, step: 0 } } }, "data.sequence"],
    [{ transform: [{ impute: "y", key: "x", keyvals: { start: 0, stop: 1e9 } }] }, "transform[0].keyvals"],
    [{ transform: [{ density: "x", steps: 1e9 }] }, "transform[0].steps: 1,000 is the most"],
    [{ transform: [{ quantile: "x", step: 1e-9 }] }, "transform[0].step: it is too small"],
    [{ transform: [{ regression: "x", on: "y", order: 1e6 }] }, "transform[0].order"],
    [{ transform: [{ fold: Array.from({ length: 101 }, (_, place) => `f${place}`) }] }, "transform[0].fold"],
    [{ transform: Array.from({ length: 51 }, () => ({ sample: 1 })) }, "transform: it has 51 items"],
    [{ encoding: { x: { field: "flights", bin: { maxbins: 1e9 } } } }, "encoding.x.bin.maxbins"],
    [{ encoding: { x: { field: "flights", bin: { maxbins: { signal: "1e9" } } } } }, "encoding.x.bin.maxbins: only a number"],
    [{ encoding: { x: { axis: { tickCount: 1e9 } } } }, "encoding.x.axis.tickCount: 100 is the most"],
    [{ encoding: { x: { axis: { tickCount: { expr: "1e9" } } } } }, "encoding.x.axis.tickCount: only a number"],
    [{ encoding: { x: { axis: { tickCount: "millisecond" } } } }, "encoding.x.axis.tickCount: only a number"],
    [{ encoding: { x: { axis: { tickCount: { interval: "day", step: 1e-9 } } } } }, "encoding.x.axis.tickCount: only a number"],
    [{ encoding: { x: { axis: { format: "999999999d" } } } }, "encoding.x.axis.format: the format is too wide"],
    [{ config: { numberFormat: "1000000d" } }, "config.numberFormat"],
    [{ encoding: { x: { field: "flights", bin: { binned: true, step: 1e-9 } } } }, "encoding.x.bin.binned"],
    [{ encoding: { x: { field: "flights", scale: { bins: { step: 1e-9 } } } } }, "encoding.x.scale.bins: only a list"],
    [{ width: 1e9 }, "width: 10,000 is the most"],
    [{ mark: { type: "line", strokeDash: [1e-9, 1e-9] } }, "mark.strokeDash: dashes are shorter than a pixel"],
    [{ mark: { type: "point", shape: `M${"0,0L".repeat(2_000)}` } }, "mark.shape: a text of more than"],
    [{ repeat: { row: Array.from({ length: 30 }, () => "flights"), column: Array.from({ length: 30 }, () => "flights") }, spec: BARS, mark: undefined }, "it has 900 views"],
    [{ ...Array.from({ length: 12 }).reduce<object>((spec) => ({ repeat: ["a", "b", "c", "d"], spec }), BARS), mark: undefined }, "it has 16,777,216 views"],
    [{ transform: [{ aggregate: Array.from({ length: 21 }, (_, place) => ({ op: "ci0", field: `f${place}`, as: "a" })) }] }, "transform[0].aggregate: it has 21 items"],
    [{ transform: [{ calculate: "modify('query1', datum)", as: "a" }] }, "transform[0].calculate: it changes its own data"],
    [{ transform: [{ calculate: "\\u006dodify('query1', datum)", as: "a" }] }, "transform[0].calculate: it changes its own data"],
    [{ params: [{ name: "a", expr: "setdata('query1', [])" }] }, "params[0].expr: it changes its own data"],
  ] as const) {
    expect(refused(spec).join("\n"), JSON.stringify(spec).slice(0, 200)).toContain(reason);
  }
  expect(refused({ title: "Modify (all)" })).toEqual([]);
});

test("expressions call nothing that reaches out, and run no regular expressions", async () => {
  const calculated = (expression: string) => chart({ ...BARS, transform: [{ calculate: expression, as: "made" }] });
  for (const expression of ["test(/(a+)+$/, datum.origin)", "test('(a+)+$', datum.origin)", "regexp('(a+)+$')", "replace(datum.origin, /(a+)+$/, 'x')", "split(datum.origin, /a/)"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/regular expressions are not run/);
  }
  for (const expression of ["warn('x')", "pad('x', 1e9, 'y')", "windowSize()", "screen()", "containerSize()", "utcSequence('millisecond', 0, 1e12)", "encode(item, 'x')", "btoa('x')", "geoShape('p', datum)", "lassoPath([])"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/is not called/);
  }
  for (const expression of ["eval('1')", "alert(1)", "fetch('/')", "Function('x')()", "datum.origin.constructor('x')", "setTimeout('x')"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/^(This spec|The chart)/);
  }
  for (const expression of ["datum.constructor.constructor", "datum['constructor']", "event.view", "event.target.ownerDocument", "event['vi' + 'ew']", "item().context", "data('query1').__proto__"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/is not read|by their names alone|can't be drawn/);
  }
  for (const expression of ["view()", "view()._el.parentNode.textContent", "event", "(1 ? event : 0)['vi' + 'ew']", "[event][0]", "merge(event)", "{e: event}", "event.toElement", "event['path']", "item().mark.group.context", "datum.mark.context", "{toString: datum.a}", "setdata('query1', [])"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/^This spec is not drawn|can't be drawn/);
  }
  // Names that are computed are judged when they are known.
  for (const expression of ["[datum][0]['con' + 'text']", "pluck([datum], 'mark.group')", "pluck([datum], 'mark[0]')", "pluck([datum], 'context')"]) {
    await expect(calculated(expression), expression).rejects.toThrow(/“context” is not read|takes the name of a column/);
  }
  await expect(calculated("[].fill")).rejects.toThrow("an expression makes a function");
  const { view } = await chart({ ...BARS, params: [{ name: "names", value: { JFK: "Kennedy" } }], transform: [{ calculate: "names[datum.origin] || datum['ori' + 'gin'] || pluck(data('query1'), 'origin')[1]", as: "made" }] });
  expect(items(view, "rect").map(({ datum }) => datum.made)).toEqual(["Kennedy", "LGA"]);
  // Formats are functions: those that change data are none.
  await expect(chart({ ...BARS, encoding: { ...BARS.encoding, x: { field: "origin", axis: { formatType: "modify", format: "x" } } } })).rejects.toThrow("data are changed");
  await expect(chart({ ...BARS, encoding: { ...BARS.encoding, x: { field: "origin", axis: { labelExpr: "test('(a+)+$', datum.label)" } } } })).rejects.toThrow(/regular expressions/);
  await expect(chart({ ...BARS, encoding: { ...BARS.encoding, color: { condition: { test: "test('(a+)+$', datum.origin)", value: "red" }, value: "blue" } } })).rejects.toThrow(/regular expressions/);
  await expect(chart({ ...BARS, mark: { type: "bar", width: { expr: "pad('x', 1e9)" } } })).rejects.toThrow(/is not called/);
  await expect(chart({ ...BARS, transform: [{ filter: { not: "regexp('a')" } }] })).rejects.toThrow(/regular expressions/);
  await expect(calculated(Array.from({ length: 4_000 }, () => "1").join("+"))).rejects.toThrow(/too long|is not drawn/);
}, 60_000);

test("what costs too much ends in time, and says so", async () => {
  const started = performance.now();
  const doubling = Array.from({ length: 40 }, (_, place) => ({ calculate: place === 0 ? "'xxxxxxxx'" : `datum.a${place - 1} + datum.a${place - 1}`, as: `a${place}` }));
  await expect(chart({ ...BARS, transform: doubling })).rejects.toThrow(/texts is too long/);
  await expect(chart({ ...BARS, params: [{ name: "p0", value: "xxxxxxxx" }, ...Array.from({ length: 40 }, (_, place) => ({ name: `p${place + 1}`, expr: `p${place} + p${place}` }))] })).rejects.toThrow(/texts is too long/);
  await expect(chart({ ...BARS, transform: [{ calculate: "sequence(1e9)", as: "a" }] })).rejects.toThrow(/sequence of an expression is too long/);
  await expect(chart({ ...BARS, transform: [{ calculate: "sequence(9999)", as: "a" }] }, many(10_000))).rejects.toThrow(/cost too much/);
  await expect(chart({ ...BARS, transform: [{ calculate: "sequence(100)", as: "a" }, { flatten: ["a"] }, { flatten: ["a"] }] }, many(10_000))).rejects.toThrow(/rows|cost too much/);
  await expect(chart({ ...BARS, transform: [{ fold: Array.from({ length: 100 }, (_, place) => `f${place}`) }] }, many(10_000))).rejects.toThrow(/rows/);
  await expect(chart({ ...BARS, transform: [{ impute: "flights", key: "origin", groupby: ["flights"] }] }, many(5_000))).rejects.toThrow(/“impute” is for/);
  await expect(chart({ ...BARS, transform: [{ loess: "flights", on: "flights" }] }, many(5_000))).rejects.toThrow(/“loess” is for/);
  await expect(chart({ ...BARS, transform: [{ calculate: "sort(pluck(data('query1'), 'flights'))", as: "a" }] }, many(10_000))).rejects.toThrow(/This chart is not drawn|This spec is not drawn|can't be drawn/);
  await expect(chart({ ...BARS, encoding: { ...BARS.encoding, row: { field: "origin" } } }, many(2_000))).rejects.toThrow(/small charts/);
  await expect(chart({ mark: "line", encoding: { x: { field: "flights", type: "quantitative" }, y: { field: "flights", type: "quantitative" }, detail: { field: "origin" } } }, many(2_000))).rejects.toThrow(/lines or small charts/);
  await expect(chart({ ...BARS, encoding: { x: { field: "flights", type: "quantitative", bin: { step: 1e-6 } }, y: { aggregate: "count" } } }, many(10_000))).rejects.toThrow(/more than 1,000 bins/);
  const ages = { data: { values: [{ t: -8e15 }, { t: 8e15 }] }, mark: "point", encoding: { x: { field: "t", type: "temporal", axis: { tickCount: "day" } } } };
  await expect(chart(ages)).rejects.toThrow(/more than 1,000 ticks/);
  await expect(chart({ ...ages, encoding: { x: { field: "t", type: "temporal", scale: { nice: "day" } } } })).resolves.toBeDefined();
  await expect(chart({ ...ages, encoding: { x: { field: "t", type: "temporal", timeUnit: "yearmonthdate" }, y: { aggregate: "count" } } })).resolves.toBeDefined();
  await expect(chart({ ...BARS, encoding: { ...BARS.encoding, row: { field: "origin" } }, width: { step: 1e9 } })).rejects.toThrow(/larger than 8,000 pixels/);
  await expect(chart({ ...BARS, params: [{ name: "a", expr: "b + 1" }, { name: "b", expr: "a + 1" }] })).rejects.toThrow();
  await expect(chart({ layer: Array.from({ length: 5 }, () => ({ mark: "point", encoding: BARS.encoding })) }, many(10_000))).rejects.toThrow(/marks: 10,000 points are drawn at most|more than 3 seconds/);
  expect(performance.now() - started).toBeLessThan(60_000);
}, 120_000);

test("time is looked at inside of a step too", async () => {
  const ROOM = 8_000;
  const costly = async (more: object, rows = many(10_000)) => {
    const started = performance.now();
    const failed = await chart({ ...BARS, ...more }, rows).then(() => "", String);
    expect(performance.now() - started, JSON.stringify(more).slice(0, 200)).toBeLessThan(ROOM);
    return failed;
  };
  const big = { name: "big", expr: "sequence(9999)" };
  const calculated = (expression: string) => ({ params: [big], transform: [{ calculate: expression, as: "a" }] });
  const often = (expression: string, times = 150) => Array.from({ length: times }, () => expression).join("+");
  for (const expression of [often("length(big+'')"), often("(big == 'x')"), often("length(upper(big))"), often("datum[big]"), often("(+big)")]) {
    expect(await costly(calculated(expression)), expression.slice(0, 40)).toMatch(/cost too much|more than 3 seconds/);
  }
  expect(await costly(calculated("length(join(big, join(big, join(big, 'x'))))"), many(1))).toMatch(/cost too much/);
  expect(await costly(calculated("length(replace(join(sequence(2000)), '0', join(split(join(sequence(2000)), ','), \"$'\")))"), many(1))).toMatch(/cost too much/);
  expect(await costly(calculated(often("length(intersect([[0, 0], [9, 9]]))", 90)), many(100))).toMatch(/cost too much/);
}, 120_000);

test("steps that make many of few are counted before they run", async () => {
  const rows = answer({ origin: {}, dest: {}, flights: MEASURE }, Array.from({ length: 2_000 }, (_, place) => [`o${place}`, `d${place}`, place]));
  for (const [spec, reason] of [
    [{ params: [{ name: "big", expr: "sequence(9999)" }], transform: [{ calculate: "big", as: "a" }, { flatten: ["a"] }] }, "one of its steps has 19,998,000 rows"],
    [{ transform: [{ calculate: "{length: 1e12}", as: "a" }, { flatten: ["a"] }] }, "rows"],
    [{ transform: [{ pivot: "origin", value: "flights", groupby: ["dest"] }] }, "“pivot” makes too many columns"],
    [{ encoding: { ...BARS.encoding, row: { field: "origin" }, column: { field: "dest" } } }, "lines or small charts"],
    [{ transform: [{ window: [{ op: "ci0", field: "flights", as: "a" }], frame: [-500, 500] }] }, "“ci0” in a window is for 100 rows"],
    [{ transform: [{ window: [{ op: "median", field: "flights", as: "a" }] }] }, "“median” in a window is for 500 rows"],
  ] as const) {
    const started = performance.now();
    await expect(chart({ ...BARS, ...spec }, rows), JSON.stringify(spec)).rejects.toThrow(reason);
    expect(performance.now() - started, JSON.stringify(spec)).toBeLessThan(2_000);
  }
  const few = answer({ origin: {}, dest: {}, flights: MEASURE }, Array.from({ length: 100 }, (_, place) => [`o${place % 10}`, `d${Math.floor(place / 10)}`, place]));
  for (const spec of [{ transform: [{ pivot: "origin", value: "flights", groupby: ["dest"] }], encoding: { x: { field: "o1" } } }, { encoding: { ...BARS.encoding, row: { field: "origin" }, column: { field: "dest" } } }, { transform: [{ window: [{ op: "median", field: "flights", as: "a" }], frame: [-6, 0] }] }]) {
    await expect(chart({ ...BARS, ...spec }, few), JSON.stringify(spec)).resolves.toBeDefined();
  }
}, 60_000);

test("shapes are as short as texts", async () => {
  const paths = answer({ path: {}, flights: MEASURE }, [[`M0,0L${"1,1L".repeat(50_000)}0,0`, 1]]);
  const spec = { mark: "point", encoding: { y: { field: "flights", type: "quantitative" }, shape: { field: "path", scale: null } } };
  await expect(chart(spec, paths)).rejects.toThrow("one of its texts is too long");
  await expect(chart(spec, answer({ path: {}, flights: MEASURE }, [["M0,0L1,1", 1]]))).resolves.toBeDefined();
});

test("what an event asks has a time of its own", () => {
  const read = { type: "MemberExpression", computed: false, object: { type: "Identifier", name: "event" }, property: { type: "Identifier", name: "shiftKey" } };
  bound();
  const filter = interpreter.event!({ functions: {} }, { ast: read });
  const [dataflow, now] = [{}, performance.now()];
  const clock = vi.spyOn(performance, "now");
  // A pointer that moves for a minute over what it doesn't change.
  const seen = [0, 60_000].map((later) => {
    clock.mockReturnValue(now + later);
    const event = { dataflow, shiftKey: later > 0 };
    new Operator(undefined, () => 1).evaluate(event);
    return filter(event);
  });
  clock.mockRestore();
  expect(seen).toEqual([false, true]);
});

test("what is no spec says why", async () => {
  await expect(chart("{mark: bar")).rejects.toThrow(/^The spec is no JSON: /);
  await expect(drawn("custom_chart", { metrics_sql: "SELECT 1" }, ROWS)).rejects.toThrow("The component has no spec.");
  await expect(chart("[]")).rejects.toThrow();
  await expect(chart("x".repeat(300_000))).rejects.toThrow("longer than 256 KiB");
  await expect(chart({ mark: "nothing" })).rejects.toThrow(/^The chart can't be drawn/);
});

test("the config of an author goes through the same guard", async () => {
  const settings = { x: { field: "origin" }, y: { field: "flights" } };
  const { view } = await drawn("bar_chart", { ...settings, vl_config: '{"axis": {"titleColor": "red"}}' }, many(3));
  expect(items(view, "text", "axis-title").map(({ fill }) => fill)).toEqual(["red", "red"]);
  await expect(drawn("bar_chart", { ...settings, vl_config: '{"bar": {"href": "x"}}' }, many(3))).rejects.toThrow("The setting “vl_config” is refused: bar.href");
  // Its expressions are bounded as those of an author's own chart.
  await expect(drawn("bar_chart", { ...settings, vl_config: '{"bar": {"opacity": {"expr": "length(sequence(9999)) / 9999"}}}' }, many(300))).rejects.toThrow(/cost too much/);
});
