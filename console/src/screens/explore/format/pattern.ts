// Patterns of d3-format: `[[fill]align][sign][symbol][0][width][,][.precision][~][type]`.

import { Digits, fixed } from "./digits";

/** The largest width and precision of a pattern. */
const MOST = 100;
const FORM = /^(?:(.)?([<>^=]))?([-+ (])?([$#])?(0)?(\d+)?(,)?(?:\.(\d+))?(~)?([efgnrs%pdboxX])?$/su;
const PREFIXES = ["y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y"];
const BASES: Record<string, [number, string]> = { b: [2, "0b"], o: [8, "0o"], x: [16, "0x"], X: [16, "0x"] };
const MINUS = "\u2212";
/** The largest integer that is written in another base. */
const LARGEST = (1n << 128n) - 1n;

interface Pattern {
  fill: string;
  align: string;
  sign: string;
  symbol: string;
  width: number;
  isGrouped: boolean;
  precision: number | undefined;
  isTrimmed: boolean;
  notation: string;
}

/** Parses a pattern; none for what is no pattern. */
export function d3(text: string): ((number: number) => string) | undefined {
  const found = FORM.exec(text);
  if (!found) return undefined;
  const [, fill, align, sign, symbol, zero, width, comma, precision, tilde, letter] = found;
  if (Number(width ?? 0) > MOST || Number(precision ?? 0) > MOST) return undefined;
  const pattern: Pattern = {
    fill: zero ? "0" : (fill ?? " "),
    align: zero ? "=" : (align ?? ">"),
    sign: sign ?? "-",
    symbol: symbol ?? "",
    width: Number(width ?? 0),
    isGrouped: comma !== undefined || letter === "n",
    precision: precision === undefined ? undefined : Number(precision),
    isTrimmed: tilde !== undefined,
    notation: letter === "n" ? "g" : (letter ?? ""),
  };
  return (number) => write(pattern, number);
}

function write(pattern: Pattern, number: number): string {
  const { notation, sign, symbol } = pattern;
  const [digits, suffix] = Number.isFinite(number) ? body(pattern, number) : ["Infinity", ""];
  const isZero = !/[1-9a-z]/i.test(digits);
  // A number that is rounded to zero has no minus.
  const isNegative = (number < 0 || Object.is(number, -0)) && !(isZero && sign !== "+");
  let before = isNegative ? (sign === "(" ? "(" : MINUS) : sign === "+" || sign === " " ? sign : "";
  let after = suffix;
  if (symbol === "$") before += "$";
  else if (symbol === "#") before += BASES[notation]?.[1] ?? "";
  if (notation === "%" || notation === "p") after += "%";
  if (isNegative && sign === "(") after += ")";
  const end = digits.search(/\D/);
  const whole = end < 0 ? digits : digits.slice(0, end);
  const rest = end < 0 ? "" : digits.slice(end);
  const outside = [before, rest, after].reduce((sum, text) => sum + [...text].length, 0);
  const isGrouped = pattern.isGrouped && Number.isFinite(number);
  const isPadded = pattern.isGrouped && pattern.fill === "0" && pattern.align === "=";
  const shown = !isGrouped ? whole : isPadded ? padded(whole, pattern.width - outside) : grouped(whole);
  return aligned(pattern, before, shown + rest, after);
}

/** Returns the digits of the absolute value, and the suffix of the notation. */
function body(pattern: Pattern, number: number): [string, string] {
  const precision = pattern.precision ?? 6;
  const [digits, suffix] = ((): [string, string] => {
    switch (pattern.notation) {
      case "e":
        return [Digits.significant(number, precision + 1).scientific(), ""];
      case "f":
        return [fixed(number, precision), ""];
      case "g":
        return [general(number, precision), ""];
      case "r":
        return [Digits.significant(number, precision).plain(), ""];
      case "s":
        return prefixed(number, precision);
      case "%":
        return [fixed(number * 100, precision), ""];
      case "p":
        return [Digits.significant(number * 100, precision).plain(), ""];
      case "d":
        return [fixed(number, 0), ""];
      case "":
        return [trimmed(general(number, pattern.precision ?? 12)), ""];
      default:
        return [inBase(number, pattern.notation), ""];
    }
  })();
  return [pattern.isTrimmed ? trimmed(digits) : digits, suffix];
}

/** Formats significant digits, with an exponent for very large and very small numbers. */
function general(number: number, precision: number): string {
  const digits = Digits.significant(number, precision);
  return digits.exponent < -6 || digits.exponent >= Math.max(precision, 1) ? digits.scientific() : digits.plain();
}

function prefixed(number: number, precision: number): [string, string] {
  const digits = Digits.significant(number, precision);
  const exponent = number === 0 ? 0 : digits.exponent;
  const step = Math.min(Math.max(Math.floor(exponent / 3), -8), 8);
  return [new Digits(digits.digits, digits.exponent - step * 3).plain(), PREFIXES[step + 8] ?? ""];
}

function inBase(number: number, notation: string): string {
  const whole = BigInt(Math.round(Math.abs(number)));
  const text = (whole > LARGEST ? LARGEST : whole).toString(BASES[notation]?.[0] ?? 10);
  return notation === "X" ? text.toUpperCase() : text;
}

/** Removes the zeros at the end of a fraction. */
function trimmed(digits: string): string {
  const [mantissa = "", exponent] = digits.split("e");
  if (!mantissa.includes(".")) return digits;
  const short = mantissa.replace(/0+$/, "").replace(/\.$/, "");
  return exponent === undefined ? short : `${short}e${exponent}`;
}

function grouped(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Adds zeros in front until the grouped digits reach a width. */
function padded(digits: string, width: number): string {
  let text = digits;
  while (grouped(text).length < width) text = `0${text}`;
  return grouped(text);
}

function aligned({ align, fill, width }: Pattern, before: string, digits: string, after: string): string {
  const text = before + digits + after;
  const missing = Math.max(width - [...text].length, 0);
  if (align === "<") return text + fill.repeat(missing);
  if (align === "^") return fill.repeat(Math.floor(missing / 2)) + text + fill.repeat(Math.ceil(missing / 2));
  return align === "=" ? before + fill.repeat(missing) + digits + after : fill.repeat(missing) + text;
}
