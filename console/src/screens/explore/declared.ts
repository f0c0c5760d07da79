// An explore as its file declares it, and the view that it is over.

import { cut, SHOWN, visible } from "../../parts/text";
import { GRAINS, type Grain } from "./format/time";

/** A field of a metrics view. */
export interface Field {
  name: string;
  title: string;
  description: string;
  /** Type as the engine names it; empty where it is not known. */
  type: string;
  hasLinks: boolean;
  hasShare: boolean;
  /** Dimensions that a question has to have beside a measure over neighbouring groups. */
  needs: string[];
}

/** All that the screen knows of an explore before it asks a question. */
export interface Declared {
  view: string;
  title: string;
  description: string;
  banner: string;
  time: string | undefined;
  smallest: Grain | undefined;
  measures: Field[];
  dimensions: Field[];
  ranges: { range: string; offsets: string[] }[];
  allowsCustom: boolean;
  zones: string[];
  isZoneFixed: boolean;
  defaults: { range: string | undefined; measures: string[] | undefined; dimensions: string[] | undefined; compares: boolean; by: string | undefined };
  theme: string | undefined;
  ownTheme: unknown;
}

type Loose = Record<string, unknown>;
const block = (value: unknown): Loose => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : {});
const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
/** Words for people, made harmless and short: they stand in labels and menus too. */
const words = (value: unknown): string => visible(cut(text(value), SHOWN));
const texts = (value: unknown): string[] => items(value).filter((one): one is string => typeof one === "string");
const grain = (value: unknown): Grain | undefined => GRAINS.find((one) => one === value);

/** The title that the program makes of a name without one: `mean_delay` is `Mean Delay`. */
export function titleOf(name: string): string {
  return name
    .split("_")
    .filter(Boolean)
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join(" ");
}

/** The fields that a selector chooses, in the order of the view; none where it chooses all. */
function chosen(selector: unknown, among: string[]): string[] | undefined {
  const { all, fields, invert, regex, duckdb_expression: expression } = block(selector);
  if (selector == null || all === true || text(regex) || text(expression)) return undefined;
  const named = new Set(texts(fields).map((name) => name.toLowerCase()));
  return among.filter((name) => named.has(name.toLowerCase()) !== (invert === true));
}

/** Documents of an explore and of its view, as the service has them. A spec may be missing: then it is as if its keys were not said. */
export interface Documents {
  explore: { name: string; spec?: unknown; result?: unknown };
  view: { spec?: unknown; result?: unknown };
}

/** Returns what the documents declare. Fields that the view does not describe have titles made of their names. */
export function declaredOf({ explore, view }: Documents, time: string | undefined): Declared {
  const [spec, result] = [block(explore.spec), block(explore.result)];
  const [viewSpec, viewResult] = [block(view.spec), block(view.result)];
  const types = block(viewResult.types);
  const fieldsOf = (described: unknown, names: string[]): Field[] => {
    const known = new Map(items(described).map((one) => [text(block(one).name).toLowerCase(), block(one)]));
    return names.map((name) => {
      const one = known.get(name.toLowerCase()) ?? {};
      return {
        name,
        title: words(one.display_name) || titleOf(name),
        description: words(one.description),
        type: text(types[name]).toUpperCase(),
        hasLinks: text(one.uri) !== "",
        hasShare: one.valid_percent_of_total === true,
        needs: items(block(one.window).order).map((of) => text(block(of).name)).filter(Boolean),
      };
    });
  };
  // Whoever only reads gets the lists of fields as the spec, and no result.
  const listed = (key: "dimensions" | "measures") => texts(Array.isArray(spec[key]) ? spec[key] : result[key]);
  const dimensions = listed("dimensions").filter((name) => name.toLowerCase() !== time?.toLowerCase());
  const measures = listed("measures");
  const defaults = block(spec.defaults);
  const zones = texts(spec.time_zones);
  const by = text(defaults.comparison_dimension);
  return {
    view: text(spec.metrics_view) || text(result.metrics_view),
    title: words(spec.display_name) || words(viewSpec.display_name) || titleOf(explore.name),
    description: text(spec.description) || text(viewSpec.description),
    banner: text(spec.banner),
    time,
    smallest: grain(viewSpec.smallest_time_grain) ?? (text(types[time ?? ""]).toUpperCase() === "DATE" ? "day" : undefined),
    measures: fieldsOf(viewSpec.measures, measures),
    dimensions: fieldsOf(viewSpec.dimensions, dimensions),
    ranges: items(spec.time_ranges).flatMap((one) => {
      const range = text(block(one).range);
      return range ? [{ range, offsets: items(block(one).comparison_offsets).map((offset) => text(block(offset).offset) || text(offset)).filter(Boolean) }] : [];
    }),
    allowsCustom: spec.allow_custom_time_range !== false,
    zones,
    isZoneFixed: spec.lock_time_zone === true,
    defaults: {
      range: text(defaults.time_range) || undefined,
      measures: chosen(defaults.measures, measures),
      dimensions: chosen(defaults.dimensions, dimensions),
      compares: defaults.comparison_mode === "time",
      by: defaults.comparison_mode === "dimension" && by ? by : undefined,
    },
    theme: text(spec.theme) || undefined,
    ownTheme: spec.embedded_theme ?? undefined,
  };
}
