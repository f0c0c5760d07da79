// A mistake is found, understood, mended on disk, and what depends on it turns green while somebody looks.

import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeBrowser, FAILED_REQUEST, visit } from "./lib/browser.ts";
import { find, home, pageOf, shows, tabTo } from "./lib/journey.ts";
import { canRun } from "./lib/needs.ts";
import { Program } from "./lib/program.ts";
import { shop, write } from "./lib/projects.ts";

const MISTAKE = { "models/daily.sql": "-- What each shop takes.\n-- @materialize: true\nSELECT shop, sum(amount) AS taken\nFROM ordres\nGROUP BY shop\n" };
const MENDED = { "models/daily.sql": MISTAKE["models/daily.sql"].replace("ordres", "orders") };

describe.runIf(canRun)("a mistake in a model", () => {
  let program: Program;
  beforeAll(async () => {
    program = await Program.start(shop());
    await program.settle();
  });
  afterAll(async () => {
    await program?.stop();
    await closeBrowser();
  });

  test("is found by mouse from what it blocks, and its mending is seen without a reload", async () => {
    const { page, leave } = await visit(pageOf(program.home, "shop", "model", "best"));
    await shows(page, "ok");
    write(program.project, MISTAKE);
    await shows(page, "blocked");
    // The root cause, its code and its place stand on the page of what is blocked.
    const why = page.getByRole("region", { name: "Why it is blocked" });
    await why.getByText("ordres").first().waitFor();
    expect(await why.getByRole("link", { name: "unknown-table" }).getAttribute("href")).toMatch(/problems\/unknown-table$/);
    await why.getByRole("link", { name: "models/daily.sql:4:6" }).click();
    // The line, in the file, with what is wrong below it.
    await page.getByRole("heading", { level: 1, name: "daily" }).waitFor();
    await shows(page, "failed");
    expect(new URL(page.url()).search).toBe("?file=models%2Fdaily.sql&line=4");
    const line = page.locator("[data-line='4']");
    await line.getByText("unknown-table").waitFor();
    expect(await line.evaluate((it) => it.classList.contains("here"))).toBe(true);
    await line.getByText("Did you mean").waitFor();
    // Mended elsewhere.
    await page.evaluate(() => ((window as any).isSamePage = true));
    write(program.project, MENDED);
    await shows(page, "ok");
    await line.getByText("unknown-table").waitFor({ state: "detached" });
    await page.getByRole("region", { name: /^Read by/ }).getByRole("link", { name: "best" }).click();
    await shows(page, "ok");
    expect(await page.evaluate(() => (window as any).isSamePage)).toBe(true);
    // Back is back.
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "daily" }).waitFor();
    await leave();
  });

  test("is found and understood by keyboard alone", async () => {
    write(program.project, MISTAKE);
    const { page, leave } = await visit(home(program.home, "shop"));
    await page.getByText("best").first().waitFor();
    await find(page, "best");
    await page.getByRole("heading", { level: 1, name: "best" }).waitFor();
    await shows(page, "blocked");
    await page.getByRole("region", { name: "Why it is blocked" }).getByText("ordres").first().waitFor();
    await tabTo(page, "models/daily.sql:4:6");
    await page.keyboard.press("Enter");
    await page.locator("[data-line='4'].here").getByText("unknown-table").waitFor();
    write(program.project, MENDED);
    await shows(page, "ok");
    await find(page, "best");
    await shows(page, "ok");
    await leave();
  });

  test("is told with the edit that brought it, in the history of what it stopped", async () => {
    write(program.project, MISTAKE);
    const { page, leave } = await visit(pageOf(program.home, "shop", "model", "best"));
    await shows(page, "blocked");
    const chain = page.getByRole("region", { name: "History" }).locator(".chain").first();
    await chain.getByText("models/daily.sql").waitFor();
    await chain.getByRole("link", { name: "daily" }).waitFor();
    write(program.project, MENDED);
    await shows(page, "ok");
    await leave();
  });
});

describe.runIf(canRun)("an address", () => {
  let program: Program;
  beforeAll(async () => {
    program = await Program.start(shop());
    await program.settle();
  });
  afterAll(async () => {
    await program?.stop();
    await closeBrowser();
  });

  test("with a name that nothing has shows the nearest names", async () => {
    const { page, leave } = await visit(pageOf(program.home, "shop", "model", "dialy"));
    await page.getByText("Nothing of this kind has that name.").waitFor();
    await page.getByRole("link", { name: "daily" }).click();
    await shows(page, "ok");
    await leave(FAILED_REQUEST);
  });

  test("of a resource that is deleted while somebody looks says when, and by which edit", async () => {
    const { page, leave } = await visit(pageOf(program.home, "shop", "model", "prices"));
    await shows(page, "ok");
    rmSync(`${program.project}/models/prices.sql`);
    await page.getByText(/It is gone: deleted .* by the edit of models\/prices\.sql\./).waitFor();
    await leave(FAILED_REQUEST);
  });
});
