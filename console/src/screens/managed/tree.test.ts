import { expect, test } from "vitest";
import type { Schemas } from "../../api";
import { along, eventOf, stands, treeOf } from "./tree";

type Document = Schemas["ResourceDocument"];
function of(name: string, result: object = {}, more: object = {}): Document {
  const is = { stage: "active", goal: "active", desired: "active", step: null, failure: null, ...result };
  return { kind: "managed", name, health: "ok", phase: "idle", error: null, result: is, ...more } as unknown as Document;
}

test("a resource stands by its failure, its window, its step and its goal, in this order", () => {
  const words = (result: object, more: object = {}) => stands(of("a", result, more)).word;
  expect(words({})).toBe("there");
  expect(words({}, { health: "unready" })).toBe("not ready");
  expect(words({ step: { error: null } })).toBe("on the way");
  expect(words({ step: { error: "no room" } })).toBe("tries again");
  expect(words({ step: { error: "no room" } }, { health: "failed" })).toBe("tries again");
  expect(words({ step: { error: "no room" }, failure: { code: "step-failed" } }, { health: "failed" })).toBe("failed");
  expect(words({ stage: "absent" })).toBe("waiting");
  expect(words({ stage: "absent", goal: "absent" })).toBe("before its time");
  expect(words({ missed: true, step: {} })).toBe("missed");
  expect(words({ window: { overdue: true } })).toBe("overdue");
  expect(words({ failure: { code: "step-failed" }, window: { overdue: true } })).toBe("failed");
  expect(words({}, { health: "blocked" })).toBe("blocked");
  expect(stands({ ...of("a"), result: null }).word).toBe("not looked at yet");
});

test("the worst of the parts is seen above and comes first, else their order holds", () => {
  const parts = ["x", "y", "z"].map((name, at) => ({ name, resource: `a.${name}`, order: 3 - at }));
  const all = [of("a.y"), of("a", { parts }), of("a.x"), of("a.z"), of("a.x.deep", { failure: { code: "step-failed" } })];
  const tree = treeOf(all, "a");
  expect(tree?.own.word).toBe("there");
  expect(tree?.worst.word).toBe("failed");
  expect(tree?.below).toBe(4);
  expect(tree?.parts.map(({ document: { name }, order }) => [name, order])).toEqual([["a.x", 3], ["a.z", 1], ["a.y", 2]]);
  expect(tree?.parts[0]?.parts[0]?.document.name).toBe("a.x.deep");
});

test("a tree of a thousand parts, eight deep, is built, and one that is gone is none", () => {
  const names = ["a"];
  for (let depth = 1; depth < 8; depth++) names.push(`${names[depth - 1]}.b`);
  const wide = Array.from({ length: 1_000 }, (_, at) => `${names[7]}.w${at}`);
  expect(treeOf([...names, ...wide].map((name) => of(name)), "a")?.below).toBe(1_007);
  expect(treeOf([of("b")], "a")).toBeUndefined();
});

test("the present is somewhere in a window, and never outside of it", () => {
  const window = { opening: "2026-01-01T00:00:00Z", deadline: "2026-01-01T04:00:00Z" } as Parameters<typeof along>[0];
  const at = (hour: number) => along(window, Date.parse(`2026-01-01T0${hour}:00:00Z`));
  expect([at(0), at(1), at(4), at(9)]).toEqual([0, 0.25, 1, 1]);
  expect(along({ ...window, deadline: window.opening }, Date.parse(window.opening))).toBe(0);
});

test("an event by hand is a CloudEvent about the resource", () => {
  expect(eventOf("lab.submitted", "monday", "1")).toEqual({ specversion: "1.0", id: "1", source: "/console", type: "lab.submitted", subject: "monday" });
});
