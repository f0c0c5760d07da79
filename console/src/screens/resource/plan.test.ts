import { expect, test } from "vitest";
import type { Schemas } from "../../api";
import { approval, fingerprint, loss, summary } from "./plan";

type Step = Schemas["PlanStep"];
const step = (more: Partial<Step>): Step => ({ kind: "model", name: "a", work: "build", edit: "edited", destructive: false, estimate_ms: 10, kept_ms: null, ...more }) as Step;
const plan = (...steps: Step[]) => ({ steps }) as unknown as Schemas["PlanDocument"];

test("a plan that was read holds until a step or the declaration is another one", () => {
  const read = fingerprint(plan(step({})), 3);
  expect(fingerprint(plan(step({ estimate_ms: 99 })), 3)).toBe(read);
  expect(fingerprint(plan(step({})), 4)).not.toBe(read);
  expect(fingerprint(plan(step({ destructive: true })), 3)).not.toBe(read);
  expect(fingerprint(plan(step({}), step({ name: "b" })), 3)).not.toBe(read);
});

test("what is lost is named, with the time for which the trash keeps it", () => {
  expect(loss(step({}))).toBeUndefined();
  expect(loss(step({ destructive: true, kept_ms: 60_000 }))).toBe("Its rows are thrown away; the trash keeps them for 1 min 0 s, if it has room.");
  expect(loss(step({ destructive: true, work: "drop" }))).toBe("Its table is dropped, and nothing brings them back.");
});

test("a plan begins with its numbers", () => {
  const none = { builds: 0, checks: 0, drops: 0, estimate_ms: 0, failures: 0, renames: 0, resources: 3, restores: 0 };
  expect(summary(none)).toBe("Nothing would be done.");
  expect(summary({ ...none, builds: 2, drops: 1, estimate_ms: 1_500 })).toBe("Would be: 2 built, 1 dropped; the last time that took 1.5 s.");
});

test("an approval names the rows that go and what follows", () => {
  expect(approval({ result: { rows: 1, table: "events" } }, 0)).toBe("Throws away 1 row of events, and makes them anew by the new definition.");
  expect(approval({ result: null }, 2)).toBe("Throws away the rows, and makes them anew by the new definition. Then 2 resources that wait for it follow.");
});
