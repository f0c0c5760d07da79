import { expect, test } from "vitest";
import { isTangled } from "./prose";

test("a text of more signs than are paired in a moment is not read as markdown, a long one of paragraphs is", () => {
  expect(isTangled("**a*b ".repeat(1_000))).toBe(true);
  expect(isTangled("[".repeat(1_000))).toBe(true);
  expect(isTangled(`${"*a ".repeat(100)}\n\n`.repeat(100))).toBe(true);
  expect(isTangled("Some *words* of a `text`, [and a link](https://example.org).\n\n".repeat(1_000))).toBe(false);
  expect(isTangled("x".repeat(100_000))).toBe(false);
});
