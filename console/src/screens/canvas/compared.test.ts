import { expect, test } from "vitest";
import type { Field } from "../explore/declared";
import { comparedBy, showsTotal, withLines } from "./compared";

const by: Field = { name: "region", title: "Region", description: "", type: "", hasLinks: false, hasShare: false, needs: [] };
const day = { name: "day", grain: "day" as const };
const chart = (properties: Record<string, unknown>, query: object, renderer = "line_chart") => ({ renderer, properties, queries: [{ metrics_view: "v", dimensions: [day], measures: ["n"], ...query }] });

test("a chart over time of one measure is compared by a dimension, unless its author gives it colours", () => {
  expect(comparedBy(chart({}, {}), { by })).toBe(by);
  expect(comparedBy(chart({ color: "primary" }, {}), { by })).toBe(by);
  expect(comparedBy(chart({}, {}), { by: undefined })).toBeUndefined();
  for (const other of [chart({ color: { field: "shop" } }, { dimensions: [day, "shop"] }), chart({}, { measures: ["n", "m"] }), chart({}, { dimensions: ["shop"] }), chart({}, {}, "heatmap")]) expect(comparedBy(other, { by })).toBeUndefined();
});

test("the settings are those of what was asked", () => {
  const one = chart({ color: "primary" }, {});
  expect(withLines(one, undefined)).toEqual({ color: "primary" });
  expect(withLines(one, { dimensions: [day] })).toEqual({ color: "primary" });
  expect(withLines(one, { dimensions: [day, "region"] })).toEqual({ color: { field: "region" } });
  expect(showsTotal(chart({ measure: { showTotal: true } }, {}))).toBe(true);
  expect(showsTotal(chart({ measure: { showTotal: false }, theta: "n" }, {}))).toBe(false);
});
