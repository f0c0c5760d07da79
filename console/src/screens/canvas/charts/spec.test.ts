import { expect, test } from "vitest";
import { answer, DAY, drawn, items, MEASURE, PALETTE, texts } from "./testing";
import { CHARTS, chartOf } from "./spec";
import { ground } from "./testing";

const days = (values: (number | null)[], skipped: number[] = []) => values.map((value, place) => [`2024-03-${String(place + 1).padStart(2, "0")}T00:00:00Z`, value]).filter((_, place) => !skipped.includes(place));
const FLIGHTS = answer({ origin: { display_name: "Origin" }, flights: { ...MEASURE, display_name: "Flights", format_d3: ",.0f" } }, [["JFK", 1500], ["LGA", 700], [null, 20], ["EWR", null]]);
const XY = { x: { field: "origin", type: "nominal" }, y: { field: "flights", type: "quantitative" } };

test("a line over time breaks where there is no value and where a bucket is missing", async () => {
  const data = answer({ day: DAY, flights: { ...MEASURE, display_name: "Flights" } }, days([1, 2, null, 4, 5, 6, 7], [5]));
  const { view, warnings, chart } = await drawn("line_chart", { x: { field: "day", type: "temporal" }, y: { field: "flights" } }, data);
  expect(warnings).toEqual([]);
  const line = items(view, "line");
  expect(line.map(({ defined }) => defined)).toEqual([true, true, false, true, true, false, true]);
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
