// Tables that nothing stands for any more: found, brought back, and thrown away for good.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessible, FAILED_REQUEST, picture, visit } from "./lib/browser.ts";
import { find, home, tabTo } from "./lib/journey.ts";
import { shop } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

served("the trash", shop, (on) => {
  test("says what lies there and until when, gives a table back, and names what is lost", async () => {
    const { page, leave } = await visit(home(on.program.home, "shop"));
    await page.getByRole("link", { name: "Trash" }).click();
    await page.getByText("Nothing lies here.").waitFor();
    rmSync(join(on.program.project, "models/prices.sql"));
    rmSync(join(on.program.project, "models/daily.sql"));
    const rows = page.getByRole("list", { name: "Tables" }).getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(2);
    await rows.filter({ hasText: "prices" }).getByText(/its file was deleted .*; thrown away /).waitFor();
    await accessible(page);
    // A name that is taken is refused, with the reason where it was asked for.
    await page.getByRole("button", { name: "Restore prices" }).click();
    const dialog = page.getByRole("dialog", { name: "Restore prices?" });
    await dialog.getByRole("searchbox").fill("orders");
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await dialog.locator(".problem").waitFor();
    await accessible(page);
    await picture(page, "trash");
    await dialog.getByRole("searchbox").fill("old_prices");
    await dialog.getByRole("button", { name: "Restore", exact: true }).click();
    await page.getByText("prices is back as old_prices.").waitFor();
    await expect.poll(() => rows.count()).toBe(1);
    await leave(FAILED_REQUEST);
  });

  test("is emptied by keyboard alone, of what was named and nothing else", async () => {
    const { page, leave } = await visit(home(on.program.home, "shop"), { colorScheme: "dark", viewport: { width: 390, height: 800 } });
    await page.getByText("orders").first().waitFor();
    await find(page, "trash");
    await page.getByRole("button", { name: "Delete daily" }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await accessible(page);
    await picture(page, "trash dark 390");
    await tabTo(page, "Delete daily");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Delete 1 table for good?" }).getByText("daily").waitFor();
    await tabTo(page, "Delete 1");
    await page.keyboard.press("Enter");
    await page.getByText("1 table lost for good.").waitFor();
    await page.getByText("Nothing lies here.").waitFor();
    expect((await on.program.ask("trash")).tables).toEqual([]);
    await leave();
  });
});
