import { expect, test } from "vitest";
import type { Condition } from "../explore/questions";
import type { Asked } from "./document";
import { conditionIn, filtersOf, narrowed } from "./narrowed";

const cond = (op: string, ...exprs: Condition[]): Condition => ({ cond: { op, exprs } });
const IN = (name: string, ...val: unknown[]): Condition => cond("in", { name }, { val });

test("a component's own filter is read as its author wrote it", () => {
  expect(conditionIn("device_type NIN ('Not Available','Connected Device')")).toEqual(cond("nin", { name: "device_type" }, { val: ["Not Available", "Connected Device"] }));
  expect(conditionIn(`a in ('it''s', 'x\\'y', 5, -1.5, null, true) and ("b c" not in (1) or d like '%x%')`)).toEqual(
    cond("and", IN("a", "it's", "x'y", 5, -1.5, null, true), cond("or", cond("nin", { name: "b c" }, { val: [1] }), cond("ilike", { name: "d" }, { val: "%x%" }))),
  );
  // AND binds more than OR.
  expect(conditionIn("a >= 1 OR b != 'x' AND c = 2")).toEqual(cond("or", cond("gte", { name: "a" }, { val: 1 }), cond("and", cond("neq", { name: "b" }, { val: "x" }), cond("eq", { name: "c" }, { val: 2 }))));
});

test("what can't be read as a whole is no filter", () => {
  for (const text of ["", "a", "a IN", "a IN ()", "a IN ('x'", "a IN ('x') b", "a IN ('x'); DROP TABLE t", "a HAVING (n > 1)", "'a' IN (1)", "a IN (b)", "a = 'x", `${"(".repeat(60)}a = 1${")".repeat(60)}`, `a IN (${"1,".repeat(20_000)}1)`, "toString = 1 AND a constructor 1"]) expect(conditionIn(text), text.slice(0, 40)).toBeUndefined();
});

test("it narrows each query beside what that has, and the frame is told where it does not", () => {
  const where = IN("shop", "Quay");
  const part = (dimension_filters: unknown, renderer = "bar_chart") => ({ renderer, properties: { dimension_filters }, queries: [{ metrics_view: "v", where }, { metrics_view: "v" }] as Asked[] });
  expect(narrowed(part("a IN (1)")).queries).toEqual([{ metrics_view: "v", where: cond("and", where, IN("a", 1)) }, { metrics_view: "v", where: IN("a", 1) }]);
  expect(filtersOf(part("a IN (1)"))).toEqual({ kept: ["a IN (1)"], left: [] });
  for (const other of [part("a HAVING (n > 1)"), part("a IN (1)", "custom_chart")]) {
    expect(narrowed(other)).toBe(other);
    expect(filtersOf(other)).toMatchObject({ kept: [], left: [other.properties.dimension_filters] });
  }
  expect(filtersOf(part(undefined))).toEqual({ kept: [], left: [] });
  const timed = { ...part("a IN (1)"), properties: { dimension_filters: "a IN (1)", time_filters: "tr=P7D&f=b+NIN+('x')" } };
  expect(narrowed(timed).queries[1]?.where).toEqual(cond("and", IN("a", 1), cond("nin", { name: "b" }, { val: ["x"] })));
  expect(filtersOf(timed).kept).toEqual(["a IN (1)", "b NIN ('x')"]);
});
