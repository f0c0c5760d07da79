// Formats, by the tables that the program's own formats are tested with.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { formatOf, NO_VALUE } from ".";
import { d3 } from "./pattern";
import { preset } from "./preset";
import { atClock, span, timeText, type Grain } from "./time";

const TABLES = readFileSync(join(import.meta.dirname, "../../../../../runtime/metrics/tests/it/formats.rs"), "utf8");

/** Reads the rows of a table of the program's test, `("pattern", number, "text")`. */
function table(test: string): [string, number, string][] {
  const body = TABLES.slice(TABLES.indexOf(`fn ${test}`));
  const rows = body.slice(0, body.indexOf("] {")).matchAll(/\(\s*("(?:[^"\\]|\\.)*"),\s*([^,"]+),\s*("(?:[^"\\]|\\.)*"),?\s*\)/g);
  const text = (literal: string) => JSON.parse(literal.replace(/\\u\{(\w+)\}/g, (_, code: string) => `\\u${code.padStart(4, "0")}`)) as string;
  const special: Record<string, number> = { "f64::INFINITY": Infinity, "f64::NEG_INFINITY": -Infinity, "f64::NAN": NaN, "0.1 + 0.2": 0.1 + 0.2 };
  return [...rows].map(([, pattern = "", number = "", expected = ""]) => [text(pattern), special[number] ?? Number(number.replaceAll("_", "")), text(expected)]);
}

test("patterns of d3 write what the program writes", () => {
  const rows = table("d3_patterns_write_what_d3_writes");
  expect(rows.length).toBeGreaterThan(45);
  for (const [pattern, number, expected] of rows) {
    const shown = Number.isNaN(number) ? formatOf({ format_d3: pattern }, "UTC")(number) : d3(pattern)?.(number);
    expect(shown, `${pattern} of ${number}`).toBe(expected);
  }
});

test("presets write what the program writes", () => {
  const rows = table("presets_write_numbers_for_people");
  expect(rows.length).toBeGreaterThan(25);
  for (const [name, number, expected] of rows) expect(formatOf({ format_preset: name }, "UTC")(number), `${name} of ${number}`).toBe(expected);
  expect(preset("humanise")).toBeUndefined();
  expect(preset("constructor")).toBeUndefined();
});

test("what is no pattern formats nothing", () => {
  for (const text of ["y", ",.f", "f2", ".2ff", "101d", ".101f", "99999999999999999999d", "é", "..2f", "$$d"]) expect(d3(text), text).toBeUndefined();
});

test("a missing value is no zero, and texts of numbers are numbers", () => {
  const format = formatOf({ format_preset: "humanize" }, "UTC");
  expect(format(null)).toBe(NO_VALUE);
  expect(format("9007199254740993")).toBe("9007.2T");
  expect(format("many")).toBe("many");
  expect(formatOf({}, "UTC")([1, null])).toBe("[1,null]");
});

test("a number that need not be whole has a point or an exponent, as the program writes it", () => {
  const format = formatOf({ type: "DOUBLE" }, "UTC");
  const cases: [number, string][] = [[187, "187.0"], [0, "0.0"], [-0.5, "-0.5"], [1e15, "1000000000000000.0"], [1e16, "1e+16"], [1.5e300, "1.5e+300"], [0.00001, "0.00001"], [1.5e-6, "1.5e-6"], [0.1 + 0.2, "0.30000000000000004"]];
  for (const [number, text] of cases) expect(format(number)).toBe(text);
  expect(formatOf({ type: "BIGINT" }, "UTC")(187)).toBe("187");
});

test("times stand by the clock of their zone, as short as their grain", () => {
  const cases: [string, Grain, string, string][] = [
    ["Asia/Tokyo", "day", "2013-06-30 15:00:00", "2013-07-01"],
    ["Asia/Tokyo", "month", "2013-06-30 15:00:00+00", "2013-07-01"],
    ["America/New_York", "hour", "2013-07-01T04:00:00Z", "2013-07-01 00:00"],
    ["UTC", "second", "2013-07-01 04:05:06", "2013-07-01 04:05:06"],
    ["Asia/Tokyo", "day", "2013-07-01", "2013-07-01"],
    ["Asia/Tokyo", "day", "infinity", "infinity"],
    ["Asia/Tokyo", "day", "", ""],
  ];
  for (const [zone, grain, time, expected] of cases) expect(timeText(time, zone, grain)).toBe(expected);
  expect(span({ start: "2024-03-10T05:00:00Z", end: "2024-03-11T04:00:00Z" }, "America/New_York")).toBe("2024-03-10 to 2024-03-11");
  expect(span({ start: "2024-03-10T06:30:00Z", end: "2024-03-10T07:00:00Z" }, "America/New_York")).toBe("2024-03-10 01:30 to 2024-03-10 03:00");
  expect(atClock(0, "no such zone", "hour")).toBe("1970-01-01 00:00");
});
