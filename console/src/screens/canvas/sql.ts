// Filters as a condition in SQL, for queries that are SQL themselves.

import { containing, typed, type Frame } from "../explore/questions";
import type { Filter } from "../explore/address";

const named = (name: string) => `"${name.replaceAll('"', '""')}"`;
const quoted = (value: unknown) => (typeof value === "number" || typeof value === "boolean" ? String(value) : `'${String(value).replaceAll("'", "''")}'`);

/** Returns true if a filter can be said of a query in SQL: values of which a measure is so can't. */
export const isSayable = (one: Filter): boolean => one.sort !== "groups";

/** Returns the condition of a frame; empty for none. */
export function conditionIn({ filters, types, where }: Frame): string {
  const all = filters.flatMap((one) => {
    if (one.sort === "groups") return [];
    const field = named(one.field);
    if (one.sort === "contains") return [`${field} ${one.isNot ? "NOT ILIKE" : "ILIKE"} ${quoted(containing(one.text))}`];
    const values = one.values.filter((value) => value !== null).map((value) => quoted(typed(value, types.get(one.field.toLowerCase()) ?? "")));
    const among = values.length > 0 ? `${field} ${one.isNot ? "NOT IN" : "IN"} (${values.join(", ")})` : "";
    const missing = one.values.includes(null) ? `${field} IS ${one.isNot ? "NOT " : ""}NULL` : "";
    return [[among, missing].filter(Boolean).join(one.isNot ? " AND " : " OR ")];
  });
  return [...(where ? [where] : []), ...all].map((text) => `(${text})`).join(" AND ");
}
