// Steps on the page of an explore, and what the program itself answers.

import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Program } from "./program.ts";

/** The address of an explore. */
export const exploreOf = (home: string, project: string, name: string, words = "") => `${home}ui/${project}/explores/${name}${words ? `?${words}` : ""}`;

/** Waits until all questions of the page are answered. */
export async function settled(page: Page) {
  await page.locator("article.explore h1").waitFor({ timeout: 30_000 });
  // What was clicked is drawn, seen, and asked for, before the page is looked at; what comes may ask for more.
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
  for (let quiet = 0; quiet < 3; ) {
    await page.locator("article.explore[aria-busy=false] h1").waitFor({ timeout: 30_000 });
    await frames();
    quiet = (await page.locator("article.explore[aria-busy=false] h1").count()) > 0 ? quiet + 1 : 0;
  }
}

/** A leaderboard, by the title of its dimension. */
export const board = (page: Page, title: string) => page.getByRole("region", { name: "By dimension" }).getByRole("region", { name: title, exact: true });

/** The rows of a leaderboard: the value, and its numbers. */
export async function rowsOf(page: Page, title: string): Promise<string[][]> {
  const rows = board(page, title).locator("tbody tr");
  return rows.evaluateAll((all) => all.map((row) => [row.querySelector(".value")?.textContent?.trim() ?? "", ...[...row.querySelectorAll("td.number")].map((cell) => cell.textContent?.trim() ?? "")]));
}

/** The figures of measures by name. */
export async function figuresOf(page: Page): Promise<Record<string, string>> {
  return Object.fromEntries(await page.locator("[data-measure]").evaluateAll((all) => all.map((one) => [one.getAttribute("data-measure"), one.textContent?.trim() ?? ""])));
}

/** Reads the cells of a table that the program writes; the first row has the names. */
export function cells(table: string): string[][] {
  const lines = table.split("\n").filter((line) => line.startsWith("│"));
  return lines.map((line) => line.slice(1, line.lastIndexOf("│")).split("┆").map((cell) => cell.trim()));
}

/** Asks the program for the table of a query, as somebody; through an explore, or what is named with its kind; under a condition in SQL too. */
export async function told(program: Program, query: unknown, explore: string, as?: string, where?: string): Promise<string[][]> {
  const words = ["metrics", "--query", "-", "--format", "table", "--through", explore.includes("/") ? explore : `explore/${explore}`, ...(as ? ["--as", as] : []), ...(where ? ["--where", where] : [])];
  return cells(await program.answer(JSON.stringify(query), ...words));
}

/** Follows the questions of a page: the last one of each kind. */
export function questions(page: Page): Map<string, any> {
  const last = new Map<string, any>();
  page.on("request", (request) => {
    const view = /metrics\/([^/]+)\/query$/.exec(request.url())?.[1];
    if (!view || request.method() !== "POST") return;
    const { query, limit } = request.postDataJSON();
    if (JSON.stringify(query.where) === '{"val":false}') return;
    const [first] = query.dimensions ?? [];
    const kind = query.rows || (query.dimensions?.length ?? 0) > 1 ? "other" : first === undefined ? "figures" : typeof first === "string" ? (query.measures ? first : "other") : "series";
    last.set(kind, { metrics_view: decodeURIComponent(view), ...query, limit });
  });
  return last;
}

/** Fails unless all numbers on the overview equal those of the program for the questions that were asked. */
export async function isTrue(page: Page, program: Program, asked: Map<string, any>, explore: string, titles: Record<string, string>, as?: string): Promise<number> {
  const missing = (cell: string) => (cell === "" || cell === "NULL" ? "no value" : cell);
  let compared = 0;
  const figures = await figuresOf(page);
  const [names = [], values = []] = await told(program, asked.get("figures"), explore, as);
  for (const [name, text] of Object.entries(figures)) {
    expect(text, `${name} of ${page.url()}`).toBe(missing(values[names.indexOf(name)] ?? "?"));
    compared += 1;
  }
  for (const [name, title] of Object.entries(titles)) {
    const query = asked.get(name);
    const shown = await rowsOf(page, title);
    const [, ...rows] = await told(program, query, explore, as);
    const kept = query.measures.map((one: any) => typeof one === "string" || !/ before$/.test(one.name));
    const wanted = rows.map(([value = "", ...numbers]) => [missing(value), ...numbers.filter((_, place) => kept[place]).map(missing)]);
    // A share stands before a change on the page.
    expect(shown, `${title} of ${page.url()}`).toEqual(wanted);
    compared += wanted.length;
  }
  return compared;
}
