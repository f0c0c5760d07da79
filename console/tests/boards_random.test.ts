// Boards of the gallery under random times, filters, comparisons and variables, through the eyes of several viewers: the rows in the table of a part are
// those that the program itself tells the viewer of the query that the part shows, and what a policy hides is nowhere in the page's text, answers or memory.
//
//     WATERSHED_BOARDS=200 npx vitest run --project journeys tests/boards_random.test.ts

import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { boardOf } from "./lib/boards.ts";
import { settled, told } from "./lib/explore.ts";
import { copied } from "./lib/projects.ts";
import { random } from "./lib/random.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

const BOARDS = Number(process.env.WATERSHED_BOARDS ?? (process.env.WATERSHED_PROOF === "ci" ? 3 : 6));
const seed = Number(process.env.WATERSHED_SEED) || (process.env.WATERSHED_PROOF === "ci" ? 20_261_130 : Date.now() >>> 0);
/** Parts of a board that are compared at most. */
const PARTS = 3;

const NAMES = ["figures", "charts", "own", "choices", "narrowed", "fixed"];
const [NORTH, SOUTH] = ["north@bakery.example.org", "south@bakery.example.org"];
/** What is not for a viewer: values of rows that he does not see, and those of hidden fields. */
const HIDDEN: Record<string, RegExp> = { "": /$^/, [NORTH]: /Pretzel of the south|guest \d/, [SOUTH]: /guest \d/ };

const RANGES = ["P7D", "P1M", "P3M", "inf", "2024-02", "2024-01-10 to 2024-02-20"];
const FILTERS = ["is.shop=Market", "is.shop=Quay", "not.product=Rye", "empty.paid=yes", "filled.paid=yes", "has.product=a", "of.shop=sales>100", "is.weather=rain", "is.product=", "lacks.shop=o"];
const VARIABLES = ["let.shop=Harbour", "let.weather=sun", "let.details=true", "let.notes=false"];

/** One part of a page: the query that it shows, and the rows of its table. */
async function partOf(page: Page, place: number): Promise<{ query: any; where: string | undefined; rows: string[][]; isList: boolean } | undefined> {
  const frame = page.locator("main section.frame").nth(place);
  if ((await frame.count()) === 0 || (await frame.locator("summary[aria-label^='Take along']").count()) === 0) return undefined;
  const opens = frame.locator("details:has(> summary[aria-label^='As a table'])");
  if (await opens.count()) {
    await opens.evaluate((one: HTMLDetailsElement) => (one.open = true));
    await opens.locator("table").first().waitFor();
  }
  const more = frame.getByRole("button", { name: /^Show more of/ });
  while (await more.count()) await more.first().click();
  // The menu stays open over the page: it is opened and read without a pointer.
  const menu = frame.locator("details:has(> summary[aria-label^='Take along'])").first();
  await menu.evaluate((one: HTMLDetailsElement) => (one.open = true));
  const said = JSON.parse(await menu.locator("pre").innerText());
  await menu.evaluate((one: HTMLDetailsElement) => (one.open = false));
  const { query, where } = said.query ? said : { query: said, where: undefined };
  // Without rows there is no table.
  const rows = await frame.evaluate((one) =>
    [...(one.querySelector("table")?.querySelectorAll("tbody tr") ?? [])].map((row) => [...row.querySelectorAll("th, td:not(.not, .total)")].map((cell) => (cell.querySelector(".value") ?? cell).textContent?.trim() ?? "")),
  );
  return { query: { limit: said.limit, ...query }, where, rows, isList: (await frame.locator("table.data").count()) === 0 };
}

/** Cells as both write them: what is missing and what is empty look alike in a table of the program, and so do days and their first instants. */
const plain = (cell: string) => (["no value", "NULL", "empty text"].includes(cell) ? "" : cell.replace(/[ T]00:00(:00)?(Z|[+-]\d\d(:?\d\d)?)?$/, ""));
const sorted = (rows: string[][]) => rows.map((row) => row.map(plain).sort().join(" | ")).sort();

/** All texts in the memory of a page. */
async function memory(page: Page): Promise<string> {
  const session = await page.context().newCDPSession(page);
  const pieces: string[] = [];
  session.on("HeapProfiler.addHeapSnapshotChunk", ({ chunk }) => pieces.push(chunk));
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  await session.detach();
  return pieces.join("");
}

served("boards of the gallery", () => copied("gallery"), (on) => {
  test(`are true in ${BOARDS} looks (seed ${seed})`, { timeout: 60_000 + BOARDS * 30_000 }, async () => {
    const next = random(seed);
    const one = <T,>(all: T[]): T => all[next(all.length)]!;
    const some = (all: string[], most: number) => Array.from({ length: next(most + 1) }, () => one(all));
    let compared = 0;
    for (const [place, email] of ["", NORTH, SOUTH].entries()) {
      const viewer = await standIn(on.program.port, (asked) => {
        if (email && /^\/v1\/.*\/(canvases|metrics)\//.test(asked.url ?? "")) asked.headers["watershed-view-as"] = email;
        return false;
      });
      const { page, leave } = await visit(viewer.home, { viewport: { width: 1440, height: 1_600 } });
      const answers: string[] = [];
      // An answer that is given up has no text.
      page.on("response", (response) => /^.*\/v1\/.*\/(canvases|metrics)\//.test(response.url()) && void response.text().then((text) => answers.push(text), () => {}));
      for (let look = 0; look < Math.ceil((BOARDS - place) / 3); look++) {
        const name = one(NAMES);
        const range = one(RANGES);
        const words = [...(next(2) ? [`range=${range}`] : []), ...(next(3) ? [] : ["zone=America/New_York"]), ...(next(3) ? [] : ["by=shop"]), ...some(FILTERS, 3), ...(name === "choices" ? some(VARIABLES, 2) : []), ...(name === "narrowed" ? ["is.shop=Harbour"] : [])];
        const address = boardOf(viewer.home, "gallery", name, new URLSearchParams([...new Set(words)].map((word) => word.split(/=(.*)/s).slice(0, 2) as [string, string])).toString());
        const said = `seed ${seed}, ${email || "the owner"} at ${address}`;
        await page.goto(address);
        await settled(page);
        const count = await page.locator("main section.frame").count();
        for (let part = 0, tried = 0; part < PARTS && tried < 2 * PARTS; tried++) {
          const found = await partOf(page, next(count));
          if (!found) continue;
          const [names = [], ...rows] = await told(on.program, found.query, `canvas/${name}`, email || undefined, found.where);
          // What a change is made of is not in a list.
          const kept = names.map((name) => !found.isList || !/ before$/.test(name));
          expect(sorted(found.rows), `${said}: ${JSON.stringify(found.query)}`).toEqual(sorted(rows.map((row) => row.filter((_, place) => kept[place]))));
          part += 1;
          compared += rows.length;
        }
        expect(await page.locator("main").evaluate((main) => main.outerHTML), said).not.toMatch(HIDDEN[email]!);
      }
      const [all, kept] = [answers.join(), await memory(page)];
      expect(kept.length).toBeGreaterThan(1_000_000);
      expect(HIDDEN[email]!.exec(all)?.[0], `answers to ${email}`).toBeUndefined();
      expect(HIDDEN[email]!.exec(kept)?.[0], `the memory of ${email}`).toBeUndefined();
      if (email) expect(/"(guest|margin)"/.exec(all)?.[0], `fields in answers to ${email}`).toBeUndefined();
      await leave(FAILED_REQUEST);
      viewer.close();
    }
    expect(compared).toBeGreaterThan(BOARDS);
  });
});
