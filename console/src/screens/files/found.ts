// What is known to be wrong: what the language server says of the texts here, and what the last runs have found.

import type { Finding } from "../../editor/language.svelte";
import type { ResourceDocument } from "../../store/listing";
import { worse, type Grade } from "./tree";

type ByPath = ReadonlyMap<string, Finding[]>;

/** Returns what the last runs have found, by path. */
export function ranOf(resources: ResourceDocument[]): ByPath {
  const found = new Map<string, Finding[]>();
  for (const { error, paths } of resources) {
    const path = error?.at?.path ?? paths[0];
    if (!error || path === undefined) continue;
    const message = error.hint ? `${error.message} — ${error.hint}` : error.message;
    const one: Finding = { path, line: error.at?.line ?? 1, column: error.at?.column ?? 1, severity: "error", code: error.code, message, isOfRun: true };
    found.set(path, [...(found.get(path) ?? []), one]);
  }
  return found;
}

/** Returns the worst that is known of each file. */
export function gradesOf(told: ByPath | undefined, ran: ByPath): Map<string, Grade> {
  const found = new Map<string, Grade>();
  for (const [path, findings] of [...(told ?? []), ...ran]) {
    for (const { severity } of findings) found.set(path, worse(found.get(path), severity === "info" ? "hint" : severity)!);
  }
  return found;
}

/** Returns all that is wrong in one file. What the server says already is not said again for the last run. */
export function together(told: Finding[], ran: Finding[]): Finding[] {
  const isTold = (one: Finding) => told.some(({ code, line }) => code === one.code && line === one.line);
  return [...told, ...ran.filter((one) => !isTold(one))];
}
