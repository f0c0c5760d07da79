// Files in the browser: mended at the line, saved, followed; by two at once; renamed, deleted, and brought back.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessible, FAILED_REQUEST, picture, visit } from "./lib/browser.ts";
import { disk, fileOf, findings, reads, save, settled, strip, text, tree, write } from "./lib/files.ts";
import { find, pageOf, shows, tabTo } from "./lib/journey.ts";
import { shop, write as writeFiles } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const DAILY = "models/daily.sql";
const GOOD = "-- What each shop takes.\n-- @materialize: true\nSELECT shop, sum(amount) AS taken, count(*) AS orders\nFROM orders\nGROUP BY shop\n";
const MISTAKE = GOOD.replace("FROM orders", "FROM ordres");

served("a mistake in a file", shop, (on) => {
  test("is mended by mouse, from the red node to its line, and what depends on it turns green", async () => {
    writeFiles(on.program.project, { [DAILY]: MISTAKE });
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "best"));
    await shows(page, "blocked");
    await page.getByRole("region", { name: "Why it is blocked" }).getByRole("link", { name: "models/daily.sql:4:6" }).click();
    await text(page, DAILY).waitFor();
    expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe("/ui/shop/files/models/daily.sql?line=4&column=6");
    await findings(page).getByText("unknown-table").waitFor();
    await tree(page).getByRole("listitem").filter({ hasText: "daily.sql" }).getByText("has an error").waitFor();
    await text(page, DAILY).getByText("ordres").dblclick();
    await page.keyboard.type("orders");
    await page.getByText("not saved").first().waitFor();
    await save(page).click();
    await settled(page);
    await strip(page).getByText("All is well").waitFor();
    await findings(page).waitFor({ state: "detached" });
    await strip(page).getByRole("link", { name: "best" }).click();
    await shows(page, "ok");
    expect(disk(on.program, DAILY)).toBe(GOOD);
    await leave(FAILED_REQUEST);
  });

  test("is mended by keyboard alone", async () => {
    writeFiles(on.program.project, { [DAILY]: MISTAKE });
    const { page, leave } = await visit(`${on.program.home}ui/shop`);
    await page.getByText("best").first().waitFor();
    await find(page, "daily.sql");
    await text(page, DAILY).waitFor();
    await findings(page).getByText("unknown-table").waitFor();
    await tabTo(page, "line 4");
    await page.keyboard.press("Enter");
    await expect.poll(() => text(page, DAILY).evaluate((one) => (one.getRootNode() as ShadowRoot).activeElement === one)).toBe(true);
    await page.keyboard.press("Control+Delete");
    await page.keyboard.type("ord");
    await page.keyboard.press("Control+Space");
    await page.getByRole("option", { name: /^orders/ }).waitFor();
    // What was typed a moment ago is not taken for a choice.
    await page.waitForTimeout(150);
    await page.keyboard.press("Enter");
    await reads(page, DAILY, /FROM orders\n/);
    await page.keyboard.press("Control+s");
    await settled(page);
    await strip(page).getByText("All is well").waitFor();
    expect(disk(on.program, DAILY)).toBe(GOOD);
    await leave();
  });
});

