// The screen of a project: list and graph say the same, the service judges the filter, and keys reach everything.

import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { shop, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** The names of the rows, in their order. */
async function names(page: Page): Promise<string[]> {
  return (await page.getByRole("list", { name: "Resources" }).getByRole("link").allTextContents()).map((name) => name.trim());
}

/** Waits until the rows are these, in any order. */
async function rows(page: Page, wanted: string[]) {
  await expect.poll(async () => (await names(page)).toSorted(), POLL).toEqual(wanted.toSorted());
}

const POLL = { interval: 50 };
/** The model, its metrics view, and the explore that comes with one, have the same name. */
const ALL = ["best", "daily", "orders", "orders", "orders", "prices"];

served("the screen of a project", shop, (on) => {
  let home: string;
  beforeAll(async () => {
    home = `${on.program.origin}/ui/shop`;
  });

  test("is where the address of the service leads", async () => {
    const { page, leave } = await visit(`${on.program.origin}/`);
    await rows(page, ALL);
    expect(page.url()).toBe(home);
    await leave();
  });

  test("follows the graph's edges by keys", async () => {
    const { page, leave } = await visit(home);
    await rows(page, ALL);
    await page.locator("canvas[data-painted]").waitFor({ state: "attached" });
    const node = page.locator(".node");
    const says = (label: string) => expect.poll(() => node.getAttribute("aria-label"), POLL).toBe(label);
    await node.focus();
    await page.keyboard.press("ArrowDown");
    await says("explore orders, ok, reads 1, read by 0");
    await page.keyboard.press("ArrowLeft");
    await says("metrics view orders, ok, reads 1, read by 1");
    await page.keyboard.press("ArrowLeft");
    await says("model orders, ok, reads 0, read by 2");
    await page.keyboard.press("ArrowRight");
    await says("metrics view orders, ok, reads 1, read by 1");
    await page.keyboard.press("ArrowDown");
    await says("model daily, ok, reads 1, read by 1");
    // The list shows the same one.
    expect((await page.locator("li.chosen a").textContent())?.trim()).toBe("daily");
    await page.keyboard.press("ArrowLeft");
    await says("model orders, ok, reads 0, read by 2");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "orders" }).waitFor();
    await page.goBack();
    await rows(page, ALL);
    await leave();
  });

  test("filters by what the service understands, and says what it does not", async () => {
    const { page, leave } = await visit(home);
    await rows(page, ALL);
    const filter = page.getByRole("searchbox");
    await filter.fill("dialy+");
    await filter.press("Enter");
    await page.locator("#mistake").getByText("dialy").first().waitFor();
    await filter.fill("daily+");
    await filter.press("Enter");
    await rows(page, ["daily", "best"]);
    expect(await page.locator("#mistake").textContent()).toBe("");
    // A word that is no name stands for names that contain it, and takes force when the field is left.
    await filter.fill("dail");
    await page.getByRole("button", { name: /^Do with/, disabled: true }).waitFor();
    await filter.blur();
    await rows(page, ["daily"]);
    await page.locator("#mistake").getByText("No resource is called dail").waitFor();
    await page.locator("summary").getByText("Do with it").waitFor();
    await filter.fill("daily+");
    await filter.press("Enter");
    await rows(page, ["daily", "best"]);
    // The address is the view.
    expect(new URL(page.url()).searchParams.get("select")).toBe("daily+");
    await page.reload();
    await rows(page, ["daily", "best"]);
    await page.locator("canvas[data-painted='2']").waitFor({ state: "attached" });
    await page.getByRole("searchbox").fill("");
    await rows(page, ALL);
    await leave(FAILED_REQUEST);
  });

  test("moves no row while somebody reads, until asked", async () => {
    const { page, leave } = await visit(home);
    await rows(page, ALL);
    const before = await names(page);
    write(on.program.project, { "models/prices.sql": "SELECT nothing FROM nowhere\n" });
    await page.getByRole("button", { name: "failed 1" }).waitFor();
    expect(await names(page)).toEqual(before);
    await page.getByRole("button", { name: "Sort again" }).click();
    await expect.poll(async () => (await names(page))[0], POLL).toBe("prices");
    await page.getByRole("button", { name: "failed 1" }).click();
    await rows(page, ["prices"]);
    write(on.program.project, { "models/prices.sql": "-- @materialize: true\nSELECT 1 AS price\n" });
    await page.getByText("no resource is failed").waitFor();
    await leave();
  });

  test("tells of an alert that found rows, in the list and on its page", async () => {
    const { page, leave } = await visit(home);
    await rows(page, ALL);
    write(on.program.project, {
      "connectors/outbox.yaml": "type: connector\ndriver: file\npath: outbox\n",
      "alerts/late.yaml": 'type: alert\ndata:\n  sql: "SELECT 7 AS late_minutes"\nnotify: {file: outbox}\n',
    });
    await page.getByRole("button", { name: "fails 1" }).click();
    await rows(page, ["late"]);
    await page.getByRole("list", { name: "Resources" }).getByText("fails, told").waitFor();
    await page.getByRole("link", { name: "late", exact: true }).click();
    const found = page.getByRole("region", { name: "What it found" });
    await found.getByRole("columnheader", { name: "late_minutes" }).waitFor();
    await found.getByRole("cell", { name: "7" }).waitFor();
    await found.getByRole("list", { name: "Messages" }).getByText(/late.* to .*outbox.*: delivered/).waitFor();
    rmSync(join(on.program.project, "alerts"), { recursive: true });
    rmSync(join(on.program.project, "connectors"), { recursive: true });
    await page.getByText("It is gone").waitFor();
    await leave(FAILED_REQUEST);
  });

  test("mixes nothing with another project that has come to the same address", async () => {
    const { page, leave } = await visit(home);
    await rows(page, ALL);
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    rmSync(join(on.program.project, ".watershed"), { recursive: true });
    rmSync(join(on.program.project, "models"), { recursive: true });
    rmSync(join(on.program.project, "metrics"), { recursive: true });
    write(on.program.project, { "models/stranger.sql": "SELECT 1 AS id\n" });
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await rows(page, ["stranger"]);
    await leave(FAILED_REQUEST);
  });
});
