// Rows as they come, in order, and as texts.

import { expect, test } from "vitest";
import { Cutter, type Block } from "./cutter";
import { order, summarize } from "./order";
import { Rows } from "./rows";
import { csvLine, harmless, Harmless, tabbed } from "./sheets";
import { compare, instant, lineOf, sortOf, textOf } from "./values";

const bytes = (text: string) => new TextEncoder().encode(text);
const HEAD = '{"schema":"watershed.query/1","columns":[{"name":"a\\"rows\\":[","type":"BIGINT"},{"name":"b","type":"STRUCT(x VARCHAR[])"}],"rows":[';

function read(text: string, size: number): { cutter: Cutter; rows: Rows | undefined } {
  const cutter = new Cutter();
  const all = bytes(text);
  let rows: Rows | undefined;
  const blocks: Block[] = [];
  for (let at = 0; at < all.length; at += size) {
    const block = cutter.push(all.subarray(at, at + size));
    if (cutter.columns) rows ??= new Rows(cutter.columns);
    if (block) blocks.push(block), rows!.push(block);
  }
  return { cutter, rows };
}

test("rows come whole, however the answer is cut into pieces", () => {
  const told = [[1, { x: ["]", '"[{', "\\"] }], [null, null], ["9007199254740993", { x: [] }], [-0, { x: ["ü€😀"] }]];
  const json = `${HEAD}${told.map((row) => JSON.stringify(row)).join(",")}],"truncated":true}`;
  for (let size = 1; size <= json.length; size++) {
    const { cutter, rows } = read(json, size);
    expect(rows?.count).toBe(4);
    expect(Array.from({ length: 4 }, (_, place) => rows?.at(place))).toEqual(JSON.parse(JSON.stringify(told)));
    expect(cutter.tail?.truncated).toBe(true);
    expect(cutter.isWhole).toBe(true);
  }
});

test("an answer without rows, without columns, cut, with an error or of another form is told apart", () => {
  expect(read(`${HEAD}],"truncated":false}`, 7).rows?.count).toBe(0);
  expect(read('{"schema":"x","columns":[],"rows":[[],[]],"truncated":false}', 5).rows?.count).toBe(2);
  const cut = read(`${HEAD}[1,null],[2,`, 9);
  expect([cut.rows?.count, cut.cutter.isWhole]).toEqual([1, false]);
  expect(read(`${HEAD}[1,null]],"error":{"code":"deadline-passed"}}`, 4).cutter.tail).toMatchObject({ error: { code: "deadline-passed" } });
  for (const other of ['{"rows":[', '{"columns":{},"rows":[', '{"columns":[{"name":1}],"rows":[']) expect(() => read(other, 3)).toThrow();
  expect(read("<html>[]</html>", 3).cutter.isWhole).toBe(false);
});

test("rows of many blocks are found by their numbers", async () => {
  const rows = new Rows([{ name: "n", type: "BIGINT" }, { name: "t", type: "VARCHAR" }]);
  const of = (number: number) => JSON.stringify([number, "x".repeat(number % 300)]);
  for (let from = 0; from < 30_000; from += 100) rows.push({ bytes: bytes(Array.from({ length: 100 }, (_, step) => of(from + step)).join(",")), count: 100 });
  for (const number of [0, 1, 99, 100, 12_345, 29_999, 3, 29_998]) expect(rows.at(number)?.[0]).toBe(number);
  expect([rows.at(30_000), rows.at(-1), rows.at(NaN)]).toEqual([undefined, undefined, undefined]);
  const sorted = await order(rows, 0, true, new AbortController().signal);
  expect([...sorted.places.subarray(0, 3)]).toEqual([29_999, 29_998, 29_997]);
  const by = await order(rows, 1, false, new AbortController().signal);
  expect([...by.places.subarray(0, 3)]).toEqual([0, 300, 600]);
  expect(await summarize(rows, 1, new AbortController().signal)).toMatchObject({ rows: 30_000, nulls: 0, empty: 100, different: 300 });
  const given = new AbortController();
  given.abort();
  await expect(order(rows, 0, false, given.signal)).rejects.toThrow();
});

