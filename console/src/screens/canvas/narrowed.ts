// The filter of a component's own: `dimension_filters: device IN ('Phone') AND origin NIN ('JFK', 'LGA')`.

import { visible } from "../../parts/text";
import { both, type Condition } from "../explore/questions";
import type { Component } from "./document";

/** The longest filter that is read, and how deep its brackets may lie. */
const [LONGEST, DEEPEST] = [16_384, 40];
const WORDS = /\s*(?:'((?:[^'\\]|\\.|'')*)'|"((?:[^"\\]|\\.)*)"|(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([a-z_]\w*)|(!=|<>|>=|<=|[=<>(),]))/giy;
const SIGNS: Record<string, string> = { "=": "eq", "!=": "neq", "<>": "neq", ">": "gt", ">=": "gte", "<": "lt", "<=": "lte" };
const LISTS: Record<string, string> = { IN: "in", NIN: "nin" };
const PATTERNS: Record<string, string> = { LIKE: "ilike", ILIKE: "ilike", NLIKE: "nilike", NILIKE: "nilike" };

type Word = { sort: "text" | "name" | "word" | "sign"; text: string } | { sort: "number"; text: string; value: number };

function wordsOf(text: string): Word[] | undefined {
  const all: Word[] = [];
  const { length } = text.trimEnd();
  WORDS.lastIndex = 0;
  while (WORDS.lastIndex < length) {
    const [, quoted, named, number, word, sign] = WORDS.exec(text) ?? [];
    if (quoted !== undefined) all.push({ sort: "text", text: quoted.replace(/\\(.)|''/gs, (_, one?: string) => one ?? "'") });
    else if (named !== undefined) all.push({ sort: "name", text: named.replace(/\\(.)/gs, "$1") });
    else if (number !== undefined) all.push({ sort: "number", text: number, value: Number(number) });
    else if (word !== undefined) all.push({ sort: "word", text: word });
    else if (sign !== undefined) all.push({ sort: "sign", text: sign });
    else return undefined;
  }
  return all;
}

/** Reads a filter; none where it can't be read as a whole. */
export function conditionIn(text: string): Condition | undefined {
  const words = text.length > LONGEST ? undefined : wordsOf(text);
  if (!words) return undefined;
  let at = 0;
  const next = () => words[at++];
  const is = (text: string) => words[at]?.text.toUpperCase() === text && ["word", "sign"].includes(words[at]!.sort);
  const take = (text: string) => is(text) && (at++, true);
  const fail = (): never => {
    throw new SyntaxError(text);
  };
  const cond = (op: string, ...exprs: Condition[]): Condition => ({ cond: { op, exprs } });
  const valueOf = (): unknown => {
    const word = next();
    if (word?.sort === "number") return word.value;
    if (word?.sort === "text") return word.text;
    const known: Record<string, unknown> = { TRUE: true, FALSE: false, NULL: null };
    const key = word?.sort === "word" ? word.text.toUpperCase() : "";
    return Object.hasOwn(known, key) ? known[key] : fail();
  };
  const one = (depth: number): Condition => {
    if (depth > DEEPEST) return fail();
    if (take("(")) {
      const inner = either(depth + 1);
      return take(")") ? inner : fail();
    }
    const field = next();
    if (!field || (field.sort !== "word" && field.sort !== "name")) return fail();
    const name = { name: field.text };
    const isNot = take("NOT");
    const word = next()?.text.toUpperCase() ?? "";
    if (Object.hasOwn(LISTS, word)) {
      if (!take("(")) return fail();
      const values = [valueOf()];
      while (take(",")) values.push(valueOf());
      return take(")") ? cond(isNot ? "nin" : LISTS[word]!, name, { val: values }) : fail();
    }
    if (Object.hasOwn(PATTERNS, word)) return cond(isNot ? "nilike" : PATTERNS[word]!, name, { val: valueOf() });
    return !isNot && Object.hasOwn(SIGNS, word) ? cond(SIGNS[word]!, name, { val: valueOf() }) : fail();
  };
  const several = (op: "AND" | "OR", part: (depth: number) => Condition) => (depth: number): Condition => {
    const all = [part(depth)];
    while (take(op)) all.push(part(depth));
    return all.length > 1 ? cond(op.toLowerCase(), ...all) : all[0]!;
  };
  const either = several("OR", several("AND", one));
  try {
    const found = either(0);
    return at === words.length ? found : undefined;
  } catch {
    return undefined;
  }
}

const isOwn = ({ renderer }: Pick<Component, "renderer">): boolean => renderer === "vega_lite" || renderer === "custom_chart";

/** The filters that a component has for itself, as they are written: that of its time filters (`f=`) too. */
function textsOf({ properties: { dimension_filters: text, time_filters: words } }: Pick<Component, "properties">): string[] {
  const said = typeof words === "string" ? new URLSearchParams(words.trim()).getAll("f") : [];
  return [...(typeof text === "string" ? [text] : []), ...said].map((one) => one.trim()).filter(Boolean);
}

/** Lays a component's own filters over its queries. Those that an author wrote in SQL have their conditions there. */
export function narrowed<Of extends Pick<Component, "renderer" | "properties" | "queries">>(component: Of): Of {
  const all = isOwn(component) ? [] : textsOf(component).flatMap((text) => conditionIn(text) ?? []);
  if (all.length === 0) return component;
  return { ...component, queries: component.queries.map((query) => ({ ...query, where: all.reduce((where, one) => both(where, one)!, query.where)! })) };
}

/** What a component's own filters come to, for people: those that narrow it, and those that have no effect. */
export function filtersOf(component: Pick<Component, "renderer" | "properties">): { kept: string[]; left: string[] } {
  const isKept = (text: string) => !isOwn(component) && conditionIn(text) !== undefined;
  const all = textsOf(component);
  return { kept: all.filter(isKept).map(visible), left: all.filter((text) => !isKept(text)).map(visible) };
}
