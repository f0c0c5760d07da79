import { expect, test } from "vitest";
import type { Filter } from "../explore/address";
import { conditionIn } from "./sql";

const said = (filters: Filter[], where = "") => conditionIn({ range: undefined, zone: "UTC", compare: undefined, filters, types: new Map([["hour", "BIGINT"]]), where });

test("filters are conditions whose names and values can't end them", () => {
  expect(said([{ sort: "values", field: 'a"b', isNot: false, values: ["x' OR '1'='1", null] }])).toBe(`("a""b" IN ('x'' OR ''1''=''1') OR "a""b" IS NULL)`);
  expect(said([{ sort: "values", field: "hour", isNot: true, values: ["5", null] }], "origin = 'JFK' OR true")).toBe(`(origin = 'JFK' OR true) AND ("hour" NOT IN (5) AND "hour" IS NOT NULL)`);
  expect(said([{ sort: "contains", field: "to", isNot: true, text: "O'" }])).toBe(`("to" NOT ILIKE '%O''%')`);
  expect(said([{ sort: "groups", field: "to", measure: "n", op: ">", low: "1", high: "" }])).toBe("");
  expect(said([])).toBe("");
});
