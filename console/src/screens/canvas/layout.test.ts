import { expect, test } from "vitest";
import { alignmentOf, columnsOf, linesOf, unlike } from "./layout";

const widths = (...all: number[]) => linesOf(all.map((width, place) => ({ width, component: String(place) }))).map(({ items, rest }) => [...items.map(({ width }) => width), ...(rest ? [-rest] : [])]);

test("widths are those that are said, and the others share what is left", () => {
  expect(widths(7, 5)).toEqual([[7, 5]]);
  expect(widths(0, 0, 0)).toEqual([[4, 4, 4]]);
  expect(widths(6, 0, 0)).toEqual([[6, 3, 3]]);
  expect(widths(3, 3)).toEqual([[3, 3, -6]]);
  expect(widths(...Array<number>(5).fill(0))).toEqual([Array<number>(5).fill(2.4)]);
});

test("what does not fit into twelve columns begins another line", () => {
  expect(widths(7, 6)).toEqual([[7, -5], [6, -6]]);
  expect(widths(13)).toEqual([[12]]);
  expect(widths(12, 0)).toEqual([[12], [12]]);
  expect(widths(...Array<number>(14).fill(0)).map((line) => line.length)).toEqual([12, 2]);
  expect(widths(NaN, -3)).toEqual([[6, 6]]);
  expect(widths()).toEqual([]);
});

test("names that are equal get numbers, and none is there twice", () => {
  expect(unlike(["a", "b", "a", "a 2", "a"])).toEqual(["a", "b", "a 2", "a 2 2", "a 3"]);
  expect(unlike([])).toEqual([]);
});

test("columns are written as style sheets have them", () => {
  expect(columnsOf(linesOf([{ width: 4, component: "a" }])[0]!)).toBe("minmax(0, 4fr) minmax(0, 8fr)");
});

test("a text stands where its author says, and where it begins otherwise", () => {
  expect(alignmentOf({ alignment: { horizontal: "center", vertical: "middle" } })).toEqual({ horizontal: "center", vertical: "middle" });
  for (const alignment of [undefined, null, "center", { horizontal: "url(x)", vertical: 7 }]) expect(alignmentOf({ alignment })).toEqual({ horizontal: undefined, vertical: undefined });
});
