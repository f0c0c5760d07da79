import { expect, test } from "vitest";
import { cut, fits, nearest, pieces, visible } from "./text.ts";

test("marks that turn a text around and escapes of terminals are shown as what they are", () => {
  expect(visible("a\u202Eb\u2066c\u200Fd")).toBe("a‹U+202E›b‹U+2066›c‹U+200F›d");
  expect(visible("\u001b[31mred\u0007\u009b")).toBe("␛[31mred␇‹U+009B›");
  expect(visible("two\r\nlines\tand é 漢 🙂")).toBe("two\nlines\tand é 漢 🙂");
});

test("a cut text never ends in half a character", () => {
  expect(cut("🙂🙂", 3)).toBe("🙂");
  expect(cut("abc", 3)).toBe("abc");
});

test("operations of a hint are told from its words and from code", () => {
  expect(pieces("fix `a.sql`; `watershed refresh model/a --full` forgets")).toEqual([
    { sort: "words", text: "fix " },
    { sort: "code", text: "a.sql" },
    { sort: "words", text: "; " },
    { sort: "operation", name: "refresh", arguments: ["model/a", "--full"] },
    { sort: "words", text: " forgets" },
  ]);
  for (const odd of ["", "`", "a ` b", "``", "`watershed"]) {
    expect(pieces(odd).filter((piece) => piece.sort === "operation")).toEqual([]);
  }
});

test("the nearest names come first, and what has nothing in common is left out", () => {
  const names = ["daily", "dally", "orders", "daily_sums", "x"];
  expect(nearest("dailly", names, (name) => name)).toEqual(["daily", "dally"]);
  expect(nearest("sums", names, (name) => name)).toEqual(["daily_sums"]);
  expect(nearest("nothing_like_it", names, (name) => name)).toEqual([]);
});

test("typed letters find names that have them in that order, beginnings of words before others", () => {
  const order = (typed: string, names: string[]) =>
    names
      .map((name) => ({ name, score: fits(typed, name) }))
      .filter(({ score }) => score !== undefined)
      .sort((a, b) => (b.score ?? 0) - (a.score ?? 0))
      .map(({ name }) => name);
  expect(order("dbh", ["dashboard", "delays_by_hour", "hours"])).toEqual(["delays_by_hour", "dashboard"].slice(0, 1));
  expect(order("hour", ["delays_by_hour", "hourly"])).toEqual(["hourly", "delays_by_hour"]);
  expect(fits("zz", "daily")).toBeUndefined();
});
