import { describe, expect, test } from "vitest";
import { standing } from "./standing";

test("what has failed and is asked for again waits to be rebuilt, until it runs", () => {
  const words = (["idle", "pending", "running"] as const).map((phase) => standing({ health: "failed", phase }).word);
  expect(words).toEqual(["failed", "waiting to be rebuilt", "running"]);
});

describe("an alert", () => {
  const of = (result: unknown, health: "ok" | "failed" = "ok") => standing({ kind: "alert", health, phase: "idle", result });
  const fail = { verdict: "fail", told: null, snoozed_until: null, history: [] };

  test("that found rows needs a person, and says who knows", () => {
    expect(of(fail)).toMatchObject({ tone: "fails", word: "fails" });
    expect(of({ ...fail, told: { at: "2026-01-01T00:00:00Z", verdict: "fail" } })).toMatchObject({ tone: "fails", word: "fails, told" });
    expect(of({ ...fail, snoozed_until: "2999-01-01T00:00:00Z" }).word).toBe("fails, snoozed");
  });

  test("that found nothing is well, and one that failed by itself has failed", () => {
    expect(of({ ...fail, verdict: "pass" }).tone).toBe("ok");
    expect(of(null).tone).toBe("ok");
    expect(of(fail, "failed").tone).toBe("failed");
  });
});
