// The places of a graph's nodes: columns by the longest path from the sources, order within a column by barycentres.
// Sugiyama, Tagawa, Toda: Methods for visual understanding of hierarchical system structures, 1981.

/** A graph: nodes are numbers from 0, edges pairs of them, each from what is read to what reads it. */
export interface Edges {
  nodes: number;
  from: Int32Array;
  to: Int32Array;
}

/** The places of nodes, in units of the drawing. */
export interface Layout {
  x: Float32Array;
  y: Float32Array;
  /** The column of each node. */
  column: Int32Array;
  width: number;
  height: number;
}

/** The room of a node. */
export const NODE = { width: 172, height: 36 };
/** The room between nodes: for edges, and for the eye. */
export const GAP = { x: 56, y: 12 };
/** Sweeps over the columns; more of them change hardly anything. */
const SWEEPS = 12;

/** The length below which no column is split. */
const LONGEST = 24;
/** Width by height of a picture that fills a screen. */
const SHAPE = 1.5;

/** Neighbours of each node, in one array. */
interface Neighbours {
  begin: Int32Array;
  nodes: Int32Array;
}

/** Computes the places of nodes. Equal graphs get equal places. */
export function layout(edges: Edges): Layout {
  const forward = withoutCircles(edges);
  const parents = neighbours(edges.nodes, forward.to, forward.from);
  const children = neighbours(edges.nodes, forward.from, forward.to);
  const column = columns(edges.nodes, parents, children);
  const isAlone = (node: number) => degree(parents, node) + degree(children, node) === 0;

  const byColumn: number[][] = [];
  const alone: number[] = [];
  for (let node = 0; node < edges.nodes; node++) {
    if (isAlone(node)) alone.push(node);
    else (byColumn[column[node]!] ??= []).push(node);
  }
  order(byColumn, parents, children);
  const narrow = split(byColumn, edges.nodes, column);
  const y = rows(edges.nodes, narrow, parents, children);
  const x = new Float32Array(edges.nodes);
  for (let node = 0; node < edges.nodes; node++) x[node] = column[node]! * (NODE.width + GAP.x);

  let bottom = 0;
  for (const nodes of narrow) for (const node of nodes) bottom = Math.max(bottom, y[node]! + NODE.height);
  placeAlone(alone, x, y, bottom, narrow.length);
  let [width, height] = [0, 0];
  for (let node = 0; node < edges.nodes; node++) {
    width = Math.max(width, x[node]! + NODE.width);
    height = Math.max(height, y[node]! + NODE.height);
  }
  return { x, y, column, width, height };
}

/** Leaves out edges that close a circle, which only a broken project has. */
function withoutCircles({ nodes, from, to }: Edges): { from: number[]; to: number[] } {
  const children = neighbours(nodes, from, to);
  const NEW = 0;
  const OPEN = 1;
  const DONE = 2;
  const state = new Uint8Array(nodes);
  const next = children.begin.slice();
  const kept = { from: [] as number[], to: [] as number[] };
  for (let root = 0; root < nodes; root++) {
    if (state[root] !== NEW) continue;
    // Without recursion: a chain of 10,000 is a graph too.
    const path = [root];
    state[root] = OPEN;
    while (path.length > 0) {
      const node = path[path.length - 1]!;
      if (next[node] === children.begin[node + 1]) {
        state[node] = DONE;
        path.pop();
        continue;
      }
      const child = children.nodes[next[node]!++]!;
      if (state[child] === OPEN) continue;
      kept.from.push(node);
      kept.to.push(child);
      if (state[child] === NEW) {
        state[child] = OPEN;
        path.push(child);
      }
    }
  }
  return kept;
}

function neighbours(nodes: number, from: ArrayLike<number>, to: ArrayLike<number>): Neighbours {
  const begin = new Int32Array(nodes + 1);
  for (let edge = 0; edge < from.length; edge++) begin[from[edge]! + 1]!++;
  for (let node = 0; node < nodes; node++) begin[node + 1]! += begin[node]!;
  const at = begin.slice();
  const list = new Int32Array(from.length);
  for (let edge = 0; edge < from.length; edge++) list[at[from[edge]!]!++] = to[edge]!;
  return { begin, nodes: list };
}

function degree({ begin }: Neighbours, node: number): number {
  return begin[node + 1]! - begin[node]!;
}

/** The length of the longest path to each node. */
function columns(nodes: number, parents: Neighbours, children: Neighbours): Int32Array {
  const column = new Int32Array(nodes);
  const waits = new Int32Array(nodes);
  const ready: number[] = [];
  for (let node = 0; node < nodes; node++) {
    waits[node] = degree(parents, node);
    if (waits[node] === 0) ready.push(node);
  }
  for (let at = 0; at < ready.length; at++) {
    const node = ready[at]!;
    for (let edge = children.begin[node]!; edge < children.begin[node + 1]!; edge++) {
      const child = children.nodes[edge]!;
      column[child] = Math.max(column[child]!, column[node]! + 1);
      if (--waits[child]! === 0) ready.push(child);
    }
  }
  return column;
}

