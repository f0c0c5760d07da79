// A spec that an author wrote, over the rows of its own queries: `query1`, `query2` ..., the first of which is what all of it draws unless it says otherwise.

import type { TopLevelSpec } from "vega-lite";
import { atClock, instant } from "../../explore/format/time";
import { dimensionOf, fieldOf, measured, MOST_POINTS, Undrawable, words, type Answer, type Field } from "./answer";
import type { Chart, Ground, Picked } from "./chart";
import { guard, MOST_BYTES } from "./guard";
import { block, type Loose } from "./settings";

const VIEWS = ["mark", "layer", "concat", "hconcat", "vconcat", "facet", "repeat"];
/** Settings of a component that are none of a spec. */
const OTHERS = new Set(["metrics_sql", "metrics_view", "vega_spec", "spec", "prompt", "title", "description", "time_range", "time_filters", "dimension_filters", "name", "color"]);

/** Reads JSON that an author wrote. */
export function json(text: unknown, what: string): Loose {
  if (typeof text !== "string") return block(text);
  if (text.length > MOST_BYTES) throw new Undrawable(`${what} is longer than ${MOST_BYTES / 1024} KiB.`);
  try {
    return block(JSON.parse(text));
  } catch (error) {
    throw new Undrawable(`${what} is no JSON: ${words(error instanceof Error ? error.message : String(error))}`);
  }
}

/** Finds the spec in the settings: as a text, as a map, or as the settings themselves. */
function specOf(properties: Loose): Loose {
  if (properties.vega_spec !== undefined) return json(properties.vega_spec, "The spec");
  const isView = VIEWS.some((key) => properties[key] !== undefined);
  if (properties.spec !== undefined && !isView) return json(properties.spec, "The spec");
  if (!isView) throw new Undrawable("The component has no spec.");
  const isMany = properties.facet !== undefined || properties.repeat !== undefined;
  return Object.fromEntries(Object.entries(properties).filter(([key]) => !OTHERS.has(key) || (isMany && key === "spec")));
}

const NUMBERS = /^(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|DOUBLE|FLOAT|REAL|DECIMAL.*)$/i;

/** A value as a spec finds it in its rows: numbers as numbers, and times as the clock of the zone shows them. */
function given({ column, sort, zone }: Field, value: unknown): unknown {
  if (sort === "measure" || NUMBERS.test(column.type)) {
    const number = measured(value);
    // Rounded, the number of one thing would be that of another.
    const isRounded = sort !== "measure" && typeof value === "string" && /^[-+]?\d+$/.test(value) && !Number.isSafeInteger(number);
    return isRounded ? value : number;
  }
  if (typeof value !== "string") return value;
  const at = sort === "time" ? instant(value) : undefined;
  // Vega keeps values as keys of plain objects, which have names of their own: a space more is seen by nobody.
  if (at === undefined) return value in {} ? `${value} ` : value;
  // Without an offset the browser takes it for its own time, and shows it as it is.
  return atClock(at, zone, "second").replace(" ", "T");
}

/** The rows of an answer by the names of its columns. */
export function rowsOf(answer: Answer): Loose[] {
  const fields = answer.columns.map(({ name }) => fieldOf(answer, name));
  return answer.rows.slice(0, MOST_POINTS).map((row) => Object.fromEntries(fields.map((field, place) => [field.column.name, given(field, row[place])])));
}

/** Draws what an author wrote, as far as it is harmless. */
export function own(ground: Ground): Chart {
  const { answers, properties, width, height } = ground;
  const spec = specOf(properties);
  const queries = answers.map((_, place) => `query${place + 1}`);
  guard(spec, queries);
  const notes: string[] = [];
  if (answers.some(({ rows }) => rows.length > MOST_POINTS)) notes.push(`The first ${MOST_POINTS.toLocaleString()} rows are drawn.`);
  const isMany = ["facet", "repeat", "concat", "hconcat", "vconcat"].some((key) => spec[key] !== undefined) || ["row", "column", "facet"].some((key) => block(spec.encoding)[key] !== undefined);
  const datasets = Object.fromEntries([...Object.entries(block(spec.datasets)), ...answers.map((answer, place): [string, Loose[]] => [queries[place]!, rowsOf(answer)])]);
  const full = {
    ...spec,
    ...(spec.data === undefined && queries.length > 0 ? { data: { name: queries[0] } } : {}),
    datasets,
    ...(isMany ? {} : { width, height, autosize: { type: "fit", contains: "padding" } }),
  } as unknown as TopLevelSpec;
  const dimensions = answers.flatMap((answer) => answer.columns.filter(({ role }) => role === "dimension").map(({ name }) => ({ field: fieldOf(answer, name), rows: answer.rows }))).filter(({ field }) => field.sort === "words");
  const pick = (datum: Loose): Picked => {
    const found = dimensions.find(({ field }) => Object.hasOwn(datum, field.column.name));
    // The value of the answer, and not what the spec may have made of it.
    const row = found?.rows.find((one) => given(found.field, one[found.field.place]) === datum[found.field.column.name]);
    return found && row && [dimensionOf(found.field), row[found.field.place]];
  };
  const rows = answers.reduce((sum, answer) => sum + answer.rows.length, 0);
  return { spec: full, notes, summary: `chart of ${rows.toLocaleString()} rows`, pick };
}
