// Finds out which fields a viewer may see, and their types.

import { problemOf } from "../../api";
import type { Asking } from "./asking";
import type { Declared } from "./declared";
import type { Column } from "./format";
import type { Query } from "./questions";

/** Fields of one question. */
const PROBED = 30;

/** Asks for all fields over no rows: the answer has the columns of those that the viewer may see. */
export async function probe(asking: Asking, { measures, dimensions, time }: Pick<Declared, "measures" | "dimensions" | "time">, signal: AbortSignal): Promise<Map<string, Column>> {
  const found = new Map<string, Column>();
  const ask = async (query: Query) => {
    const { answer, left } = await asking.ask({ query: { ...query, where: { val: false } }, limit: 1 }, signal);
    for (const column of answer.columns) found.set(column.name, column);
    // A measure that needs more than its place here may well be seen.
    for (const [name, code] of left) if (code !== "not-allowed") found.set(name, { name, display_name: "", role: "measure", type: "" });
  };
  const asked: Promise<void>[] = [];
  for (let at = 0; at < dimensions.length; at += PROBED) asked.push(ask({ dimensions: dimensions.slice(at, at + PROBED).map(({ name }) => name) }));
  for (let at = 0; at < measures.length; at += PROBED) asked.push(ask({ ...(time ? { dimensions: [time] } : {}), measures: measures.slice(at, at + PROBED).map(({ name }) => name) }));
  const results = await Promise.allSettled(asked);
  const failed = results.find((one) => one.status === "rejected");
  if (failed && (results.every((one) => one.status === "rejected") || problemOf(failed.reason).at?.code !== "not-allowed")) throw failed.reason;
  return found;
}
