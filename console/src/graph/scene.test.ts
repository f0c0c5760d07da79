import { expect, test } from "vitest";
import type { ResourceDocument } from "../store/listing";
import { FOLDED_ABOVE, sceneOf } from "./scene";

/** Models in folders of a hundred, each of which reads the one before. */
function chain(count: number): ResourceDocument[] {
  return Array.from({ length: count }, (_, at) => {
    const path = `models/part_${String(Math.floor(at / 100)).padStart(2, "0")}/m${at}.sql`;
    const refs = at === 0 ? [] : [{ kind: "model", name: `m${at - 1}` }];
    const health = at === 150 ? "failed" : "ok";
    return { kind: "model", name: `m${at}`, paths: [path], refs, health, phase: "idle" } as unknown as ResourceDocument;
  });
}

test("a project of a few resources shows all, and nothing that isn't there", () => {
  const resources = chain(3);
  resources[0]!.refs = [{ kind: "model", name: "missing" }, { kind: "model", name: "m0" }];
  const { nodes, edges, isFolded } = sceneOf(resources, new Set());
  expect([nodes.length, isFolded, [...edges.from], [...edges.to]]).toEqual([3, false, [0, 1], [1, 2]]);
});

test("a large project folds its folders, with what needs a person, until they are opened", () => {
  const resources = chain(FOLDED_ABOVE + 100);
  const folded = sceneOf(resources, new Set());
  expect([folded.nodes.length, folded.edges.from.length, folded.isFolded]).toEqual([21, 20, true]);
  const second = folded.nodes[1]!;
  expect([second.label, second.detail, second.tone]).toEqual(["models/part_01", "100 resources, 1 failed", "failed"]);
  expect(folded.at.get("model/m150")).toBe(1);
  const opened = sceneOf(resources, new Set(["models/part_01"]));
  expect([opened.nodes.length, opened.edges.from.length]).toEqual([120, 119]);
  expect(opened.signature).not.toBe(folded.signature);
});

test("a state that changes leaves the picture's places alone", () => {
  const [before, after] = [chain(5), chain(5)];
  after[2]!.health = "failed";
  expect(sceneOf(after, new Set()).signature).toBe(sceneOf(before, new Set()).signature);
});

test("a scene made from the one before is the one made anew, and keeps the nodes that stay", () => {
  const before = chain(200);
  const scene = sceneOf(before, new Set());
  const open = scene.of.open;
  const after = before.with(7, { ...before[7]!, health: "failed" }).with(150, { ...before[150]!, phase: "running" });
  const [again, anew] = [sceneOf(after, open, scene), sceneOf(after, open)];
  expect(again).toEqual(anew);
  expect([again.nodes[8] === scene.nodes[8], again.edges === scene.edges]).toEqual([true, true]);
  const moved = after.with(9, { ...after[9]!, refs: [] });
  expect(sceneOf(moved, open, again).edges.from.length).toBe(anew.edges.from.length - 1);
});
