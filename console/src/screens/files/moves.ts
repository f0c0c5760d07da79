// What is done to files as a whole.

import { made, type ProblemDocument } from "../../api";
import type { FileEntry } from "./desk.svelte";

/** Something that a person is asked about. */
export type Move =
  | { what: "new"; from: string }
  | { what: "rename" | "delete"; from: string; isFolder: boolean; entries: FileEntry[] };

/** The new path of a file when what stands before it, or all of it, is called otherwise. */
export const moved = (path: string, from: string, to: string): string => to + path.slice(from.length);

/** Returns why there can be no file of a path; the service refuses it too, in words that speak of its routes. */
export function refusalOf(to: string): ProblemDocument | undefined {
  if (/\.env(\/|$)/i.test(to)) return made("unknown-name", "Variables are no files of this page, and nobody reads them.", "They are set on the machine, or by the route that replaces them.");
  if (to.split("/").some((part) => ["", ".", ".."].includes(part))) return made("bad-argument", "The path has a part that is empty or leads up.", "Write it from the project's folder, such as models/daily.sql.");
  return undefined;
}
