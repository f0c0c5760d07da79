// Values of cells by the types of their columns: as exact texts, and in order. No number is rounded.

import { cut, visible } from "../parts/text";
import type { Column } from "./cutter";

/** The sort of a column, by which its values are shown and compared. */
export type Sort = "number" | "time" | "truth" | "nested" | "text";

const NUMBER = /^(U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)|FLOAT|DOUBLE|REAL|DECIMAL(\(.*\))?)$/;
const TIME = /^(DATE|TIME|TIMESTAMP)(?![A-Z])/;

/** Returns the sort of a column. */
export function sortOf({ type }: Column): Sort {
  const name = type.toUpperCase();
  if (/\]$|^(STRUCT|MAP|UNION|LIST)\b/.test(name)) return "nested";
  if (NUMBER.test(name)) return "number";
  if (TIME.test(name)) return "time";
  return name === "BOOLEAN" ? "truth" : "text";
}

/** The text of a value, whole; that of NULL is empty. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  return typeof value === "object" ? JSON.stringify(value, (_, one: unknown) => (Object.is(one, -0) ? "-0" : one)) : String(value);
}

/** The characters of a cell that are drawn. */
const DRAWN = 256;

/** The text of a value as one line of a cell. */
export function lineOf(value: unknown): string {
  const text = typeof value === "object" && value !== null ? beginning(value) : textOf(value);
  const shown = visible(cut(text, DRAWN)).replaceAll("\n", "↵").replaceAll("\t", "→");
  return text.length > DRAWN ? `${shown}…` : shown;
}

/** The beginning of a nested value: nobody writes ten megabytes to draw a line of them. */
function beginning(value: object): string {
  let text = "";
  const write = (one: unknown): void => {
    if (text.length > DRAWN) return;
    if (typeof one !== "object" || one === null) {
      text += typeof one === "string" ? JSON.stringify(cut(one, DRAWN + 1)) : one === null ? "null" : textOf(one);
      return;
    }
    const isList = Array.isArray(one);
    text += isList ? "[" : "{";
    // A list of a million has no need of a million keys.
    const keys = isList ? undefined : Object.keys(one);
    const length = keys?.length ?? (one as unknown[]).length;
    for (let place = 0; place < length && text.length <= DRAWN; place++) {
      if (place > 0) text += ", ";
      const key = keys?.[place];
      if (key !== undefined) text += `${key}: `;
      write(key === undefined ? (one as unknown[])[place] : (one as Record<string, unknown>)[key]);
    }
    text += isList ? "]" : "}";
  };
  write(value);
  return text;
}

/** True if a cell draws less than it holds. */
export function isLong(value: unknown): boolean {
  return typeof value === "object" ? value !== null : typeof value === "string" && (value.length > 60 || value.includes("\n"));
}

/** Compares two values of a column; NULL is behind all others. */
export function compare(sort: Sort): (a: unknown, b: unknown) => number {
  const by = sort === "number" ? numbers : sort === "time" ? times : texts;
  return (a, b) => (a === null || b === null ? (a === null ? 1 : 0) - (b === null ? 1 : 0) : by(a, b));
}

function texts(a: unknown, b: unknown): number {
  const [one, other] = [textOf(a), textOf(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** The nearest number that a browser has for a value. */
export function near(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === null || value === undefined || value === "") return NaN;
  const text = String(value);
  return /^-?inf/i.test(text) ? (text.startsWith("-") ? -Infinity : Infinity) : Number(text);
}

function numbers(a: unknown, b: unknown): number {
  const [one, other] = [near(a), near(b)];
  // As in the engine, what is no number is above all that are.
  if (Number.isNaN(one) || Number.isNaN(other)) return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
  if (one !== other) return one < other ? -1 : 1;
  return typeof a === "string" || typeof b === "string" ? digits(textOf(a), textOf(b)) : 0;
}

/** Compares numbers by all of their digits. */
function digits(a: string, b: string): number {
  const part = /^(-?)0*(\d*)(?:\.(\d*))?$/;
  const [one, other] = [part.exec(a), part.exec(b)];
  if (!one || !other) return 0;
  const sign = one[1] === "-" ? -1 : 1;
  const [left, right] = [one[2]!, other[2]!];
  if (left.length !== right.length) return (left.length - right.length) * sign;
  const length = Math.max(one[3]?.length ?? 0, other[3]?.length ?? 0);
  const [whole, its] = [left + (one[3] ?? "").padEnd(length, "0"), right + (other[3] ?? "").padEnd(length, "0")];
  return (whole < its ? -1 : whole > its ? 1 : 0) * sign;
}

const MOMENT = /^(\d+)-(\d\d-\d\d)( \(BC\))?(?: (.*))?$/;

/** The year of a moment, which for one before Christ is not above 0, and the rest, which sorts as text. */
function moment(value: unknown): [number, string] {
  const text = textOf(value);
  if (text === "infinity" || text === "-infinity") return [text === "infinity" ? Infinity : -Infinity, ""];
  const found = MOMENT.exec(text);
  if (!found) return [0, text.replace(/(Z|[+-]\d\d(:\d\d)*)$/, "")];
  const year = Number(found[1]);
  return [found[3] ? 1 - year : year, `${found[2]} ${(found[4] ?? "").replace(/(Z|[+-]\d\d(:\d\d)*)$/, "")}`];
}

function times(a: unknown, b: unknown): number {
  const [[year, rest], [other, its]] = [moment(a), moment(b)];
  return year !== other ? year - other : rest < its ? -1 : rest > its ? 1 : 0;
}

/** The milliseconds of a moment since 1970, as if it were in UTC; none for what a browser has no number for. */
export function instant(value: unknown): number | null {
  const text = textOf(value);
  const found = /^(\d+)-(\d\d)-(\d\d)( \(BC\))?(?:[ T](\d\d):(\d\d):(\d\d(?:\.\d+)?))?/.exec(text);
  if (!found) return null;
  const year = found[4] ? 1 - Number(found[1]) : Number(found[1]);
  const day = new Date(0).setUTCFullYear(year, Number(found[2]) - 1, Number(found[3]));
  return Number.isFinite(day) ? day + ((Number(found[5] ?? 0) * 60 + Number(found[6] ?? 0)) * 60 + Number(found[7] ?? 0)) * 1_000 : null;
}
