// A managed resource with its parts: a tree, with the worst of what is below shown above.

import type { Schemas } from "../../api";
import { ofTone, type Tone } from "../../parts/standing";

type Document = Schemas["ResourceDocument"];

/** The step that is under way. */
export interface Step {
  to: string;
  action: string;
  attempt: number;
  attempts: number | null;
  next_at: string | null;
  error: string | null;
  waits_for_event: string | null;
  done: string[];
}

/** The window of a managed resource, and where the present is in it. */
export interface Window {
  phase: string;
  opening: string;
  start: string;
  end: string;
  deadline: string;
  overdue: boolean;
}

/** The result of a managed resource. */
export interface ManagedResult {
  stage: string;
  goal: string;
  desired: string | null;
  since: string | null;
  message: string | null;
  step: Step | null;
  failure: { code: string; message: string } | null;
  /** The event that set what is desired. */
  event: string | null;
  missed?: boolean;
  window?: Window;
  parts?: { name: string; resource: string; order: number }[];
}

/** The part of a managed resource's spec that a person chooses from. */
export interface ManagedSpec {
  stages: string[];
  on_events: { type: string; desired: string | null }[];
}

/** How something managed stands: its tone, and the word beside its stage where there is more to say. */
export interface Stands {
  tone: Tone;
  word: string;
}

/** A node of the tree. */
export interface Node {
  document: Document;
  is: ManagedResult | undefined;
  own: Stands;
  /** How the worst of it and of all below stands. */
  worst: Stands;
  order: number;
  parts: Node[];
  /** The number of all parts below. */
  below: number;
}

/** Returns the result of a managed resource; none of other kinds and before its first look. */
export function managed(of: Pick<Document, "kind" | "result">): ManagedResult | undefined {
  const is = of.result as ManagedResult | null | undefined;
  return /^managed(_teardown)?$/.test(of.kind) && typeof is?.stage === "string" ? is : undefined;
}

/** Returns how something managed stands by itself. */
export function stands(of: Pick<Document, "kind" | "result" | "health" | "error">): Stands {
  const is = managed(of);
  if (of.health === "paused") return { tone: "paused", word: "paused" };
  if (of.health === "blocked") return { tone: "blocked", word: "blocked" };
  // The health of what has failed once and is tried again is `failed` too.
  const isTrying = !!is?.step?.error && !is.failure;
  if (is?.failure || (of.health === "failed" && !isTrying)) return { tone: "failed", word: "failed" };
  if (is?.window?.overdue) return { tone: "fails", word: "overdue" };
  if (is?.missed) return { tone: "fails", word: "missed" };
  if (!is) return { tone: "unbuilt", word: "not looked at yet" };
  if (isTrying) return { tone: "failed", word: "tries again" };
  if (is.step) return { tone: "running", word: "on the way" };
  if (is.stage !== is.goal) return { tone: "waiting", word: "waiting" };
  if (is.desired !== null && is.desired !== is.goal) return { tone: "waiting", word: "before its time" };
  return of.health === "unready" ? { tone: "unready", word: "not ready" } : { tone: "ok", word: "there" };
}

/** Returns the name of the owner of a part; none of what belongs to nothing. */
function ownerOf(name: string): string | undefined {
  const at = name.lastIndexOf(".");
  return at < 0 ? undefined : name.slice(0, at);
}

/** Builds the tree below a resource from all that is known of it. None if the resource itself is not among that. */
export function treeOf(documents: readonly Document[], root: string): Node | undefined {
  const nodes = new Map<string, Node>();
  for (const document of documents) {
    const own = stands(document);
    nodes.set(document.name, { document, is: managed(document), own, worst: own, order: 0, parts: [], below: 0 });
  }
  for (const [name, node] of nodes) {
    if (name === root) continue;
    const owner = nodes.get(ownerOf(name) ?? "");
    const said = owner?.is?.parts?.find(({ resource }) => resource === name);
    node.order = said?.order ?? 0;
    owner?.parts.push(node);
  }
  const top = nodes.get(root);
  if (top) rollUp(top);
  return top;
}

const rank = ({ tone }: Stands) => ofTone(tone).rank;

/** Takes what is worst below upwards, and puts what is worst first. A name has dots only between owners, so no tree has a circle. */
function rollUp(node: Node): void {
  for (const part of node.parts) {
    rollUp(part);
    node.below += part.below + 1;
    if (rank(part.worst) < rank(node.worst)) node.worst = part.worst;
  }
  node.parts.sort((a, b) => rank(a.worst) - rank(b.worst) || a.order - b.order || (a.document.name < b.document.name ? -1 : 1));
}

/** Returns the event that a person sends by hand: a CloudEvent of a type about a resource. */
export function eventOf(type: string, subject: string, id: string): Record<string, string> {
  return { specversion: "1.0", id, source: "/console", type, subject };
}

/** Returns how far a moment is between the ends of a window, from 0 to 1. */
export function along({ opening, deadline }: Window, at: number): number {
  const [from, to] = [Date.parse(opening), Date.parse(deadline)];
  return Math.min(1, Math.max(0, (at - from) / Math.max(to - from, 1)));
}