served("a file", shop, (on) => {
  const open = (path: string, query = "") => visit(fileOf(on.program.home, "shop", path, query));

  test("is renamed and deleted after it was said what that means, and comes back", async () => {
    const { page, leave } = await open("models/orders.sql");
    await text(page, "models/orders.sql").waitFor();
    await page.getByRole("button", { name: "Rename…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("4 resources read it, and will fail").waitFor();
    await dialog.getByRole("textbox").fill("models/all_orders.sql");
    await dialog.getByRole("button", { name: "Rename", exact: true }).click();
    await text(page, "models/all_orders.sql").waitFor();
    expect(existsSync(join(on.program.project, "models/orders.sql"))).toBe(false);
    await settled(page);
    await strip(page).getByText("not well").waitFor();
    await picture(page, "files renamed");
    await page.getByRole("button", { name: "Take the old name again" }).click();
    await text(page, "models/orders.sql").waitFor();
    await settled(page);
    await page.getByRole("region", { name: "The way back" }).waitFor({ state: "detached" });
    await expect.poll(async () => (await on.program.list()).every(({ health }) => health === "ok")).toBe(true);

    const was = disk(on.program, DAILY);
    await tree(page).getByRole("link", { name: "daily.sql" }).click();
    await text(page, DAILY).waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await dialog.getByText("goes to the trash, and can come back until").waitFor();
    await dialog.getByText(/^1 resource reads it/).waitFor();
    await picture(page, "files delete");
    await accessible(page);
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("region", { name: "The way back" }).getByText("models/daily.sql is deleted.").waitFor();
    await expect.poll(() => existsSync(join(on.program.project, DAILY))).toBe(false);
    await page.getByRole("button", { name: "Bring it back" }).click();
    await text(page, DAILY).waitFor();
    expect(disk(on.program, DAILY)).toBe(was);
    await settled(page);
    await expect.poll(async () => (await on.program.list()).every(({ health }) => health === "ok")).toBe(true);
    await leave(FAILED_REQUEST);
  });

  test("that is new is made, refused where its path is not served, and judged while it is typed", async () => {
    const { page, leave } = await open("");
    await page.getByRole("button", { name: "New…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("models/new/first.sql");
    await dialog.getByRole("button", { name: "Begin" }).click();
    const path = "models/new/first.sql";
    await write(page, path, "SELECT 1 AS id FROM {{ ref 'nothing' }}");
    await findings(page).waitFor();
    await write(page, path, "SELECT id FROM orders");
    await page.keyboard.press("Control+s");
    await settled(page);
    expect(disk(on.program, path)).toBe("SELECT id FROM orders");
    for (const [refused, words] of [["notes.txt", "can be written"], [".env", "Variables are no files of this page"], ["models/x.ENV", "Variables are no files of this page"], ["models/../x.sql", "leads up"], ["models/a<b.sql", "sign that names of files should not have"]] as const) {
      await page.getByRole("button", { name: "New…" }).click();
      await dialog.getByRole("textbox").fill(refused);
      await dialog.getByRole("button", { name: "Begin" }).click();
      await page.locator(".work .bar, [role=dialog] .problem").first().waitFor();
      if (await dialog.isVisible()) {
        await dialog.getByText(words).waitFor();
        await dialog.getByRole("button", { name: "Leave it" }).click();
        continue;
      }
      await save(page).click();
      await page.locator(".work .problem").getByText(words).waitFor();
      await page.getByRole("button", { name: `Close ${refused}` }).click();
    }
    expect(await tree(page).getByText(".env").count()).toBe(0);
    await leave(FAILED_REQUEST);
  });

  test("that two edit is saved by one; the other sees both texts, and decides", async () => {
    const [one, two] = [await open(DAILY), await open(DAILY)];
    await text(one.page, DAILY).waitFor();
    await write(two.page, DAILY, GOOD.replace("What each shop takes.", "What every shop takes."));
    await write(one.page, DAILY, GOOD.replace("GROUP BY shop", "GROUP BY shop\nORDER BY shop"));
    await save(one.page).click();
    await settled(one.page);
    await two.page.getByRole("alert").getByText("has changed on disk since you began").waitFor();
    await two.page.getByRole("button", { name: "Save", exact: true }).click();
    const both = two.page.getByRole("region", { name: `Two texts of ${DAILY}` });
    await both.getByRole("textbox", { name: "On disk, as somebody saved it" }).getByText("What each shop takes.").waitFor();
    await both.getByRole("textbox", { name: "Yours, which you can change here" }).getByText("What every shop takes.").waitFor();
    await picture(two.page, "files conflict");
    await accessible(two.page);
    expect(disk(on.program, DAILY)).toContain("ORDER BY shop");
    await both.getByRole("button", { name: "Take this part from the disk" }).last().click();
    await both.getByRole("button", { name: "Save mine as changed here" }).click();
    await settled(two.page);
    expect(disk(on.program, DAILY)).toContain("What every shop takes.");
    expect(disk(on.program, DAILY)).toContain("ORDER BY shop");
    // The first one has nothing unsaved: he is shown what is there now.
    await reads(one.page, DAILY, /What every shop takes/);
    expect(await save(one.page).isDisabled()).toBe(true);
    await one.leave();
    await two.leave(FAILED_REQUEST);
  });

  test("that nobody has changed here follows the disk, its cursor stays, and a changed one says so", async () => {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, leave } = await open(DAILY, "?line=4&column=6");
    await reads(page, DAILY, /FROM orders/);
    await expect.poll(() => text(page, DAILY).evaluate((one) => (one.getRootNode() as ShadowRoot).activeElement === one)).toBe(true);
    writeFiles(on.program.project, { [DAILY]: `-- From the disk.\n${GOOD}` });
    await reads(page, DAILY, /From the disk/);
    await page.keyboard.type("/**/");
    await reads(page, DAILY, /FROM \/\*\*\/orders/);
    writeFiles(on.program.project, { [DAILY]: GOOD });
    await page.getByRole("alert").getByText("has changed on disk since you began").waitFor();
    rmSync(join(on.program.project, DAILY));
    await page.getByRole("alert").getByText("The file is gone from the disk").waitFor();
    await page.getByRole("button", { name: "Write it anew" }).click();
    await settled(page);
    expect(disk(on.program, DAILY)).toBe(`-- From the disk.\n${GOOD.replace("FROM orders", "FROM /**/orders")}`);
    await leave(FAILED_REQUEST);
  });

  test("whose text was not saved is offered at the next visit, and never saved by itself", async () => {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, leave } = await open(DAILY);
    await reads(page, DAILY, /FROM orders/);
    await write(page, DAILY, "SELECT 1 AS unsaved");
    await page.reload();
    await reads(page, DAILY, /FROM orders/);
    await page.getByText("A text of this file was not saved").waitFor();
    expect(disk(on.program, DAILY)).toBe(GOOD);
    await page.goto(fileOf(on.program.home, "shop"));
    await page.getByRole("region", { name: "Unsaved texts of earlier visits" }).getByRole("link", { name: DAILY }).click();
    await page.getByRole("button", { name: "Show it" }).click();
    await reads(page, DAILY, /SELECT 1 AS unsaved/);
    await page.getByText("A text of this file was not saved").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Undo all" }).click();
    await reads(page, DAILY, /FROM orders/);
    await expect.poll(() => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("watershed unsaved")).length)).toBe(0);
    await leave();
  });

  test("keeps its line ends, its mark and its missing last newline", async () => {
    const odd = "\uFEFF-- one\r\nSELECT 1 AS id\r\nFROM orders";
    writeFiles(on.program.project, { "models/odd.sql": odd });
    const { page, leave } = await open("models/odd.sql");
    await reads(page, "models/odd.sql", /FROM orders/);
    await text(page, "models/odd.sql").click();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("End");
    await page.keyboard.type("!");
    await page.keyboard.press("Enter");
    await page.keyboard.type("-- two");
    await page.keyboard.press("Control+s");
    await settled(page);
    expect(disk(on.program, "models/odd.sql")).toBe(odd.replace("-- one", "-- one!\r\n-- two"));
    await page.getByText("This text is larger than 128 KiB").waitFor({ state: "detached" });
    await write(page, "models/odd.sql", `SELECT '${"x".repeat(140_000)}' AS long`);
    await page.getByText("This text is larger than 128 KiB").waitFor();
    await save(page).click();
    await page.locator(".work .problem").getByText("more than 131072 bytes").first().waitFor();
    rmSync(join(on.program.project, "models/odd.sql"));
    await leave(FAILED_REQUEST);
  });

  test("is saved with others after it was looked what they would break, which forbids nothing", async () => {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, leave } = await open(DAILY);
    await reads(page, DAILY, /FROM orders/);
    await write(page, DAILY, `-- two\n${GOOD}`);
    await tree(page).getByRole("link", { name: "orders.yaml" }).click();
    await text(page, "metrics/orders.yaml").waitFor();
    const views = disk(on.program, "metrics/orders.yaml");
    await write(page, "metrics/orders.yaml", views.replace("measures:", "measurs:"));
    await page.getByRole("button", { name: "Save all 2…" }).click();
    const dialog = page.getByRole("dialog", { name: "Save 2 files?" });
    await dialog.getByText(/would bring \d+ mistake/).waitFor();
    await picture(page, "files save all");
    await dialog.getByRole("button", { name: "Save them anyway" }).click();
    await settled(page);
    expect(disk(on.program, "metrics/orders.yaml")).toContain("measurs");
    expect(disk(on.program, DAILY)).toBe(`-- two\n${GOOD}`);
    writeFiles(on.program.project, { [DAILY]: GOOD, "metrics/orders.yaml": views });
    await reads(page, "metrics/orders.yaml", /model: orders/);
    await leave();
  });

  test("tells of a name where it is declared, where it is used, and what is known of it, by keys", async () => {
    const { page, leave } = await open("models/best.sql", "?line=2&column=7");
    await reads(page, "models/best.sql", /FROM daily/);
    await expect.poll(() => text(page, "models/best.sql").evaluate((one) => (one.getRootNode() as ShadowRoot).activeElement === one)).toBe(true);
    // A name is known once the language server has read the project.
    const told = page.getByRole("region", { name: "The name at the cursor" }).getByText("model");
    const ask = async () => {
      await text(page, "models/best.sql").focus();
      await page.keyboard.press("F2");
      return told.count();
    };
    await expect.poll(ask, { interval: 250 }).toBeGreaterThan(0);
    await text(page, "models/best.sql").focus();
    await page.keyboard.press("Shift+F12");
    await page.getByRole("region", { name: "Where it is used" }).getByRole("link", { name: "models/best.sql:2:6" }).waitFor();
    await text(page, "models/best.sql").focus();
    await page.keyboard.press("F12");
    await text(page, DAILY).waitFor();
    expect(new URL(page.url()).pathname).toBe("/ui/shop/files/models/daily.sql");
    await leave();
  });
});
