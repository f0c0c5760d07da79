// Operations that hints name, as things that can be done on a page.

import type { Schemas } from "../api";
import { homePage, resourcePage } from "../links";
import type { Project } from "./context";
import { VERBS, type VerbName } from "./words";

/** Something that a person may do about a problem: go somewhere, or ask for something. */
export interface Remedy {
  label: string;
  href?: string;
  act?: () => void;
}

const isVerb = (name: string): name is VerbName => Object.hasOwn(VERBS, name);

/** Operations that a resource's page shows by itself. */
const SHOWN = new Set(["show", "explain", "logs", "history", "partitions", "graph", "test"]);

/** An operation of a hint: as the service says it, or read from the words of one that comes without. */
export interface Proposal {
  operation: string;
  resource?: Schemas["ResourceName"] | null;
  arguments: Record<string, unknown>;
}

/** Reads an operation from the words of a hint. */
export function proposal(operation: string, words: string[]): Proposal {
  const named: Record<string, unknown> = {};
  for (const word of words) {
    if (word.startsWith("--")) named[word.slice(2)] = true;
    else if (!/^[A-Z_]+$/.test(word)) named.name ??= word;
  }
  return { operation, arguments: named };
}

/** Returns what an operation comes to here; none if it is nothing for a page, or not for the one who looks. */
export function remedyFor(project: Project, { operation, resource, arguments: said }: Proposal): Remedy | undefined {
  const name = typeof said.name === "string" ? said.name : undefined;
  const target = resource ?? (name === undefined ? undefined : find(project, name));
  if (SHOWN.has(operation) && target) return { label: `Show ${target.name}`, href: resourcePage(target) };
  if (operation === "status") return { label: "Show all resources", href: homePage() };
  if (!project.may("operate")) return undefined;
  // An approval is given where its plan is read.
  if (operation === "approve" && target) return { label: `Read what approving ${target.name} does`, href: resourcePage(target) };
  if (operation === "run" && !target) return { label: "Run the project", act: () => void project.actions.run() };
  const selector = target ? `${target.kind}/${target.name}` : name;
  if (!isVerb(operation) || selector === undefined) return undefined;
  const options = ["full", "downstream", "errored"].filter((option) => said[option] === true);
  const form = Object.fromEntries(options.map((option) => [option, true]));
  // What forgets something is asked about first.
  const isHarmless = !form.full;
  const act = () =>
    void (target && isHarmless
      ? project.actions.act(operation, target, form)
      : project.actions.ask(operation, [selector], form, form.full ? { loses: LOSES_STATE } : {}));
  return { label: `${VERBS[operation].button} ${target?.name ?? selector}`, act };
}

/** What a full refresh costs. */
export const LOSES_STATE = "What was built bit by bit is forgotten: rows that the sources have no more are gone.";

/** Finds the resource of a name, with or without its kind. */
function find(project: Project, word: string): Schemas["ResourceName"] | undefined {
  const [kind, ...rest] = word.split("/");
  const name = rest.join("/");
  const isIt = (one: Schemas["ResourceName"]) => (name === "" ? one.name === word : one.kind === kind && one.name === name);
  const found = project.store.resources.filter(isIt);
  return found.length === 1 ? found[0] : undefined;
}
