import { expect, test } from "vitest";
import { isLine, pieces } from "./spark";

test("a small line has gaps where there is no value, and stays in its box", () => {
  expect(pieces([0, 10])).toEqual(["0,31 200,1"]);
  expect(pieces([1, null, 3, 2])).toEqual(["0,31 1,31", "133.3,1 200,16"]);
  expect(pieces([5])).toEqual(["0,16 1,16"]);
  expect(pieces([null, null])).toEqual([]);
  expect(pieces([])).toEqual([]);
});

test("one value alone is no line", () => {
  expect([[], [null], [5], [5, null], [1, 2], [1, null, 2]].map(isLine)).toEqual([false, false, false, false, true, true]);
});
