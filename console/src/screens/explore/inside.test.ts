import { expect, test } from "vitest";
import { moved } from "./inside";

test("a menu beyond an edge is moved inside, its beginning first, and one inside stays", () => {
  expect(moved({ left: 20, right: 120 }, 0, 200)).toBe(0);
  expect(moved({ left: -90, right: 120 }, 0, 200)).toBe(98);
  expect(moved({ left: 150, right: 260 }, 0, 200)).toBe(-68);
  expect(moved({ left: 60, right: 120 }, 64, 200)).toBe(12);
  expect(moved({ left: -50, right: 400 }, 0, 200)).toBe(58);
});
