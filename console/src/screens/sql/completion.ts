// What may stand at a place of a question: outputs, and the columns of those that the question names.

import type { Column } from "../../grid/cutter";
import { quoted } from "./outputs.svelte";

/** What is asked for names. */
export interface Source {
  readonly all: { table: string; kind: string }[];
  get(table: string): { table: string } | undefined;
  columns(table: string, signal?: AbortSignal): Promise<Column[]>;
}

/** A proposal. */
export interface Entry {
  sort: "table" | "column";
  label: string;
  detail: string;
  /** What is written, in quotes where they are needed. */
  insert: string;
}

/** Outputs whose columns are asked for at once, and entries of one list. */
const MOST_NAMED = 8;
const MOST = 2_000;
/** Characters before a place in which its word is looked for. */
const LONGEST_NAME = 300;
/** The longest text that is looked through for names. */
const LONGEST = 64_000;

const NAME = String.raw`(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_]*)`;
const bare = (name: string) => (name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name);

/** Takes comments and texts out, so that no name is found in them; nothing moves. */
function stripped(text: string): string {
  return text.replace(/'(?:[^']|'')*'?|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/g, (piece) => " ".repeat(piece.length));
}

/** The outputs that a question names, by the words that stand for them. */
export function named(text: string, outputs: Pick<Source, "get">): Map<string, string> {
  const found = new Map<string, string>();
  const words = new RegExp(String.raw`\b(?:from|join|describe|summarize|show)\s+(${NAME})(?:\s+(?:as\s+)?(${NAME}))?|,\s*(${NAME})(?:\s+(?:as\s+)?(${NAME}))?`, "giu");
  for (const [, one, alias, other, its] of stripped(text.slice(0, LONGEST)).matchAll(words)) {
    const table = outputs.get(bare(one ?? other ?? ""))?.table;
    if (table === undefined || found.size >= MOST_NAMED) continue;
    found.set(table.toLowerCase(), table);
    const short = alias ?? its;
    if (short && !STOPS.has(short.toLowerCase())) found.set(bare(short).toLowerCase(), table);
  }
  return found;
}
const STOPS = new Set("where group order limit join left right inner full cross on using having union except intersect qualify window natural asof positional semi anti sample offset and".split(" "));

/** Returns what may stand at a place, and where it begins; none where nothing was begun and nothing asked for. */
export async function completionsAt(text: string, at: number, isAsked: boolean, outputs: Source, signal: AbortSignal): Promise<{ from: number; entries: Entry[] } | undefined> {
  // The statement alone in which the place is.
  const whole = stripped(text);
  if (at > 0 && text[at - 1] !== whole[at - 1]) return undefined;
  const begins = whole.lastIndexOf(";", at - 1) + 1;
  const end = whole.indexOf(";", at);
  const statement = text.slice(begins, end < 0 ? undefined : end);
  const before = whole.slice(Math.max(begins, at - LONGEST_NAME), at);
  const typed = /"?[\p{L}\p{N}_]*$/u.exec(before)?.[0] ?? "";
  const from = at - typed.length;
  const of = new RegExp(String.raw`(${NAME})\.$`, "u").exec(before.slice(0, before.length - typed.length))?.[1];
  if (typed === "" && !of && !isAsked) return undefined;
  const names = named(statement, outputs);
  if (of) {
    const table = names.get(bare(of).toLowerCase()) ?? outputs.get(bare(of))?.table;
    return table === undefined ? undefined : { from, entries: columnsOf(await outputs.columns(table, signal), table) };
  }
  const tables = outputs.all.slice(0, MOST).map(({ table, kind }): Entry => ({ sort: "table", label: table, detail: kind.replaceAll("_", " "), insert: quoted(table) }));
  if (/\b(from|join|describe|summarize|show)\s+$/i.test(before.slice(0, before.length - typed.length))) return { from, entries: tables };
  const columns = await Promise.all([...new Set(names.values())].map(async (table) => columnsOf(await outputs.columns(table, signal), table)));
  return { from, entries: [...columns.flat(), ...tables].slice(0, MOST) };
}

function columnsOf(columns: Column[], table: string): Entry[] {
  return columns.slice(0, MOST).map(({ name, type }) => ({ sort: "column", label: name, detail: `${type.slice(0, 60).toLowerCase()} · ${table}`, insert: quoted(name) }));
}
