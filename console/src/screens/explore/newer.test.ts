import { expect, test } from "vitest";
import { isOther } from "./newer.svelte";

test("another version of what was known is news, and a name that was not known is none", () => {
  const before = new Map([["canvas/a", "1.1"], ["component/b", "2.2"]]);
  expect(isOther(new Map([["canvas/a", "1.1"], ["component/c", "1.1"]]), before)).toBe(false);
  expect(isOther(new Map([["canvas/a", "1.2"]]), before)).toBe(true);
  expect(isOther(before, new Map())).toBe(false);
});
