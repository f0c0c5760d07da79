// Questions: the conditions that filters mean, turns, and fields that are left out.

import { expect, test } from "vitest";
import { Refused, type ProblemDocument } from "../../api";
import type { Service } from "../../service";
import { Asking } from "./asking";
import { declaredOf } from "./declared";
import { grainsOf, proposed } from "./grains";
import { comparison, conditionOf, figures, leaderboard, pivot, typed, whereOf, type Frame } from "./questions";
import { Queue } from "./queue";

const DAY = 86_400_000;
const field = (name: string, type = "VARCHAR") => ({ name, title: name, description: "", type, hasLinks: false, hasShare: false, needs: [] });
const frame = (more: Partial<Frame> = {}): Frame => ({ range: "P4W", zone: "UTC", compare: undefined, filters: [], types: new Map([["hour", "BIGINT"]]), ...more });

test("values of numbers are compared as numbers, where they are exact", () => {
  expect([typed("5", "BIGINT"), typed("9007199254740993", "BIGINT"), typed("true", "BOOLEAN"), typed("5", "VARCHAR"), typed(null, "BIGINT"), typed("x", "DOUBLE")]).toEqual([5, "9007199254740993", true, "5", null, "x"]);
});

test("filters are conditions, joined by and", () => {
  const filters: Frame["filters"] = [
    { sort: "values", field: "hour", isNot: true, values: ["5", null] },
    { sort: "contains", field: "to", isNot: false, text: "A" },
    { sort: "groups", field: "airline", measure: "delay", op: "between", low: "1", high: "2.5" },
  ];
  expect(whereOf(frame({ filters: filters.slice(0, 1) }))).toEqual({ cond: { op: "nin", exprs: [{ name: "hour" }, { val: [5, null] }] } });
  expect(conditionOf(filters[2]!, new Map())).toEqual({
    cond: { op: "in", exprs: [{ name: "airline" }, { subquery: { dimension: "airline", measures: ["delay"], having: { cond: { op: "and", exprs: [{ cond: { op: "gte", exprs: [{ name: "delay" }, { val: 1 }] } }, { cond: { op: "lte", exprs: [{ name: "delay" }, { val: 2.5 }] } }] } } } }] },
  });
  expect(whereOf(frame({ filters }))).toMatchObject({ cond: { op: "and", exprs: [{}, {}, {}] } });
  expect(whereOf(frame())).toBeUndefined();
});

test("a comparison is an offset or a range", () => {
  expect(["-1P", "-1Y", "P4W", "rill-PP"].map(comparison)).toEqual([{ offset: "-1P" }, { offset: "-1Y" }, { offset: "P4W" }, { offset: "rill-PP" }]);
  expect(comparison("2012-02-01 to 2012-03-01")).toBe("2012-02-01 to 2012-03-01");
});

test("a comparison needs a range, and computes in the service", () => {
  expect(figures(frame({ range: undefined, compare: "-1P" }), ["n"]).query).toEqual({ measures: ["n"], time_zone: "UTC" });
  expect(figures(frame({ compare: "-1P" }), ["n"]).query.measures).toHaveLength(3);
});

test("a leaderboard is not narrowed by the values that are chosen in it", () => {
  const filters: Frame["filters"] = [{ sort: "values", field: "from", isNot: false, values: ["JFK"] }];
  const order = { measure: "n", rank: "value" as const, isAscending: false };
  expect(leaderboard(frame({ filters }), field("from"), order, false, 8).query.where).toBeUndefined();
  expect(leaderboard(frame({ filters }), field("to"), order, true, 8).query).toMatchObject({ where: {}, sort: [{ name: "n", desc: true }, { name: "to" }] });
});

test("a pivot without columns has its totals in the same answer", () => {
  expect(pivot(frame(), { rows: ["a"], columns: [], measures: ["n"] }, "body", undefined, 0, 10).query).toMatchObject({ totals: true, sort: [{ name: "a" }] });
  expect(pivot(frame(), { rows: ["a"], columns: ["b"], measures: ["n"] }, "body", undefined, 0, 10).query).toMatchObject({ pivot_on: ["b"], dimensions: ["a", "b"] });
  expect(pivot(frame(), { rows: ["a"], columns: ["b"], measures: ["n"] }, "row", undefined, 20, 1).query).toEqual({ dimensions: ["b"], measures: ["n"], pivot_on: ["b"], time_range: "P4W", time_zone: "UTC" });
});

