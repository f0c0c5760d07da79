// What the graph shows: nodes and edges, of resources or, where those are many, of folders.

import { standing, ofTone, TONES, type Tone } from "../parts/standing";
import { visible } from "../parts/text";
import { keyOf, type ResourceDocument } from "../store/listing";
import type { Edges } from "./layout";

/** The number of resources above which folders are folded. */
export const FOLDED_ABOVE = 2_000;

/** A node. */
export interface Node {
  key: string;
  label: string;
  /** The line below the name. */
  detail: string;
  /** The beginning of the kind, where several have the same name; else none. */
  mark: string | undefined;
  tone: Tone;
  folder: string;
  /** The resource; none where the node is a folder. */
  resource: ResourceDocument | undefined;
  /** The number of resources that it stands for. */
  count: number;
}

/** A folder, and how many in it stand how. */
export interface Folder {
  name: string;
  count: number;
  failed: number;
}

/** All that is drawn. */
export interface Scene {
  nodes: Node[];
  at: Map<string, number>;
  edges: Edges;
  folders: Folder[];
  isFolded: boolean;
  /** What it is made of. */
  of: { resources: ResourceDocument[]; open: ReadonlySet<string> };
  /** Equal for graphs that have the same picture. */
  signature: string;
}

/** The folder of the file that declares a resource; its kind where there is none. */
export function folderOf({ paths, kind }: ResourceDocument): string {
  const path = paths[0];
  if (path === undefined) return kind;
  const end = path.lastIndexOf("/");
  return end < 0 ? "." : path.slice(0, end);
}

/** Makes the scene of resources, from the one before where there is one. Folders that are open show what is in them. */
export function sceneOf(resources: ResourceDocument[], open: ReadonlySet<string>, before?: Scene): Scene {
  return (before && again(resources, open, before)) ?? anew(resources, open);
}

/** The scene before with other states, as long as all else stands: nodes that stay are the same ones, and edges are not looked at. */
function again(resources: ResourceDocument[], open: ReadonlySet<string>, before: Scene): Scene | undefined {
  const { of, isFolded } = before;
  if (isFolded || of.open !== open || of.resources.length !== resources.length) return undefined;
  const nodes = before.nodes.slice();
  const folders = new Map(before.folders.map((folder) => [folder.name, { ...folder }]));
  for (let at = 0; at < resources.length; at++) {
    const [resource, was] = [resources[at]!, of.resources[at]!];
    if (resource === was) continue;
    if (resource.name !== was.name || resource.kind !== was.kind || !isPlacedAs(resource, was)) return undefined;
    const { folder, mark, key, tone } = nodes[at]!;
    const node = nodeOf(resource, key, folder, standing(resource).tone);
    nodes[at] = { ...node, mark: mark && node.detail.slice(0, 3) };
    folders.get(folder)!.failed += Number(node.tone === "failed") - Number(tone === "failed");
  }
  return { ...before, nodes, folders: [...folders.values()], of: { resources, open } };
}

function isPlacedAs({ paths, refs }: ResourceDocument, was: ResourceDocument): boolean {
  const isSame = (ref: ResourceDocument["refs"][number], at: number) => ref.kind === was.refs[at]!.kind && ref.name === was.refs[at]!.name;
  return paths[0] === was.paths[0] && refs.length === was.refs.length && refs.every(isSame);
}

function anew(resources: ResourceDocument[], open: ReadonlySet<string>): Scene {
  const isFolded = resources.length > FOLDED_ABOVE;
  const nodes: Node[] = [];
  const at = new Map<string, number>();
  const folded = new Map<string, number>();
  const folders = new Map<string, Folder>();
  for (const resource of resources) {
    const name = folderOf(resource);
    const { tone } = standing(resource);
    const folder = folders.get(name) ?? { name, count: 0, failed: 0 };
    folder.count += 1;
    if (tone === "failed") folder.failed += 1;
    folders.set(name, folder);
    const key = keyOf(resource);
    if (!isFolded || open.has(name)) {
      at.set(key, nodes.push(nodeOf(resource, key, name, tone)) - 1);
      continue;
    }
    let index = folded.get(name);
    if (index === undefined) {
      index = nodes.push({ key: `folder:${name}`, label: visible(name), detail: "", mark: undefined, tone: "none", folder: name, resource: undefined, count: 0 }) - 1;
      folded.set(name, index);
    }
    const node = nodes[index]!;
    node.count += 1;
    if (TONES.indexOf(tone) < TONES.indexOf(node.tone)) node.tone = tone;
    at.set(key, index);
  }
  for (const index of folded.values()) {
    const node = nodes[index]!;
    const failed = folders.get(node.folder)?.failed ?? 0;
    node.detail = `${node.count.toLocaleString()} resources${failed > 0 ? `, ${failed.toLocaleString()} failed` : ""}`;
    at.set(node.key, index);
  }
  const named = new Map<string, number>();
  for (const { resource } of nodes) if (resource) named.set(resource.name, (named.get(resource.name) ?? 0) + 1);
  for (const node of nodes) if (node.resource && named.get(node.resource.name)! > 1) node.mark = node.detail.slice(0, 3);
  const edges = edgesOf(resources, at, nodes.length);
  const signature = `${nodes.map((node) => node.key).join("\n")}\n${edges.from.join()}\n${edges.to.join()}`;
  return { nodes, at, edges, folders: [...folders.values()].sort((a, b) => b.count - a.count), isFolded, of: { resources, open }, signature };
}

function nodeOf(resource: ResourceDocument, key: string, folder: string, tone: Tone): Node {
  const kind = (resource.declared_as ?? resource.kind).replaceAll("_", " ");
  const rows = (resource.result as { rows?: unknown } | null | undefined)?.rows;
  const counted = typeof rows === "number" ? ` · ${rows.toLocaleString()} rows` : "";
  const word = tone === "ok" ? "" : ` · ${standing(resource).word}`;
  return { key, label: visible(resource.name), detail: `${kind}${word}${counted}`, mark: undefined, tone, folder, resource, count: 1 };
}

function edgesOf(resources: ResourceDocument[], at: Map<string, number>, nodes: number): Edges {
  const from: number[] = [];
  const to: number[] = [];
  const seen = new Set<number>();
  for (const resource of resources) {
    const reader = at.get(keyOf(resource))!;
    for (const ref of resource.refs) {
      const read = at.get(keyOf(ref));
      if (read === undefined || read === reader) continue;
      const edge = read * nodes + reader;
      if (seen.has(edge)) continue;
      seen.add(edge);
      from.push(read);
      to.push(reader);
    }
  }
  return { nodes, from: Int32Array.from(from), to: Int32Array.from(to) };
}
