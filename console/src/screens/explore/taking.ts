// What is taken along: the query behind a part of the page, and its rows as a file.

import type { Answer, Asking } from "./asking";
import type { Question } from "./questions";

/** The most rows of one answer. */
const MOST = 10_000;

/** Forms of files, by their media types. */
export const FORMS = {
  csv: "text/csv",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  parquet: "application/vnd.apache.parquet",
} as const;
export type Form = keyof typeof FORMS;

/** The query as `watershed metrics --query` reads it; the whole request where SQL stands beside it. */
export function queryText(asking: Asking, question: Question): string {
  const { query, limit, where } = question;
  const named = { metrics_view: asking.view, ...query };
  return JSON.stringify(where ? { ...asking.form(question), query: named } : { ...named, limit }, undefined, 2);
}

/** A question for all rows that its part shows a page of. */
export function whole(question: Question): Question {
  const { offset: _, ...rest } = question.query;
  return { ...question, query: rest, limit: MOST };
}

/** Characters with which a cell is a formula to a program of sheets. */
const FORMULA = /^[=+\-@\t\r]/;

/** Writes rows as CSV. A text that a program of sheets would run gets an apostrophe in front. */
export function csv({ columns, rows, totals }: Pick<Answer, "columns" | "rows" | "totals">): string {
  const cell = (value: unknown): string => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" ? (FORMULA.test(value) && !/^[+-]?\d[\d.]*(e[+-]?\d+)?$/i.test(value) ? `'${value}` : value) : JSON.stringify(value);
    return text === "" || /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const all = [columns.map(({ display_name: name }) => name), ...rows, ...(totals ? [totals] : [])];
  return all.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