test("a grain is not below the smallest, nor does it make too many buckets", () => {
  expect(proposed(7 * DAY, "hour")).toBe("hour");
  expect(proposed(31 * DAY, "hour")).toBe("day");
  expect(proposed(365 * DAY, undefined)).toBe("week");
  expect(proposed(7 * DAY, "month")).toBe("month");
  expect(grainsOf(100 * 365 * DAY, "second")[0]).toBe("week");
});

test("at most so many tasks run at once, and one that is given up never runs", async () => {
  const queue = new Queue(2);
  let [running, most, ran] = [0, 0, 0];
  const ends: (() => void)[] = [];
  const task = async () => {
    [running, ran] = [running + 1, ran + 1];
    most = Math.max(most, running);
    await new Promise<void>((end) => ends.push(end));
    running -= 1;
  };
  const given = new AbortController();
  const all = [1, 2, 3, 4].map((number) => queue.run(number === 3 ? given.signal : new AbortController().signal, task));
  given.abort(new Error("gone"));
  await expect(all[2]).rejects.toThrow("gone");
  for (let round = 0; ran < 3 || running > 0; round++) {
    ends.shift()?.();
    await Promise.resolve();
    expect(round).toBeLessThan(100);
  }
  await Promise.all([all[0], all[1], all[3]]);
  expect([most, ran]).toEqual([2, 3]);
});

test("a field that a viewer may not see is left out, with all that is computed of it", async () => {
  const bodies: any[] = [];
  const refuse = (detail: string) => new Refused({ detail, at: { code: "not-allowed" } } as ProblemDocument);
  const service = {
    ask: (_: string, body: any) => {
      bodies.push(body);
      const place = body.query.measures.findIndex((one: any) => JSON.stringify(one).includes("secret"));
      return place < 0 ? Promise.resolve({ columns: [], rows: [] }) : Promise.reject(refuse(`measures[${place}]: "secret" may not be seen`));
    },
  } as unknown as Service;
  const asking = new Asking(service, "explore/e", "v", "ada@example.org");
  const { left } = await asking.ask({ ...figures(frame({ compare: "-1P" }), ["n", "secret"]), limit: 1 }, new AbortController().signal);
  expect([...left]).toEqual([["secret", "not-allowed"]]);
  expect(JSON.stringify(bodies.at(-1))).not.toContain("secret");
  await expect(asking.ask(figures(frame(), ["secret"]), new AbortController().signal)).rejects.toThrow("may not be seen");
});

test("what a file does not say is as it is for all explores", () => {
  const bare = declaredOf({ explore: { name: "of_days", result: { metrics_view: "days", measures: ["n"], dimensions: ["day", "from"] } }, view: {} }, "day");
  expect(bare).toMatchObject({ view: "days", title: "Of Days", time: "day", allowsCustom: true, isZoneFixed: false, zones: [], ranges: [] });
  expect(bare.dimensions.map(({ name, title }) => [name, title])).toEqual([["from", "From"]]);
  const said = declaredOf(
    {
      explore: {
        name: "e",
        spec: { metrics_view: "v", allow_custom_time_range: false, time_ranges: [{ range: "P4W", comparison_offsets: [{ offset: "P4W" }] }, {}], defaults: { comparison_mode: "dimension", comparison_dimension: "b", measures: { fields: ["M"], invert: true } } },
        result: { measures: ["m", "k"], dimensions: ["a", "b"] },
      },
      view: { spec: { smallest_time_grain: "hour", measures: [{ name: "m", display_name: "Em", valid_percent_of_total: true }] }, result: { types: { a: "bigint" } } },
    },
    undefined,
  );
  expect(said).toMatchObject({ allowsCustom: false, smallest: "hour", ranges: [{ range: "P4W", offsets: ["P4W"] }], defaults: { by: "b", compares: false, measures: ["k"] } });
  expect(said.measures[0]).toMatchObject({ title: "Em", hasShare: true });
  expect(said.dimensions[0]!.type).toBe("BIGINT");
});
