// Texts of values: numbers by the formats of the view, times by the clock of the zone. They equal those of `watershed metrics`.

import type { Schemas } from "../../../api";
import { Digits } from "./digits";
import { d3 } from "./pattern";
import { preset } from "./preset";
import { GRAINS, timeText, type Grain } from "./time";

export type Column = Schemas["MetricsColumn"];

/** The text that stands for a missing value. */
export const NO_VALUE = "no value";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Reads a number of a document, in which large ones and decimals are texts; none for all else. */
export function numberOf(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  return typeof value === "string" && NUMBER.test(value) ? Number(value) : undefined;
}

/** Returns the format of a column's values; a missing value is "no value". */
export function formatOf(column: Pick<Column, "format_d3" | "format_preset" | "grain"> & { type?: string }, zone: string): (value: unknown) => string {
  const grain = GRAINS.find((one) => one === column.grain);
  const number = (column.format_d3 ? d3(column.format_d3) : undefined) ?? (column.format_preset ? preset(column.format_preset) : undefined);
  const isDouble = /^(DOUBLE|FLOAT)$/i.test(column.type ?? "");
  return (value) => {
    if (value === null || value === undefined) return NO_VALUE;
    const read = number && numberOf(value);
    if (number && read !== undefined) return Number.isNaN(read) ? "-" : number(read);
    if (!number && grain && typeof value === "string") return timeText(value, zone, grain);
    return typeof value === "number" && isDouble ? double(value) : plain(value);
  };
}

/** Writes a number that need not be whole as the program does: with a point or an exponent. */
function double(value: number): string {
  const digits = Digits.shortest(value);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  if (value !== 0 && (digits.exponent >= 16 || digits.exponent < -5)) return sign + digits.scientific();
  const text = digits.plain();
  return sign + (text.includes(".") ? text : `${text}.0`);
}

/** Returns the text of a value without a format. */
export function plain(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? NO_VALUE);
}

export type { Grain };
