import { expect, test } from "vitest";
import type { Schemas } from "../../api";
import type { ResourceDocument } from "../../store/listing";
import { causesOf } from "./causes";

type Run = Schemas["HistoryRun"];

function run(name: string, minute: number, code?: string, more: object = {}): Run {
  const at = `2026-01-01T00:${String(minute).padStart(2, "0")}:00Z`;
  const error = code ? { code, message: code } : null;
  return { resource: { kind: "model", name }, started_at: at, outcome: code ? "failed" : "done", error, chain: [], ...more } as unknown as Run;
}
const there = (failed: string[]) => (kind: string, name: string) =>
  name === "gone" ? undefined : ({ kind, name, error: failed.includes(name) ? { code: "x" } : null } as unknown as ResourceDocument);

test("failures of one code are one entry, with their number and what became of each resource", () => {
  const edit = [{ origin: "models/b.sql", reason: "edited" }];
  const runs = [
    run("b", 9, undefined, { chain: edit }),
    run("a", 8, "missing-file", { repeats: { runs: 3, since: "2026-01-01T00:02:00Z" } }),
    run("b", 7, "missing-file"),
    run("gone", 6, "missing-file"),
    run("b", 5),
    run("b", 4, "missing-file"),
  ];
  const [only, ...others] = causesOf(runs, there(["a"]));
  expect(others).toEqual([]);
  expect(only).toMatchObject({ code: "missing-file", failures: 6, first: "2026-01-01T00:02:00Z", last: "2026-01-01T00:08:00Z" });
  expect(only?.resources.map(({ key, failures, fate }) => [key, failures, fate])).toEqual([
    ["model/a", 3, { is: "still" }],
    ["model/b", 2, { is: "mended", at: "2026-01-01T00:09:00Z", origin: "models/b.sql" }],
    ["model/gone", 1, { is: "gone" }],
  ]);
});

test("what is still wrong comes before what is later", () => {
  const runs = [run("b", 9), run("b", 8, "sql-binder"), run("a", 1, "missing-file")];
  expect(causesOf(runs, there(["a"])).map(({ code }) => code)).toEqual(["missing-file", "sql-binder"]);
});

test("a message that was not delivered is still so until it was, though no listing has it", () => {
  const message = { resource: { kind: "notification", name: "k" } };
  const fates = (runs: Run[]) => causesOf(runs, there([]))[0]?.resources.map(({ fate: { is } }) => is);
  expect(fates([run("k", 8, "delivery-failed", message)])).toEqual(["still"]);
  expect(fates([run("k", 9, undefined, message), run("k", 8, "delivery-failed", message)])).toEqual(["mended"]);
});

test("resources of a cause stay where they are when they fail again", () => {
  const names = (runs: Run[]) => causesOf(runs, there(["a", "b", "c"]))[0]?.resources.map(({ run }) => run.resource.name);
  const before = [run("a", 3, "missing-file"), run("c", 2, "missing-file"), run("b", 1, "missing-file")];
  expect([names(before), names([run("b", 4, "missing-file"), ...before])]).toEqual([
    ["a", "b", "c"],
    ["a", "b", "c"],
  ]);
});
