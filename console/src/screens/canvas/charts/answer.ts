// The rows of an answer as charts read them: fields have names of ours in the data, so that no name of a project means anything to Vega.

import type { Schemas } from "../../../api";
import { cut, visible } from "../../../parts/text";
import { formatOf, NO_VALUE, numberOf, type Column } from "../../explore/format";
import { GRAINS, instant, type Grain } from "../../explore/format/time";
import { labelOf } from "../../explore/moments";

export type Answer = Schemas["MetricsDocument"];

/** Why something isn't drawn, in words that its frame shows. */
export class Undrawable extends Error {}

/** The most points, bars or cells that are drawn. */
export const MOST_POINTS = 10_000;
/** The most characters of a value or a title in a chart; the table has all of them. */
const MOST_LETTERS = 60;

/** Words of a project, made short and harmless. Vega keeps words as keys of plain objects, which have names of their own: a space more is seen by nobody. */
export function words(text: string): string {
  const shown = visible(cut(text, MOST_LETTERS)).replaceAll("\n", " ") + (text.length > MOST_LETTERS ? "…" : "");
  return shown in {} ? `${shown} ` : shown;
}

/** A column that a chart draws. */
export interface Field {
  place: number;
  column: Column;
  title: string;
  sort: "time" | "measure" | "words";
  grain: Grain | undefined;
  zone: string;
  /** The text of a value, as the table has it. */
  text: (value: unknown) => string;
}

const TIMES = /^(DATE|TIMESTAMP.*|DATETIME)$/i;

function fieldAt(answer: Answer, place: number): Field {
  const column = answer.columns[place]!;
  const grain = GRAINS.find((one) => one === column.grain);
  const isMeasure = column.role === "measure" || column.role === "computed";
  const sort = isMeasure ? "measure" : grain || TIMES.test(column.type) ? "time" : "words";
  // Days of a calendar have no zone: each is read as its beginning in universal time.
  const isDay = /^DATE$/i.test(column.type);
  const zone = isDay ? "UTC" : answer.time_zone;
  const format = formatOf(column, zone);
  const label = sort === "time" ? labelOf(grain ?? (isDay ? "day" : "second"), zone).long : undefined;
  const text = (value: unknown): string => {
    const at = label && typeof value === "string" ? instant(value) : undefined;
    return words(label && at !== undefined ? label(at) : format(value));
  };
  return { place, column, title: words(column.display_name || column.name), sort, grain, zone, text };
}

/** Finds the column of a field by its name as the settings have it; throws where the answer has none. */
export function fieldOf(answer: Answer, name: string): Field {
  const wanted = name.toLowerCase();
  const by = (key: (column: Column) => string | undefined) => answer.columns.findIndex((column) => key(column)?.toLowerCase() === wanted);
  const found = [by((column) => column.name), by((column) => column.field)].find((place) => place >= 0);
  if (found === undefined) throw new Undrawable(`The answer has no column “${words(name)}”.`);
  return fieldAt(answer, found);
}

/** A number that can be drawn; a missing value is none, never zero. */
export function measured(value: unknown): number | null {
  const number = numberOf(value);
  return number !== undefined && Number.isFinite(number) ? number : null;
}

/** The value of a dimension as one key, whatever its type. */
export const keyOf = (value: unknown): string => (value === undefined ? "null" : JSON.stringify(value));

/** Texts of the values of one dimension: different values have different texts, since scales know them by these alone. */
export class Names {
  private readonly texts = new Map<string, string>();
  private readonly taken = new Set<string>();
  constructor(private readonly field: Pick<Field, "text">) {}

  of(value: unknown): string {
    const key = keyOf(value);
    const known = this.texts.get(key);
    if (known !== undefined) return known;
    const text = value === "" ? "empty text" : this.field.text(value);
    let name = text;
    for (let count = 2; this.taken.has(name); count += 1) name = `${text} (${count})`;
    this.texts.set(key, name);
    this.taken.add(name);
    return name;
  }
}

/** The dimension of the view that a field shows. */
export const dimensionOf = (field: Field): string => field.column.field ?? field.column.name;

/** Lines of a tooltip. */
export const tip = (...lines: [title: string, text: string][]): string => lines.map(([title, text]) => `${title}: ${text}`).join("\n");

export { NO_VALUE };
