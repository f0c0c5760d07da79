import { expect, test } from "vitest";
import type { Answer } from "../explore/asking";
import { givenOf, optionsOf, outputOf } from "./variables";

test("a component names the variable that it sets, as a text or as a block", () => {
  expect([{ name: "x" }, "y", { name: "" }, "", null, 7, { name: 3 }].map((output) => outputOf({ output }))).toEqual(["x", "y", undefined, undefined, undefined, undefined, undefined]);
});

test("values of an address have the types of the board's variables, and are those of its variables alone", () => {
  const declared = [{ name: "on", value: true }, { name: "top", value: 5 }, { name: "country", value: "DE" }, { name: "none", value: null }];
  expect(givenOf({ on: "false", top: "7", country: "12", none: "3", old: "x" }, declared)).toEqual({ on: false, top: 7, country: "12", none: "3" });
  expect(givenOf({ on: "x", top: "many" }, declared)).toEqual({ on: "x", top: "many" });
  expect(givenOf({}, [{ name: "constructor", value: "" }])).toEqual({});
});

test("options are those that are listed, or the rows of the query", () => {
  expect(optionsOf({ options: ["a", 2, { value: "b", label: "Bee" }, { label: "none" }, null] }, undefined)).toEqual([
    { value: "a", label: "a" },
    { value: "2", label: "2" },
    { value: "b", label: "Bee" },
  ]);
  expect(optionsOf({ options: ["a", "a", 1, "1"] }, undefined).map(({ value }) => value)).toEqual(["a", "1"]);
  const answer = { columns: [{ name: "n" }, { name: "code" }, { name: "title" }], rows: [[1, "DE", "Germany"], [2, "FR", null], [3, null, "x"], [4, "DE", "again"]] } as unknown as Answer;
  expect(optionsOf({ value_field: "code", label_field: "title" }, answer)).toEqual([{ value: "DE", label: "again" }, { value: "FR", label: "FR" }]);
  expect(optionsOf({}, answer).map(({ value }) => value)).toEqual(["1", "2", "3", "4"]);
  expect(optionsOf({}, undefined)).toEqual([]);
});
