// Colours of SQL and YAML: enough to read by. Lines are cut into pieces of one sort each, and nothing is lost.

/** The sort of a piece, which is also its class. */
export type Sort = "comment" | "text" | "number" | "keyword" | "key" | "template" | "plain";

/** A piece of a line. */
export interface Piece {
  sort: Sort;
  text: string;
}

/** Words of the engine's SQL. */
export const KEYWORDS = new Set(
  (
    "all and any as asc between by case cast create cross cube current desc distinct else end except exclude exists extract false " +
    "fetch filter first following for from full group grouping having if ilike in inner insert intersect interval into is join " +
    "lateral left like limit natural not null nulls offset on or order outer over partition pivot positional preceding qualify " +
    "range recursive replace right rollup row rows sample select semi set sets similar struct table then true unbounded union " +
    "unnest unpivot using values when where window with within"
  ).split(" "),
);

const SQL =
  /(?<comment>--.*|\/\*.*?(?:\*\/|$))|(?<template>\{\{.*?\}\}|\{%.*?%\})|(?<text>'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$))|(?<number>\b\d[\d_]*(?:\.\d+)?\b)|(?<word>[A-Za-z_]\w*)/g;

const YAML =
  /(?<comment>(?<=^|\s)#.*)|(?<template>\{\{.*?\}\})|(?<key>(?<=^\s*(?:- )?|[{,]\s*)[\w./-]+(?=:(?:\s|$)))|(?<text>'(?:[^']|'')*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$))|(?<number>(?<=[\s[,:])-?\d[\d_]*(?:\.\d+)?(?=$|[\s,\]}]))|(?<keyword>(?<=[:,[]\s)(?:true|false|null)(?=$|[\s,\]}]))/g;

/** The longest line that is coloured: longer ones are data. */
const LONGEST = 2_000;

/** Cuts a text into lines of pieces. `path` says by its ending which language it is. */
export function highlight(text: string, path: string): Piece[][] {
  const isSql = path.endsWith(".sql");
  const isYaml = /\.ya?ml$/.test(path);
  let isInComment = false;
  return text.split("\n").map((line) => {
    if ((!isSql && !isYaml) || line.length > LONGEST) return [{ sort: "plain", text: line }];
    if (!isSql) return cutLine(line, YAML);
    const pieces: Piece[] = [];
    let rest = line;
    if (isInComment) {
      const end = rest.indexOf("*/");
      const comment = end < 0 ? rest : rest.slice(0, end + 2);
      pieces.push({ sort: "comment", text: comment });
      rest = rest.slice(comment.length);
      isInComment = end < 0;
    }
    pieces.push(...cutLine(rest, SQL));
    const last = pieces.at(-1);
    if (last?.sort === "comment" && last.text.startsWith("/*") && !last.text.endsWith("*/")) isInComment = true;
    return pieces;
  });
}

function cutLine(line: string, words: RegExp): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  const push = (sort: Sort, text: string) => {
    const last = pieces.at(-1);
    if (last?.sort === sort) last.text += text;
    else if (text !== "") pieces.push({ sort, text });
  };
  for (const found of line.matchAll(words)) {
    push("plain", line.slice(from, found.index));
    push(sortOf(found), found[0]);
    from = found.index + found[0].length;
  }
  push("plain", line.slice(from));
  return pieces;
}

function sortOf(found: RegExpExecArray): Sort {
  const [sort] = Object.entries(found.groups ?? {}).find(([, text]) => text !== undefined) ?? ["plain"];
  if (sort !== "word") return sort as Sort;
  return KEYWORDS.has(found[0].toLowerCase()) ? "keyword" : "plain";
}
