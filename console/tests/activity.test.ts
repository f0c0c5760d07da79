// What happened last night: runs of a time, failures by cause, and the way from one to its line.

import { expect, test } from "vitest";
import { LOOKS, FAILED_REQUEST, accessible, picture, visit } from "./lib/browser.ts";
import { findings } from "./lib/files.ts";
import { find, home, shows, tabTo, until } from "./lib/journey.ts";
import { forty, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

served("the activity of a project", forty, (on) => {
  test("explains forty failures as one, leads to the line of each, and retries those that are left by number", async () => {
    const { page, leave } = await visit(home(on.program.home, "forty"));
    await page.getByRole("link", { name: "Activity" }).click();
    const failed = page.getByRole("region", { name: "What failed 1" });
    await failed.getByText(/\d+ failures of 40 resources/).waitFor();
    await failed.getByRole("button", { name: "Show all 40" }).click();
    await failed.getByRole("link", { name: "reading_07", exact: true }).waitFor();
    await accessible(page);
    // One is mended: it says so, and by which edit.
    write(on.program.project, { "models/reading_07.sql": "-- @materialize: true\nSELECT 7 AS reading\n" });
    await failed.getByText(/mended .* by the edit of models\/reading_07\.sql/).waitFor();
    await failed.getByRole("button", { name: "Retry 39…" }).click();
    await page.getByRole("dialog", { name: "Retry 39 resources?" }).getByRole("button", { name: "Leave it" }).click();
    // What came meanwhile moves nothing until a person asks for it.
    const runs = page.getByRole("list", { name: "Runs" });
    const told = await runs.getByText("models/reading_07.sql").count();
    await page.getByRole("button", { name: /^Show \d+ newer runs?$/ }).click();
    await runs.getByText("models/reading_07.sql").nth(told).waitFor();
    // Another one fails, is found at its line, and mended.
    write(on.program.project, { "models/well.sql": "SELECT id\nFROM nowhere\n" });
    await page.getByRole("region", { name: "What failed 2" }).getByRole("link", { name: "models/well.sql:2" }).click();
    await findings(page).getByText("unknown-table").waitFor();
    write(on.program.project, { "models/well.sql": "SELECT 2 AS id\n" });
    await findings(page).waitFor({ state: "detached" });
    await page.goBack();
    await page.getByText(/mended .* by the edit of models\/well\.sql/).waitFor();
    await leave();
  });

  test("is chosen by time, outcome and name, and its address is the view", async () => {
    const { page, leave } = await visit(`${home(on.program.home, "forty")}/activity`);
    const runs = page.getByRole("list", { name: "Runs" }).getByRole("listitem");
    await runs.first().waitFor();
    const runsAre = (word: string) =>
      expect.poll(async () => new Set((await runs.allTextContents()).map((text) => text.includes(word)))).toEqual(new Set([true]));
    await page.getByRole("button", { name: "done", exact: true }).click();
    await runsAre("done");
    await page.getByRole("button", { name: "all", exact: true }).click();
    await page.getByRole("button", { name: "hour", exact: true }).click();
    const filter = page.getByRole("searchbox");
    await filter.fill("well");
    await filter.press("Enter");
    await runsAre("well");
    expect(new URL(page.url()).search).toBe("?span=hour&select=well");
    await page.reload();
    await runsAre("well");
    await filter.fill("nothing:at_all");
    await filter.press("Enter");
    await page.getByRole("region", { name: /^Runs/ }).getByRole("alert").waitFor();
    await leave(FAILED_REQUEST);
  });

  test.each([...LOOKS])("has nothing serious in the $theme theme at $width pixels", async ({ theme, width }) => {
    const { page, leave } = await visit(`${home(on.program.home, "forty")}/activity`, { colorScheme: theme, viewport: { width, height: 900 } });
    await page.getByRole("region", { name: /^What failed/ }).waitFor();
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await picture(page, `activity ${theme} ${width}`);
    await leave();
  });

  test("is gone through by keyboard alone, also after the service was started again", async () => {
    const { page, leave } = await visit(home(on.program.home, "forty"));
    await page.getByText("reading_01").first().waitFor();
    await find(page, "activity");
    await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await until(() => page.getByRole("region", { name: /^What failed/ }).count(), (count) => count === 1, page);
    await tabTo(page, /^reading_/);
    await page.keyboard.press("Enter");
    await shows(page, "failed");
    await leave(/Failed to load resource|ERR_/);
  });
});