/** Orders the columns, to and fro, each by the middle of its neighbours' places. */
function order(byColumn: number[][], parents: Neighbours, children: Neighbours): void {
  const place = new Float64Array(parents.begin.length - 1);
  const settle = (nodes: number[]) => nodes.forEach((node, at) => (place[node] = (at + 0.5) / nodes.length));
  byColumn.forEach(settle);
  const middle = new Float64Array(place.length);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForth = sweep % 2 === 0;
    const beside = isForth ? parents : children;
    const walk = isForth ? byColumn : [...byColumn].reverse();
    for (const nodes of walk) {
      for (const node of nodes) {
        const number = degree(beside, node);
        let sum = 0;
        for (let edge = beside.begin[node]!; edge < beside.begin[node + 1]!; edge++) sum += place[beside.nodes[edge]!]!;
        middle[node] = number === 0 ? place[node]! : sum / number;
      }
      nodes.sort((a, b) => middle[a]! - middle[b]! || place[a]! - place[b]! || a - b);
      settle(nodes);
    }
  }
}

/** Makes several columns of each that is too long for a picture which is looked at on a screen: no edge joins nodes of one. */
function split(byColumn: number[][], count: number, column: Int32Array): number[][] {
  const [wide, high] = [NODE.width + GAP.x, NODE.height + GAP.y];
  const longest = Math.max(LONGEST, Math.ceil(Math.sqrt((count * wide) / (SHAPE * high))));
  const narrow: number[][] = [];
  for (const nodes of byColumn) {
    const parts = Math.ceil(nodes.length / longest);
    const begin = narrow.length;
    for (let part = 0; part < parts; part++) narrow.push([]);
    // Side by side, so that each stays at the height that its order gave it.
    nodes.forEach((node, at) => {
      column[node] = begin + (at % parts);
      narrow[begin + (at % parts)]!.push(node);
    });
  }
  return narrow;
}

/** Gives each node the height of its neighbours' middle, as far as its column's order and room allow. */
function rows(count: number, byColumn: number[][], parents: Neighbours, children: Neighbours): Float32Array {
  const step = NODE.height + GAP.y;
  const y = new Float32Array(count);
  const tallest = Math.max(0, ...byColumn.map((nodes) => nodes.length));
  for (const nodes of byColumn) nodes.forEach((node, at) => (y[node] = (at + (tallest - nodes.length) / 2) * step));
  const wish = new Float32Array(count);
  for (let sweep = 0; sweep < 6; sweep++) {
    const beside = sweep % 2 === 0 ? parents : children;
    const walk = sweep % 2 === 0 ? byColumn : [...byColumn].reverse();
    for (const nodes of walk) {
      for (const node of nodes) {
        const number = degree(beside, node);
        let sum = 0;
        for (let edge = beside.begin[node]!; edge < beside.begin[node + 1]!; edge++) sum += y[beside.nodes[edge]!]!;
        wish[node] = number === 0 ? y[node]! : sum / number;
      }
      pack(nodes, wish, y, step);
    }
  }
  let top = Infinity;
  for (const nodes of byColumn) for (const node of nodes) top = Math.min(top, y[node]!);
  for (const nodes of byColumn) for (const node of nodes) y[node]! -= top;
  return y;
}

/** Puts nodes of a column as near to their wishes as their order allows: blocks that meet move to their common middle. */
function pack(nodes: number[], wish: Float32Array, y: Float32Array, step: number): void {
  const blocks: { first: number; size: number; sum: number }[] = [];
  nodes.forEach((node, at) => {
    // The place at which the first of a block would have to be for this one's wish.
    let block = { first: at, size: 1, sum: wish[node]! };
    for (let last = blocks.at(-1); last; last = blocks.at(-1)) {
      if (last.sum / last.size + last.size * step <= block.sum / block.size) break;
      blocks.pop();
      block = { first: last.first, size: last.size + block.size, sum: last.sum + block.sum - block.size * last.size * step };
    }
    blocks.push(block);
  });
  for (const { first, size, sum } of blocks) {
    for (let at = 0; at < size; at++) y[nodes[first + at]!] = sum / size + at * step;
  }
}

/** Puts nodes without edges below the others, in a block of their own. */
function placeAlone(alone: number[], x: Float32Array, y: Float32Array, bottom: number, columns: number): void {
  const across = Math.max(columns, Math.ceil(Math.sqrt(alone.length / 4)), 1);
  const top = bottom === 0 ? 0 : bottom + 3 * GAP.y;
  alone.forEach((node, at) => {
    x[node] = (at % across) * (NODE.width + GAP.x);
    y[node] = top + Math.floor(at / across) * (NODE.height + GAP.y);
  });
}
