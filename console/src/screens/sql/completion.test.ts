// What is proposed while somebody writes a question.

import { expect, test } from "vitest";
import { completionsAt, named, type Source } from "./completion";

const COLUMNS: Record<string, string[]> = { orders: ["id", "shop", "Select Me"], shops: ["shop", "town"] };
const asked: string[] = [];
const source: Source = {
  all: Object.keys(COLUMNS).map((table) => ({ table, kind: "model" })),
  get: (table) => (table.toLowerCase() in COLUMNS ? { table: table.toLowerCase() } : undefined),
  columns: async (table) => (asked.push(table), (COLUMNS[table] ?? []).map((name) => ({ name, type: "BIGINT" }))),
};
async function at(marked: string, isAsked = false): Promise<string[] | undefined> {
  asked.length = 0;
  const place = marked.indexOf("|");
  const found = await completionsAt(marked.replace("|", ""), place, isAsked, source, new AbortController().signal);
  return found?.entries.map(({ insert }) => insert);
}

test("outputs follow FROM, and columns are those of the outputs that the statement names", async () => {
  expect(await at("SELECT * FROM o|")).toEqual(["orders", "shops"]);
  expect(asked).toEqual([]);
  expect(await at("SELECT i| FROM orders")).toEqual(["id", "shop", '"Select Me"', "orders", "shops"]);
  expect(await at("SELECT | FROM orders")).toBeUndefined();
  expect(await at("SELECT | FROM orders", true)).toContain("id");
  expect(await at("SELECT s.| FROM orders o JOIN shops AS s USING (shop)")).toEqual(["shop", "town"]);
  expect(await at('SELECT "O".t| FROM orders "O", shops')).toEqual(["id", "shop", '"Select Me"']);
  expect(await at("SELECT shops.t|")).toEqual(["shop", "town"]);
  expect(await at("SELECT x.t| FROM orders")).toBeUndefined();
});

test("nothing is found in comments, texts and other statements", async () => {
  expect(await at("SELECT 'from orders' AS a, i|")).toEqual(["orders", "shops"]);
  expect(await at("-- FROM orders\nSELECT i|")).toEqual(["orders", "shops"]);
  expect(await at("SELECT 1 FROM orders; SELECT t| FROM shops; SELECT 2 FROM orders")).toEqual(["shop", "town", "orders", "shops"]);
  expect(await at("SELECT 'o|")).toBeUndefined();
  expect([...named("FROM orders WHERE a", source).keys()]).toEqual(["orders"]);
  const long = "SELECT ".repeat(100_000);
  expect(await at(`${long}i|`)).toEqual(["orders", "shops"]);
});
