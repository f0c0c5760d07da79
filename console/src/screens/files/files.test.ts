// Forms of files, kept texts, trees, findings and differences.

import { expect, test } from "vitest";
import type { Finding } from "../../editor/language.svelte";
import { differing } from "./changed";
import { gradesOf, together } from "./found";
import { forgetOthers, Keeper } from "./kept";
import { given, taken } from "./shape";
import { rowsOf } from "./tree";

const bytes = (text: string) => new TextEncoder().encode(text);

test("a file that nobody edits is saved byte by byte as it was", () => {
  for (const text of ["", "a", "a\n", "a\r\nb\r\n", "a\r\nb", "\uFEFFa\r\n", "\uFEFF", "a\rb\r\nc\n", "a\r", "\r\n", "\n\r\n", "ü\u2028\n\n"]) {
    const file = taken(bytes(text));
    expect(given(file.text, file.shape), JSON.stringify(text)).toEqual(bytes(text));
    expect(file.text.startsWith("\uFEFF")).toBe(false);
  }
  expect(given(taken(bytes("a\r\nb\r\n")).text.replace("b", "b\nc"), taken(bytes("a\r\n")).shape)).toEqual(bytes("a\r\nb\r\nc\r\n"));
  expect(() => taken(new Uint8Array([0x61, 0xff]))).toThrow();
});

/** A storage of so many characters. */
function room(most: number) {
  const all = new Map<string, string>();
  return {
    get length() {
      return all.size;
    },
    key: (index: number) => [...all.keys()][index] ?? null,
    getItem: (key: string) => all.get(key) ?? null,
    removeItem: (key: string) => void all.delete(key),
    setItem: (key: string, value: string) => {
      if ([...all].reduce((sum, [, text]) => sum + text.length, value.length) > most) throw new Error("QuotaExceededError");
      all.set(key, value);
    },
  };
}

test("unsaved texts stay apart by person, project, file and visit, until they are forgotten", () => {
  const storage = room(2_000);
  const anna = new Keeper("/x", "shop", "anna", storage);
  const [one, two] = [anna.open("a.sql"), anna.open("a.sql")];
  expect(anna.keep(one, "first", '"1"') && anna.keep(two, "second", undefined)).toBe(true);
  expect(anna.all().map(({ text, etag }) => [text, etag]).sort()).toEqual([["first", '"1"'], ["second", undefined]]);
  for (const other of [new Keeper("", "shop", "anna", storage), new Keeper("/x", "data", "anna", storage), new Keeper("/x", "shop", "otto", storage)]) expect(other.all()).toEqual([]);
  // What finds no room is there as long as the page.
  const large = anna.open("b.sql");
  expect(anna.keep(large, "x".repeat(3_000), undefined)).toBe(false);
  expect(storage.getItem(large)).toBe(null);
  expect(anna.all().find(({ key }) => key === large)?.text.length).toBe(3_000);
  expect(new Keeper("/x", "shop", "otto", storage).all()).toEqual([]);
  expect(anna.keep(large, "small", undefined)).toBe(true);
  expect(anna.keep(large, "y".repeat(3_000), undefined)).toBe(false);
  expect(anna.all().filter(({ key }) => key === large).map(({ text }) => text[0])).toEqual(["y"]);
  anna.forget(large);
  storage.setItem(anna.open("odd.sql"), '{"text":1}');
  storage.setItem("watershed unsaved [1]", "{}");
  expect(anna.all().length).toBe(2);
  anna.forget(one);
  expect(anna.all().map(({ text }) => text)).toEqual(["second"]);
  forgetOthers("/x", "anna", storage);
  expect(anna.all().length).toBe(1);
  forgetOthers("", undefined, storage);
  expect(anna.all().length).toBe(1);
  forgetOthers("/x", undefined, storage);
  expect(anna.all()).toEqual([]);
});

test("a tree has one row for what is folded, and the worst of all that is in it", () => {
  const paths = ["watershed.yaml", "models/b.sql", "models/deep/c.sql", "models/a.sql", "metrics/m.yaml"];
  const grades = new Map([["models/deep/c.sql", "error"], ["models/a.sql", "warning"]] as const);
  const rows = (typed: string, open: string[]) => rowsOf(paths, grades, typed, (folder) => open.includes(folder)).map(({ path, depth, worst, files }) => [path, depth, worst, files]);
  expect(rows("", [])).toEqual([["metrics", 0, undefined, 1], ["models", 0, "error", 3], ["watershed.yaml", 0, undefined, undefined]]);
  expect(rows("", ["models"]).slice(1, 5)).toEqual([["models", 0, "error", 3], ["models/deep", 1, "error", 1], ["models/a.sql", 1, "warning", undefined], ["models/b.sql", 1, undefined, undefined]]);
  expect(rows("C.SQ", [])).toEqual([["models", 0, "error", 1], ["models/deep", 1, "error", 1], ["models/deep/c.sql", 2, "error", undefined]]);
});

test("what the language server says already is not said again for the last run, and the worst of both counts", () => {
  const finding = (code: string, line: number, severity: Finding["severity"]): Finding => ({ path: "a.sql", line, column: 1, severity, code, message: code });
  const told = [finding("unknown-table", 2, "error"), finding("key", 1, "info")];
  const ran = [finding("unknown-table", 2, "error"), finding("unknown-table", 3, "error")];
  expect(together(told, ran).map(({ code, line }) => [code, line])).toEqual([["unknown-table", 2], ["key", 1], ["unknown-table", 3]]);
  expect(together([], ran)).toEqual(ran);
  const grades = gradesOf(new Map([["a.sql", told], ["b.sql", [finding("key", 1, "info")]]]), new Map([["b.sql", [finding("late", 1, "warning")]]]));
  expect([...grades]).toEqual([["a.sql", "error"], ["b.sql", "warning"]]);
});

test("a difference leaves alone what stands before and behind it", () => {
  const texts = ["", "a", "aa", "aba", "abcba", "xabcbay", "ab\ncd\n", "ab\nX\ncd\n"];
  for (const from of texts) {
    for (const to of texts) {
      const change = differing(from, to);
      expect(from.slice(0, change.from) + change.insert + from.slice(change.to)).toBe(to);
    }
  }
  expect(differing("select a from b", "select x from b")).toEqual({ from: 7, to: 8, insert: "x" });
});
