// A mistake is found, understood, mended on disk, and what depends on it turns green while somebody looks.

import { rmSync } from "node:fs";
import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { findings, reads } from "./lib/files.ts";
import { find, home, pageOf, shows, tabTo } from "./lib/journey.ts";
import { shop, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const MISTAKE = { "models/daily.sql": "-- What each shop takes.\n-- @materialize: true\nSELECT shop, sum(amount) AS taken\nFROM ordres\nGROUP BY shop\n" };
const MENDED = { "models/daily.sql": MISTAKE["models/daily.sql"].replace("ordres", "orders") };

served("a mistake in a model", shop, (on) => {
  test("is found by mouse from what it blocks, and its mending is seen without a reload", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "best"));
    await shows(page, "ok");
    write(on.program.project, MISTAKE);
    await shows(page, "blocked");
    // The root cause, its code and its place stand on the page of what is blocked.
    const why = page.getByRole("region", { name: "Why it is blocked" });
    await why.getByText("ordres").first().waitFor();
    expect(await why.getByRole("link", { name: "unknown-table" }).getAttribute("href")).toMatch(/problems\/unknown-table$/);
    await why.getByRole("link", { name: "models/daily.sql:4:6" }).click();
    // The line, in the editor of the file, with what is wrong.
    await findings(page).getByText("unknown-table").waitFor();
    await reads(page, "models/daily.sql", /FROM ordres/);
    expect(new URL(page.url()).pathname).toBe("/ui/shop/files/models/daily.sql");
    expect(new URL(page.url()).search).toBe("?line=4&column=6");
    // The same on the page of the resource, with a hint.
    await page.goto(`${pageOf(on.program.home, "shop", "model", "daily")}?file=models%2Fdaily.sql&line=4`);
    await page.getByRole("heading", { level: 1, name: "daily" }).waitFor();
    await shows(page, "failed");
    const line = page.locator("[data-line='4']");
    await line.getByText("unknown-table").waitFor();
    expect(await line.evaluate((it) => it.classList.contains("here"))).toBe(true);
    await line.getByText("Did you mean").waitFor();
    // Mended elsewhere.
    await page.evaluate(() => ((window as any).isSamePage = true));
    write(on.program.project, MENDED);
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
    write(on.program.project, MISTAKE);
    const { page, leave } = await visit(home(on.program.home, "shop"));
    await page.getByText("best").first().waitFor();
    await find(page, "best");
    await page.getByRole("heading", { level: 1, name: "best" }).waitFor();
    await shows(page, "blocked");
    await page.getByRole("region", { name: "Why it is blocked" }).getByText("ordres").first().waitFor();
    await tabTo(page, "models/daily.sql:4:6");
    await page.keyboard.press("Enter");
    await findings(page).getByText("unknown-table").waitFor();
    await reads(page, "models/daily.sql", /FROM ordres/);
    write(on.program.project, MENDED);
    await reads(page, "models/daily.sql", /FROM orders/);
    await findings(page).waitFor({ state: "detached" });
    await find(page, "best");
    await shows(page, "ok");
    await leave();
  });

  test("is told with the edit that brought it, in the history of what it stopped", async () => {
    write(on.program.project, MISTAKE);
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "best"));
    await shows(page, "blocked");
    const chain = page.getByRole("region", { name: "History" }).locator(".chain").first();
    await chain.getByText("models/daily.sql").waitFor();
    await chain.getByRole("link", { name: "daily" }).waitFor();
    write(on.program.project, MENDED);
    await shows(page, "ok");
    await leave();
  });
});

served("an address", shop, (on) => {
  test("with a name that nothing has shows the nearest names", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "dialy"));
    await page.getByText("Nothing of this kind has that name.").waitFor();
    await page.getByRole("link", { name: "daily" }).click();
    await shows(page, "ok");
    await leave(FAILED_REQUEST);
  });

  test("of a resource that is deleted while somebody looks says when, and by which edit", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "prices"));
    await shows(page, "ok");
    rmSync(`${on.program.project}/models/prices.sql`);
    await page.getByText(/It is gone: deleted .* by the edit of models\/prices\.sql\./).waitFor();
    await leave(FAILED_REQUEST);
  });
});

/** The shop with a mistake in it from the beginning. */
function mistaken(): string {
  const at = shop();
  write(at, MISTAKE);
  return at;
}

served("a mistake in a first build", mistaken, (on) => {
  test("is proposed a name, though the engine has no table yet to propose", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "daily"));
    await shows(page, "failed");
    await page.getByRole("region", { name: "What is wrong" }).getByText(/did you mean/i).first().waitFor();
    await page.locator("[data-line='4']").getByText(/did you mean/i).first().waitFor();
    await leave();
  });
});
