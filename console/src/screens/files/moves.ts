// What is done to files as a whole.

import type { FileEntry } from "./desk.svelte";

/** Something that a person is asked about. */
export type Move =
  | { what: "new"; from: string }
  | { what: "rename" | "delete"; from: string; isFolder: boolean; entries: FileEntry[] };

/** The new path of a file when what stands before it, or all of it, is called otherwise. */
export const moved = (path: string, from: string, to: string): string => to + path.slice(from.length);
