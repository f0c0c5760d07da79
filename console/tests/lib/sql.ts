// Steps on the screen of questions, and what the program says of its readers.

import type { Page } from "playwright-core";
import { expect } from "vitest";
import { project } from "./projects.ts";
import type { Program } from "./program.ts";

/** The address of the screen, with a question filled in. */
export const sqlOf = (home: string, name: string, question?: string) => `${home}ui/${name}/sql${question === undefined ? "" : `#q=${encodeURIComponent(question)}`}`;

/** The text of the question. */
export const text = (page: Page) => page.getByRole("textbox", { name: "Question in SQL" });
export const grid = (page: Page, name = "Answer") => page.getByRole("grid", { name });
export const ask = (page: Page) => page.getByRole("button", { name: /^Ask/ });

/** Writes a question in place of what is there, asks it, and waits for an end. */
export async function answer(page: Page, question: string, standing = "whole") {
  await write(page, question);
  await ask(page).click();
  await ended(page, standing);
}
export async function write(page: Page, question: string) {
  await text(page).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(question);
}
export const ended = (page: Page, standing = "whole") => page.locator(`section.answer[data-standing="${standing}"]`).waitFor({ timeout: 60_000 });

/** The cells of a row that are in sight; those of the heading for -1. */
export const cells = (page: Page, row: number) => page.locator(`[data-row="${row}"] [data-column]`).evaluateAll((all) => all.map((one) => (one.querySelector("bdi, i") ?? one).textContent?.trim() ?? ""));

/** Statements of callers that run in the engine. */
export async function readers(program: Program): Promise<number> {
  const page = await (await fetch(`${program.origin}/metrics`, { headers: { connection: "close" } })).text();
  return Number(/^watershed_readers_running\{[^}]*\} (\d+)/m.exec(page)?.[1]);
}

/** Waits until so many statements run, and returns how long that took, in milliseconds. */
export async function run(program: Program, wanted: number): Promise<number> {
  const begun = performance.now();
  for (;;) {
    if ((await readers(program)) === wanted) return performance.now() - begun;
    expect(performance.now() - begun, `the engine has other readers than ${wanted}`).toBeLessThan(20_000);
  }
}

/** A statement that no engine comes to an end of. */
export const ENDLESS = "SELECT sum(sqrt(a.range)) AS total FROM range(4000000000) a, range(4000000000) b";

/** Orders, and values that are hard to show. */
export function data(): string {
  return project("data", {
    "models/orders.sql": "-- @materialize: true\nSELECT i AS id, i % 7 AS shop, CAST(i * 1.5 AS DECIMAL(18,2)) AS amount, DATE '2024-01-01' + CAST(i % 90 AS INTEGER) AS day, 'shop ' || (i % 7) AS name\nFROM range(100000) t(i)\n",
    "models/daily.sql": "SELECT day, sum(amount) AS taken, count(*) AS orders\nFROM orders\nGROUP BY day\nORDER BY day\n",
  });
}

/** Values that lose something where a page takes them for less than they are. */
export const HARD =
  "SELECT NULL AS nothing, '' AS empty, 'NULL' AS word, CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0)) AS wide, CAST('-0.00000000000000000000000000000000000001' AS DECIMAL(38,38)) AS small,\n" +
  "170141183460469231731687303715884105727::HUGEINT AS huge, 'NaN'::DOUBLE AS nan, '-inf'::DOUBLE AS inf, DATE '0044-03-15 (BC)' AS ides, TIMESTAMPTZ '2024-02-29 10:00:00.123456+00' AS moment,\n" +
  "9007199254740993 AS odd, {a: 1.10::DECIMAL(9,2), b: [NULL, 'x', ''], c: MAP {'k': 9007199254740993}} AS deep, INTERVAL '-1 day' AS span, true AS truth, '\\x00ab'::BLOB AS bytes, 0.1::FLOAT AS float, -0.0::DOUBLE AS zero";
