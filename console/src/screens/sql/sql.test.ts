// Links, places, the questions that stay in the browser, and charts.

import { expect, test } from "vitest";
import { Rows } from "../../grid/rows";
import { asked, markOf } from "./address";
import { drawing, histogram, propose } from "./drawing";
import { quoted, tablesOf, type Output } from "./outputs.svelte";
import { Past } from "./past.svelte";
import { lineOf, placeOf, wordEnd } from "../../editor/places";

test("a table stands once among the outputs, whoever names it too", () => {
  const output = (kind: string, table: string): Output => ({ kind, table, name: table, stamp: "" });
  const found = tablesOf([output("metrics_view", "orders"), output("model", "orders"), output("model", "Daily"), output("metrics_view", "daily"), output("metrics_view", "outside")]);
  expect(found.map(({ kind, table }) => `${kind} ${table}`)).toEqual(["model Daily", "model orders", "metrics_view outside"]);
});

test("U4 a question goes into a link and comes out of it as it was, and nothing else does", () => {
  for (const question of ["SELECT 1", "SELECT '#&?%+ü😀'\n\t-- \"x\"", "</script><img>"]) expect(asked(markOf(question)!)).toEqual({ question });
  expect(markOf("  ")).toBe("");
  expect(markOf("x".repeat(40_000))).toBeUndefined();
  for (const mark of ["", "#", "#line", "#Q=1", "#r=1"]) expect(asked(mark)).toBeUndefined();
  for (const mark of ["#q=%", "#q=%E0%A4", `#q=${"x".repeat(300_000)}`, `#q=${"x".repeat(2_000_000)}`]) expect(asked(mark)).toHaveProperty("problem");
  expect(asked(`#q=${"x".repeat(100_000)}`)).toEqual({ question: "x".repeat(100_000) });
});

test("places are found in texts of any signs", () => {
  const text = "SELECT 'ü😀', nothing\nFROM x";
  const at = text.indexOf("nothing");
  expect(placeOf(text, new TextEncoder().encode(text.slice(0, at)).length)).toBe(at);
  expect(text.slice(at, wordEnd(text, at))).toBe("nothing");
  expect(lineOf(text, at)).toEqual({ line: 1, column: 14 });
  expect(lineOf(text, text.length)).toEqual({ line: 2, column: 7 });
  expect([placeOf(text, 0), placeOf(text, 10_000), placeOf("", 5)]).toEqual([0, text.length, 0]);
});

test("names stand in quotes where they have to", () => {
  expect([quoted("orders"), quoted("Orders"), quoted("select"), quoted('a"b'), quoted("1a")]).toEqual(["orders", '"Orders"', '"select"', '"a""b"', '"1a"']);
});

class Small {
  private readonly kept = new Map<string, string>();
  constructor(private readonly most: number) {}
  getItem = (key: string) => this.kept.get(key) ?? null;
  removeItem = (key: string) => void this.kept.delete(key);
  setItem(key: string, text: string) {
    if (text.length > this.most) throw new DOMException("full", "QuotaExceededError");
    this.kept.set(key, text);
  }
}

test("two hundred questions stay, each once, the latest first", () => {
  const storage = new Small(1 << 20);
  const past = new Past("k", storage);
  for (let number = 0; number < 250; number++) past.add(`SELECT ${number}`);
  past.add("  SELECT 249 ", "1 row");
  expect(past.questions.length).toBe(200);
  expect(past.questions[0]).toMatchObject({ sql: "SELECT 249", ended: "1 row" });
  const other = new Past("k", storage);
  other.add("SELECT 'another tab'");
  past.remove("SELECT 249");
  expect(past.questions.slice(0, 2).map(({ sql }) => sql)).toEqual(["SELECT 'another tab'", "SELECT 248"]);
  past.clear();
  expect(new Past("k", storage).questions).toEqual([]);
});

test("a full storage keeps the latest, and what somebody else wrote there is no question", () => {
  const past = new Past("k", new Small(1_000));
  for (let number = 0; number < 100; number++) past.add(`SELECT ${number}`);
  expect(past.isFull).toBe(true);
  expect(past.questions[0]?.sql).toBe("SELECT 99");
  const none = new Past("k", new Small(0));
  none.add("SELECT 1");
  expect([none.isFull, none.questions.length]).toEqual([true, 1]);
  for (const text of ["{", "null", "7", '[{"sql":1}]', '[null,{"sql":"a"}]', '[{"sql":"a","at":1,"ended":{}}]', '[{"sql":"a","at":8.64e15},{"sql":"b","at":-1e300},{"sql":"c","at":null}]']) {
    const storage = new Small(1_000);
    storage.setItem("k", text);
    expect(new Past("k", storage).questions).toEqual([]);
  }
});

const rowsOf = (columns: [string, string][], rows: unknown[][]) => {
  const all = new Rows(columns.map(([name, type]) => ({ name, type })));
  all.push({ bytes: new TextEncoder().encode(rows.map((row) => JSON.stringify(row)).join(",")), count: rows.length });
  return all;
};
const never = new AbortController().signal;

test("axes are proposed from types", () => {
  const of = (...types: string[]) => propose(types.map((type, place) => ({ name: `c${place}`, type })));
  expect(of("VARCHAR", "DATE", "BIGINT", "DOUBLE")).toEqual({ kind: "line", x: 1, y: [2, 3] });
  expect(of("INTEGER", "VARCHAR")).toEqual({ kind: "bar", x: 1, y: [0] });
  expect(of("INTEGER", "DECIMAL(9,2)")).toEqual({ kind: "points", x: 0, y: [1] });
  expect(of("DOUBLE")).toEqual({ kind: "histogram", x: undefined, y: [0] });
  expect(of("VARCHAR", "INTEGER[]")).toBeUndefined();
});

test("a chart draws the first rows in order, and says what it can't draw", async () => {
  const times = rowsOf([["at", "DATE"], ["n", "DOUBLE"]], [["2024-01-03", 3], ["2024-01-01", "NaN"], ["0044-03-15 (BC)", 1], ["infinity", 5], [null, 6], ["2024-01-02", null]]);
  const drawn = await drawing(times, { kind: "line", x: 0, y: [1] }, never);
  expect(drawn.lines[0]?.values).toEqual([1, null, null, 3]);
  expect([drawn.rows, drawn.left, drawn.label(drawn.x[1]!)]).toEqual([6, 2, "2024-01-01"]);
  const words = await drawing(rowsOf([["w", "VARCHAR"], ["n", "BIGINT"]], [["b", 2], [null, 1], ["a", "9007199254740993"]]), { kind: "bar", x: 0, y: [1] }, never);
  expect(words.x.map(words.label)).toEqual(["b", "NULL", "a"]);
  const many = await drawing(rowsOf([["n", "BIGINT"]], Array.from({ length: 12_000 }, (_, n) => [n])), { kind: "histogram", x: undefined, y: [0] }, never);
  expect([many.rows, many.lines[0]?.values.reduce((sum: number, one) => sum + (one ?? 0), 0)]).toEqual([10_000, 10_000]);
  for (const values of [[], [1], [5, 5], [-1e308, 1e308], [0, 1e-300]]) {
    const { lines } = histogram(values, "n");
    expect(lines[0]?.values.reduce((sum: number, one) => sum + (one ?? 0), 0)).toBe(values.length);
  }
});
