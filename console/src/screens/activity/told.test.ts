import { expect, test } from "vitest";
import type { Schemas } from "../../api";
import { alertsOf, AHEAD, clock, dueOf, filesOf, messagesOf, standingOf, zoneOf } from "./told";

type Document = Schemas["ResourceDocument"];
const NOW = Date.parse("2026-03-29T00:00:00Z");
const iso = (after: number) => new Date(NOW + after).toISOString();
const of = (kind: string, name: string, result: unknown, more: object = {}) => ({ kind, name, result, health: "ok", phase: "idle", next_run_at: null, ...more }) as unknown as Document;

test("alerts that fail come first, snoozed ones after the others, and a snooze that is over is none", () => {
  const alert = (name: string, verdict: string, snoozed_until: string | null = null) => of("alert", name, { verdict, snoozed_until, history: [], told: null });
  const alerts = alertsOf([alert("p", "pass"), alert("s", "fail", iso(1_000)), alert("f", "fail", iso(-1_000)), alert("e", "error"), alert("x", "another"), of("model", "m", {})], NOW);
  expect(alerts.map(({ document: { name }, snoozed }) => [name, snoozed !== undefined])).toEqual([["f", false], ["s", true], ["e", false], ["p", false], ["x", false]]);
});

test("messages that nobody got come first: dead, late, waiting, then the latest of the others", () => {
  const message = (key: string, standing: string, attempts: number, at: string | null = null) => of("notification", key, { standing, attempts, at });
  const sent = messagesOf([message("d1", "delivered", 1, iso(0)), message("w", "waiting", 0), message("d2", "delivered", 1, iso(5)), message("l", "waiting", 3), message("x", "dead", 9, iso(1)), of("model", "m", null)]);
  expect(sent.map((one) => [one.key, standingOf(one)])).toEqual([["x", "dead"], ["l", "late"], ["w", "waiting"], ["d2", "delivered"], ["d1", "delivered"]]);
});

test("what is due in 24 hours is listed by time, with what is overdue or paused", () => {
  const due = dueOf(
    [
      of("report", "later", null, { next_run_at: iso(AHEAD + 1) }),
      of("report", "soon", null, { next_run_at: iso(60_000) }),
      of("alert", "missed", null, { next_run_at: iso(-120_000) }),
      of("alert", "runs", null, { next_run_at: iso(-120_000), phase: "running" }),
      of("job", "held", null, { next_run_at: iso(-120_000), health: "paused" }),
      of("managed", "booked", { window: { opening: iso(-AHEAD), start: iso(3_600_000), end: iso(2 * AHEAD) } }),
    ],
    NOW,
  );
  expect(due.map(({ document: { name }, what, isOverdue, isPaused }) => [name, what, isOverdue, isPaused])).toEqual([
    ["held", "runs", false, true],
    ["missed", "runs", true, false],
    ["soon", "runs", false, false],
    ["booked", "window begins", false, false],
  ]);
});

test("a zone is that of the window or the schedule, and a moment is told on its clock, also in the night when it changes", () => {
  expect(zoneOf({ refresh_schedule: { time_zone: "Europe/Oslo" } })).toBe("Europe/Oslo");
  expect(zoneOf({ window: { time_zone: "Asia/Tokyo" }, schedule: null })).toBe("Asia/Tokyo");
  expect([zoneOf({ refresh_schedule: { time_zone: "" } }), zoneOf(null), zoneOf("text")]).toEqual([undefined, undefined, undefined]);
  // In Oslo the clock goes from 02:00 to 03:00 at 01:00 UTC.
  const hour = (after: number) => clock(NOW + after * 3_600_000, "Europe/Oslo")?.match(/\d\d:\d\d/)?.[0];
  expect([hour(0), hour(1)]).toEqual(["01:00", "03:00"]);
  expect(clock(NOW, "Mars/Phobos")).toBeUndefined();
});

test("files of a report are those of its result, the latest first", () => {
  const made = (at: string) => ({ at, file: `${at}.csv`, rows: 1, bytes: 2, error: null, sent: [] });
  expect(filesOf(of("report", "r", { history: [made("1"), made("2")] })).map(({ at }) => at)).toEqual(["2", "1"]);
  expect(filesOf(of("model", "m", { history: [made("1")] }))).toEqual([]);
});
