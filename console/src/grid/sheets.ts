// Texts for programs of sheets, which run what begins like a formula: such a cell gets an apostrophe in front. Numbers don't.

import type { Column } from "./cutter";
import { textOf } from "./values";

/** Marks with which a cell is a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;
const NUMBER = /^[+-]?(\d[\d.]*(e[+-]?\d+)?|inf|infinity|nan)$/i;
/** Digits of the longest number; what is longer is none. */
const LONGEST = 400;

/** Makes a text harmless to programs of sheets. */
export function harmless(text: string): string {
  return FORMULA.test(text) && !(text.length <= LONGEST && NUMBER.test(text)) ? `'${text}` : text;
}

/** A cell of CSV. NULL is an empty field, and the empty text one in quotes. */
export function csvCell(value: unknown): string {
  if (value === null || value === undefined) return "";
  const text = harmless(textOf(value));
  return text === "" || /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A line of CSV. */
export function csvLine(values: unknown[]): string {
  return `${values.map(csvCell).join(",")}\r\n`;
}

export const csvHead = (columns: Column[]) => csvLine(columns.map(({ name }) => name));

/** Cells for the clipboard: with tabs between them, and quotes where a cell has marks of its own. */
export function tabbed(rows: unknown[][]): string {
  const cell = (value: unknown) => {
    const text = harmless(textOf(value));
    return /["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join("\t")).join("\r\n");
}

/** Makes CSV harmless while it passes, cell by cell. */
export class Harmless {
  private held = "";
  private isQuoted = false;
  /** How far the held cell was looked at. */
  private looked = 0;

  /** Takes the next text, and returns that of all cells which are whole. */
  push(text: string): string {
    const all = this.held + text;
    let [out, from] = ["", 0];
    for (let at = this.looked; at < all.length; at++) {
      const mark = all.charCodeAt(at);
      if (mark === 0x22) this.isQuoted = !this.isQuoted;
      else if (!this.isQuoted && (mark === 0x2c || mark === 0x0a)) {
        out += passed(all.slice(from, at)) + all[at];
        from = at + 1;
      }
    }
    this.held = all.slice(from);
    this.looked = this.held.length;
    return out;
  }

  /** Returns the last cell. */
  end(): string {
    return passed(this.held);
  }
}

/** A cell as it stands in CSV, made harmless. */
function passed(raw: string): string {
  const isQuoted = raw.startsWith('"');
  const first = raw.charCodeAt(isQuoted ? 1 : 0);
  // Nearly all cells begin with none of the marks.
  if (first !== 0x3d && first !== 0x2b && first !== 0x2d && first !== 0x40 && first !== 0x09 && first !== 0x0d && first !== 0x0a) return raw;
  // A line end of two marks leaves its first one to the last cell of a line.
  if (!isQuoted && raw === "\r") return raw;
  const end = !isQuoted && raw.endsWith("\r") ? "\r" : "";
  const text = isQuoted ? raw.slice(1, -1) : raw.slice(0, raw.length - end.length);
  if (harmless(text) === text) return raw;
  return isQuoted ? `"'${raw.slice(1)}` : `"'${text}"${end}`;
}
