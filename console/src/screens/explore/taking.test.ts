import { expect, test } from "vitest";
import type { Asking } from "./asking";
import { csv, queryText, whole } from "./taking";

const column = (name: string) => ({ name, display_name: name, role: "dimension" as const, type: "VARCHAR" });

test("a text that a program of sheets would run gets an apostrophe, and numbers stay numbers", () => {
  const rows = [
    ["=HYPERLINK(1)", -1.5],
    ["+1", "-9007199254740993"],
    ["@SUM(A1)", null],
    ["-cmd|calc", true],
    ["\tx", ""],
    ['say "hi", twice', "a\nb"],
  ];
  expect(csv({ columns: [column("=a"), column("b")], rows, totals: [null, 1] })).toBe(
    `"'=a",b\r\n"'=HYPERLINK(1)",-1.5\r\n+1,-9007199254740993\r\n"'@SUM(A1)",\r\n"'-cmd|calc",true\r\n"'\tx",""\r\n"say ""hi"", twice","a\nb"\r\n,1\r\n`,
  );
});

test("a query is what the command line takes, and a file has all rows", () => {
  const question = { query: { measures: ["n"], offset: 50 }, limit: 8 };
  expect(JSON.parse(queryText({ view: "days" } as Asking, question))).toEqual({ metrics_view: "days", measures: ["n"], offset: 50, limit: 8 });
  expect(whole(question)).toEqual({ query: { measures: ["n"] }, limit: 10_000 });
});