test("values are in order by all of their digits, before Christ too, and NULL is last in both directions", async () => {
  const inOrder: [string, unknown[]][] = [
    ["DECIMAL(38,2)", ["-12345678901234567890123456789012345.67", "-12345678901234567890123456789012345.66", "0.00", "0.01", "12345678901234567890123456789012345.66", "12345678901234567890123456789012345.67", null]],
    ["HUGEINT", ["-170141183460469231731687303715884105728", -5, 0, 7, "9007199254740993", "9007199254740994", "170141183460469231731687303715884105727"]],
    ["DOUBLE", ["-inf", -1, -0, 0.5, 1e300, "inf", "NaN", null]],
    ["DATE", ["-infinity", "4000-01-01 (BC)", "0044-03-15 (BC)", "0001-01-01", "1999-12-31", "12024-01-01", "infinity", null]],
    ["TIMESTAMP WITH TIME ZONE", ["2024-01-01 00:00:00Z", "2024-01-01 00:00:00.123Z", "2024-01-01 00:00:00.5Z", "2024-01-01 00:00:01Z"]],
    ["BOOLEAN", [false, true, null]],
    ["VARCHAR", ["", "A", "a", "ä", null]],
  ];
  for (const [type, values] of inOrder) {
    const rows = new Rows([{ name: "v", type }]);
    const mixed = values.toReversed();
    rows.push({ bytes: bytes(mixed.map((value) => JSON.stringify([value])).join(",")), count: values.length });
    const { places } = await order(rows, 0, false, new AbortController().signal);
    expect([...places].map((place) => mixed[place]), type).toEqual(values.map((value) => (Object.is(value, -0) ? -0 : value)));
    const down = await order(rows, 0, true, new AbortController().signal);
    const known = values.filter((value) => value !== null);
    expect([...down.places].map((place) => mixed[place]), type).toEqual([...known.toReversed(), ...values.slice(known.length)]);
  }
  expect(compare("number")("1.10", "1.1")).toBe(0);
});

test("texts of values are exact, and lines are short", () => {
  for (const [value, text] of [[null, ""], ["", ""], [-0, "-0"], [0.1, "0.1"], ["12345678901234567890123456789012345678", "12345678901234567890123456789012345678"], [true, "true"], [{ a: [1, null] }, '{"a":[1,null]}']] as const) expect(textOf(value)).toBe(text);
  expect(lineOf("x".repeat(10 << 20)).length).toBeLessThan(300);
  expect(lineOf(Array.from({ length: 1_000_000 }, (_, number) => number)).length).toBeLessThan(300);
  expect(lineOf({ a: "b\nc", d: [null, 1] })).toBe('{a: "b\\nc", d: [null, 1]}');
  expect(lineOf("a\nb\u202Ec")).toBe("a↵b‹U+202E›c");
  for (const [type, sort] of [["UBIGINT", "number"], ["DECIMAL(18,3)", "number"], ["INTEGER[]", "nested"], ["STRUCT(a DATE)", "nested"], ["TIMESTAMP_NS", "time"], ["TIMETZ", "text"], ["TIMESTAMP WITH TIME ZONE", "time"], ["INTERVAL", "text"], ["ENUM('a')", "text"]]) expect(sortOf({ name: "", type: type! }), type).toBe(sort);
  expect(instant("0044-03-15 (BC)")).toBe(new Date(0).setUTCFullYear(-43, 2, 15));
  expect(instant("2024-02-29 12:30:00.5")).toBe(Date.UTC(2024, 1, 29, 12, 30, 0, 500));
  expect(instant("infinity")).toBeNull();
});

test("cells that a program of sheets would run get an apostrophe, and numbers don't", () => {
  for (const text of ['=HYPERLINK("x")', "+cmd|' /C calc'!A0", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "-x", `-${"1".repeat(500)}`]) expect(harmless(text)).toBe(`'${text}`);
  for (const text of ["-1", "+1.5e-7", "-inf", "1=2", "a", "", " =1", "-12345678901234567890.123"]) expect(harmless(text)).toBe(text);
  expect(csvLine(["=1", -1, null, "", 'a"b'])).toBe('"\'=1",-1,,"","a""b"\r\n');
  expect(tabbed([["=1", "a\tb"], [-1, null]])).toBe('\'=1\t"a\tb"\r\n-1\t');
  const plain = 'name,"=head"\n=1,-1\n"=2,""x""",\n-a,"@\nb"\n"ok",x=1\n';
  const wanted = 'name,"\'=head"\n"\'=1",-1\n"\'=2,""x""",\n"\'-a","\'@\nb"\n"ok",x=1\n';
  for (let size = 1; size < plain.length; size++) {
    const filter = new Harmless();
    let out = "";
    for (let at = 0; at < plain.length; at += size) out += filter.push(plain.slice(at, at + size));
    expect(out + filter.end()).toBe(wanted);
  }
});
