// Formats that the project format names as presets.

import { Digits, fixed } from "./digits";

const LETTERS = ["", "k", "M", "B", "T"];
/** Lengths of units in milliseconds, the largest first. */
const UNITS: [number, string][] = [
  [31_557_600_000, "y"],
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];
/** Shares below this one stand for none: sums of floating-point numbers that should be equal differ by so much. */
const ROUNDING = 1e-12;

/** Presets by name; each formats the absolute value of a finite number. */
const PRESETS: Record<string, (number: number) => string> = {
  none: (number) => Digits.shortest(number).plain(),
  humanize: (number) => scaled(number),
  currency_usd: (number) => `$${money(number)}`,
  currency_eur: (number) => `€${money(number)}`,
  percentage: (number) => `${scaled(number * 100)}%`,
  interval_ms: milliseconds,
};

/** Finds a preset by its name; none if there is no such preset. */
export function preset(name: string): ((number: number) => string) | undefined {
  const known = Object.keys(PRESETS).find((key) => key === name.toLowerCase());
  const write = known === undefined ? undefined : PRESETS[known];
  if (!write) return undefined;
  return (exact) => {
    const number = known === "percentage" && Math.abs(exact) < ROUNDING ? 0 : exact;
    return `${number < 0 ? "-" : ""}${Number.isFinite(number) ? write(number) : "∞"}`;
  };
}

/** Formats an amount of money with cents below 1000, and with a letter from there on. */
function money(number: number): string {
  return Math.abs(number) < 999.995 ? fixed(number, 2) : scaled(number);
}

/** Formats by the power of 1000 that leaves less than 1000 after rounding. */
function scaled(number: number): string {
  let left = Math.abs(number);
  for (const [place, letter] of LETTERS.entries()) {
    const text = fixed(left, 1);
    if (place === LETTERS.length - 1 || Number(text) < 1_000) return small(left, text) + letter;
    left /= 1_000;
  }
  return "";
}

/** Returns a rounded text without zeros at its end. A number that would round to zero keeps its first two digits. */
function small(number: number, rounded: string): string {
  if (Number(rounded) === 0 && number > 0) {
    const digits = Digits.significant(number, 2);
    return digits.exponent < -6 ? digits.scientific() : digits.plain().replace(/0+$/, "");
  }
  return rounded.includes(".") ? rounded.replace(/0+$/, "").replace(/\.$/, "") : rounded;
}

function milliseconds(number: number): string {
  const value = Math.abs(number);
  const [length, name] = UNITS.find(([length]) => value >= length) ?? [1, "ms"];
  const count = value / length;
  return `${small(count, fixed(count, 1))} ${name}`;
}
