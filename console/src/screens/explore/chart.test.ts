// What charts are drawn of.

import { expect, test } from "vitest";
import { bounds, labelled, parts, type Line } from "./chart";
import { targetOf } from "./link";

test("the last step of a line is dashed while its bucket is not over, and gaps stay", () => {
  const line: Line = { name: "n", colour: "--accent", values: [1, null, 3, 4] };
  const before: Line = { ...line, name: "before", isDashed: true };
  expect(parts({ lines: [line, before], isUnfinished: false })).toEqual([line, before]);
  expect(parts({ lines: [line, before], isUnfinished: true })).toEqual([{ ...line, values: [1, null, 3, null] }, { ...line, values: [null, null, 3, 4], isDashed: true }, before]);
});

test("labels of time leave each other room", () => {
  expect(labelled(12, 1_200)).toHaveLength(12);
  expect(labelled(365, 480)).toHaveLength(5);
  expect(labelled(3, 10)).toEqual([0]);
  expect(labelled(0, 500)).toEqual([]);
});

test("an axis begins at zero where values are near it", () => {
  expect(bounds(1, 10)[0]).toBe(0);
  expect(bounds(90, 100)[0]).toBeLessThan(90);
  expect(bounds(90, 100)[0]).toBeGreaterThan(80);
  expect(bounds(5, 5)[1]).toBeGreaterThan(5);
  expect(bounds(-4, -2)).toSatisfy(([low, high]: [number, number]) => low < -4 && high > -2);
  expect(bounds(null, null)).toEqual([0, 1]);
});

test("links are those of the web and of mail, and are called by where they lead", () => {
  expect(targetOf("https://example.org/a?b")).toEqual({ href: "https://example.org/a?b", place: "example.org" });
  expect(targetOf("mailto:ada@example.org")?.place).toBe("ada@example.org");
  for (const uri of ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "vbscript:x", "/local", "https://user:pass@example.org", null, 7, `https://example.org/${"x".repeat(3_000)}`]) expect(targetOf(uri), String(uri)).toBeUndefined();
});
