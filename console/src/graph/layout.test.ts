import { expect, test } from "vitest";
import { random, SEED } from "../../tests/lib/random";
import { layout, NODE, type Edges } from "./layout";


/** A graph without circles, whose nodes are numbered in any order. */
function graph(pick: (below: number) => number, nodes: number, edges: number): Edges {
  const names = Array.from({ length: nodes }, (_, at) => at);
  for (let at = nodes - 1; at > 0; at--) {
    const other = pick(at + 1);
    [names[at], names[other]] = [names[other]!, names[at]!];
  }
  const pairs: [number, number][] = [];
  for (let number = 0; number < edges && nodes > 1; number++) {
    const [a, b] = [pick(nodes), pick(nodes)];
    if (a !== b) pairs.push([names[Math.min(a, b)]!, names[Math.max(a, b)]!]);
  }
  return { nodes, from: Int32Array.from(pairs, ([from]) => from), to: Int32Array.from(pairs, ([, to]) => to) };
}

test("no edge goes backwards, no node covers another, and equal graphs look equal", { timeout: 600_000 }, () => {
  for (let number = 0; number < 1_000; number++) {
    const seed = SEED + number;
    const pick = random(seed);
    const nodes = pick(60);
    const edges = graph(pick, nodes, pick(120));
    const { x, y, width, height } = layout(edges);
    for (let edge = 0; edge < edges.from.length; edge++) {
      const [from, to] = [edges.from[edge]!, edges.to[edge]!];
      expect(x[to]! - x[from]!, `seed ${seed}`).toBeGreaterThan(NODE.width);
    }
    for (let a = 0; a < nodes; a++) {
      const isWithin = x[a]! >= 0 && y[a]! >= 0 && x[a]! + NODE.width <= width && y[a]! + NODE.height <= height;
      if (!isWithin) expect.fail(`seed ${seed}: ${a} is outside`);
      for (let b = 0; b < a; b++) {
        const isApart = Math.abs(x[a]! - x[b]!) >= NODE.width || Math.abs(y[a]! - y[b]!) >= NODE.height - 0.01;
        if (!isApart) expect.fail(`seed ${seed}: ${a} covers ${b}`);
      }
    }
    expect(layout(edges), `seed ${seed}`).toEqual({ x, y, width, height, column: layout(edges).column });
  }
});

test("circles and long chains have a picture too", () => {
  const circle = { nodes: 3, from: Int32Array.of(0, 1, 2, 2), to: Int32Array.of(1, 2, 0, 2) };
  expect([...layout(circle).column]).toEqual([0, 1, 2]);
  const nodes = 10_000;
  const chain = { nodes, from: Int32Array.from({ length: nodes - 1 }, (_, at) => at), to: Int32Array.from({ length: nodes - 1 }, (_, at) => at + 1) };
  expect(layout(chain).column[nodes - 1]).toBe(nodes - 1);
});
