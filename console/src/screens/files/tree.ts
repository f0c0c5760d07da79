// Files by folder, as rows: folded ones have one row, so that large projects stay small on the page.

/** How bad something is, the worst last. */
export const GRADES = ["hint", "warning", "error"] as const;
export type Grade = (typeof GRADES)[number];

/** A row of the tree. */
export interface Row {
  path: string;
  name: string;
  depth: number;
  /** The number of files below; none for a file. */
  files: number | undefined;
  isOpen: boolean;
  /** The worst that is known of it, or of anything below. */
  worst: Grade | undefined;
}

/** The number of files from which folders are folded at first. */
export const MANY = 100;

interface Folder {
  folders: Map<string, Folder>;
  files: string[];
  count: number;
  worst: Grade | undefined;
}

export const worse = (a: Grade | undefined, b: Grade | undefined): Grade | undefined => ((a ? GRADES.indexOf(a) : -1) >= (b ? GRADES.indexOf(b) : -1) ? a : b);

/** Returns the folders above a file. */
export function above(path: string): string[] {
  const parts = path.split("/").slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** Returns the rows that are to be drawn. A filter shows what it finds, whatever is folded. */
export function rowsOf(paths: string[], grades: Map<string, Grade>, typed: string, isOpen: (folder: string) => boolean): Row[] {
  const wanted = typed.trim().toLowerCase();
  const root: Folder = { folders: new Map(), files: [], count: 0, worst: undefined };
  for (const path of paths) {
    if (wanted !== "" && !path.toLowerCase().includes(wanted)) continue;
    const worst = grades.get(path);
    let at = root;
    for (const part of path.split("/").slice(0, -1)) {
      let next = at.folders.get(part);
      if (!next) at.folders.set(part, (next = { folders: new Map(), files: [], count: 0, worst: undefined }));
      at = next;
      at.count += 1;
      at.worst = worse(at.worst, worst);
    }
    at.files.push(path);
  }
  const rows: Row[] = [];
  const add = (folder: Folder, prefix: string, depth: number) => {
    for (const [name, inner] of [...folder.folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const path = prefix + name;
      const opens = wanted !== "" || isOpen(path);
      rows.push({ path, name, depth, files: inner.count, isOpen: opens, worst: inner.worst });
      if (opens) add(inner, `${path}/`, depth + 1);
    }
    for (const path of folder.files.sort()) rows.push({ path, name: path.slice(prefix.length), depth, files: undefined, isOpen: false, worst: grades.get(path) });
  };
  add(root, "", 0);
  return rows;
}
