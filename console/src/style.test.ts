// The policy of the page refuses styles and scripts that stand inline.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SOURCES = import.meta.dirname;

test("no template has a static style, an inline handler or markup from data", () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".svelte"));
  expect(files.length).toBeGreaterThan(10);
  const found = files.filter((path) => /\sstyle=["{]|\son[a-z]+="|\{@html|innerHTML/.test(readFileSync(join(SOURCES, path), "utf8")));
  expect(found).toEqual([]);
});
