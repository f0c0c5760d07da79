import { expect, test } from "vitest";
import { highlight } from "./highlight.ts";

const sorts = (text: string, path: string) =>
  highlight(text, path).map((line) => line.filter(({ sort }) => sort !== "plain").map(({ sort, text }) => `${sort} ${text}`));

test("keywords, texts, numbers and comments of SQL are told apart", () => {
  const text = "/* two\nlines */ SELECT 'it''s -- no comment', 1.5 -- one\nFROM \"select\" WHERE {{ ref \"x\" }}";
  expect(sorts(text, "a.sql")).toEqual([
    ["comment /* two"],
    ["comment lines */", "keyword SELECT", "text 'it''s -- no comment'", "number 1.5", "comment -- one"],
    ["keyword FROM", 'text "select"', "keyword WHERE", 'template {{ ref "x" }}'],
  ]);
});

test("keys, texts and comments of YAML are told apart", () => {
  expect(sorts("# what\ntype: model\n- {name: 'a: b', n: 12, on: true}", "a.yaml")).toEqual([
    ["comment # what"],
    ["key type"],
    ["key name", "text 'a: b'", "key n", "number 12", "key on", "keyword true"],
  ]);
});

test("nothing of a text is lost, however odd", () => {
  for (const text of ["", "'", '"', "/*", "*/", "--", "{{", "a\n\n'\n/* x\ny", "é 'ü' 漢", "x".repeat(5_000)]) {
    for (const path of ["a.sql", "a.yaml", "a.md"]) {
      const told = highlight(text, path).map((line) => line.map((piece) => piece.text).join(""));
      expect(told.join("\n")).toBe(text);
    }
  }
});
