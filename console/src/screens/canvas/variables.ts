// Variables of a board that components set, and the values that are offered for one.

import { isNumber } from "../explore/address";
import { plain } from "../explore/format";
import type { Answer } from "../explore/asking";
import type { Component, Variable } from "./document";

/** Returns what an address says of variables that a board has, in the types that their values have there. */
export function givenOf(said: Record<string, string>, declared: Variable[]): Record<string, string | number | boolean> {
  const given: Record<string, string | number | boolean> = {};
  for (const { name, value } of declared) {
    const text = Object.hasOwn(said, name) ? said[name] : undefined;
    if (text === undefined) continue;
    const isTruth = typeof value === "boolean" && (text === "true" || text === "false");
    given[name] = isTruth ? text === "true" : typeof value === "number" && isNumber(text) ? Number(text) : text;
  }
  return given;
}

/** The name of the variable that a component sets; none if it sets none. */
export function outputOf({ output }: Pick<Component, "output">): string | undefined {
  const name = typeof output === "object" && output !== null && "name" in output ? output.name : output;
  return typeof name === "string" && name !== "" ? name : undefined;
}

export interface Option {
  value: string;
  label: string;
}

/** The most values that are offered. */
const MOST = 500;

const text = (value: unknown): string | undefined => (value === null || value === undefined ? undefined : plain(value));

/** Reads the options that an author lists: values, or values with their labels. */
function listed(options: unknown): Option[] {
  if (!Array.isArray(options)) return [];
  return options.flatMap((one: unknown) => {
    const { value, label } = typeof one === "object" && one !== null ? (one as { value?: unknown; label?: unknown }) : { value: one, label: undefined };
    const said = text(value);
    return said === undefined ? [] : [{ value: said, label: text(label) ?? said }];
  });
}

/** Returns what is offered: what the author lists, and else the rows of the component's query. */
export function optionsOf(properties: Record<string, unknown>, answer: Answer | undefined): Option[] {
  // Of equal values one is offered.
  const single = (all: Option[]) => [...new Map(all.map((one) => [one.value, one])).values()].slice(0, MOST);
  const said = listed(properties.options ?? properties.values);
  if (said.length > 0 || !answer) return single(said);
  const place = (...keys: string[]) => answer.columns.findIndex(({ name }) => keys.some((key) => properties[key] === name));
  const value = Math.max(place("value_field", "valueField", "field", "dimension"), 0);
  const label = place("label_field", "labelField");
  const found = answer.rows.flatMap((row) => {
    const said = text(row[value]);
    return said === undefined ? [] : [{ value: said, label: (label < 0 ? undefined : text(row[label])) ?? said }];
  });
  return single(found);
}
