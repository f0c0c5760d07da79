import { expect, test } from "vitest";
import { effect, isLooping, plain, searched, toneOf, type ServiceResult, type ServiceSpec } from "./programs";

const service = (wanted: number): ServiceResult =>
  ({ stage: "running", release: 3, replicas_wanted: wanted, replicas_ready: wanted, replicas: [] }) as unknown as ServiceResult;
const spec = (fixed: number): ServiceSpec => ({ replicas: 2, rollout: { surge: 1, strategy: "rolling" }, program: { ports: [{ fixed }] } });

test("an action names its effect and the number of copies", () => {
  const says = (wanted: number, deed: Parameters<typeof effect>[0], fixed = 0) => effect(deed, service(wanted), spec(fixed));
  expect(says(2, { verb: "restart", now: false })).toBe("Starts 2 new copies, each before the old one that it replaces ends.");
  expect(says(1, { verb: "restart", now: false })).toBe("Starts 1 new copy before the old one that it replaces ends.");
  expect(says(2, { verb: "restart", now: false }, 8080)).toMatch(/^Restarts 2 copies in their places/);
  expect(says(1, { verb: "restart", now: true })).toMatch(/^Stops 1 copy at once and starts it anew/);
  expect(says(0, { verb: "restart", now: true })).toBe("There is no copy that it could restart.");
  expect(says(2, { verb: "scale", replicas: 5 })).toBe("Starts 3 copies: 5 in the place of 2.");
  expect(says(3, { verb: "scale", replicas: 2 })).toBe("Ends 1 copy: 2 in the place of 3.");
  expect(says(3, { verb: "scale", replicas: 0 })).toBe("Ends all 3 copies: nothing answers any more.");
  expect(says(5, { verb: "scale", replicas: null })).toBe("Ends 3 copies: 2 in the place of 5, the number of the file.");
  expect(says(2, { verb: "scale", replicas: 2 })).toMatch(/^Changes nothing: 2 copies are wanted already/);
  expect(says(2, { verb: "rollback", to: null })).toBe("Replaces 2 copies of release 3 by the release before that came up, until the file changes.");
  expect(says(2, { verb: "rollback", to: 1 })).toContain("by release 1");
});

test("a copy loops once it has failed and waits, and not while it was stopped in good order", () => {
  expect(isLooping({ stage: "backing_off", failures: 1 })).toBe(true);
  expect(isLooping({ stage: "failed", failures: 5 })).toBe(true);
  expect(isLooping({ stage: "backing_off", failures: 0 })).toBe(false);
  expect(isLooping({ stage: "ready", failures: 2 })).toBe(false);
});

test("a stage has a tone, and a service that runs is well only while enough of it is ready", () => {
  expect([toneOf("ready"), toneOf("failed"), toneOf("backing_off"), toneOf("stopped")]).toEqual(["ok", "failed", "failed", "paused"]);
  expect([toneOf("running"), toneOf("running", true)]).toEqual(["unready", "ok"]);
  expect(toneOf("a stage of another version")).toBe("none");
});

test("colours of a terminal are left out, and other marks are not", () => {
  expect(plain("\u001b[31mred\u001b[0m and \u001b[38;5;1mmore\u001b[m")).toBe("red and more");
  expect(plain("\u001b]0;title\u0007 \u001b[2J")).toBe("\u001b]0;title\u0007 \u001b[2J");
});

test("a search finds words within colours, large and small", () => {
  const lines = [{ text: "\u001b[31mErr\u001b[0mor one" }, { text: "all well" }];
  expect(searched(lines, " ERROR ")).toEqual([lines[0]]);
  expect(searched(lines, "")).toEqual(lines);
});
