// What a person asks for: one resource or many, with what came of it, and its reason in the history.

import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { action, find, history, home, latest, pageOf, shows, tabTo, told, until } from "./lib/journey.ts";
import { ENDLESS, forty, shop, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

served("a model", shop, (on) => {
  test("is paused, resumed, refreshed, cancelled and tried again by mouse, each with its reason in the history", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "prices"));
    await shows(page, "ok");
    await action(page, "Pause").click();
    await told(page, "Pause model/prices paused");
    await shows(page, "paused");
    // What is asked for meanwhile is not done, and says what it waits for.
    await action(page, "Reconcile").click();
    await told(page, "Reconcile model/prices paused: it waits for resume");
    await page.getByRole("log").getByRole("button", { name: "Resume" }).click();
    await told(page, "Resume model/prices resumed");
    await shows(page, "ok");
    // What is asked of one resource is told once: the latest of it.
    expect(await page.getByRole("log").getByRole("listitem").count()).toBe(1);

    await page.locator("summary.button").click();
    await page.getByRole("button", { name: /^Refresh Does the work/ }).click();
    await told(page, "Refresh model/prices built, 1 row");
    await latest(page, "done built because a refresh was asked for");

    // A query without an end, until it is cancelled.
    write(on.program.project, { "models/prices.sql": ENDLESS });
    await page.locator("main header [data-phase='running']").waitFor();
    await action(page, "Cancel").click();
    await told(page, "Cancel model/prices cancelled");
    await latest(page, "cancelled because it was edited");
    // What helps is a button, not the words of a command.
    const stands = page.getByRole("region", { name: "Where it stands" });
    await stands.getByText("a person stopped it").waitFor();
    await stands.getByRole("button", { name: "Reconcile prices" }).waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/watershed reconcile| --[a-z]/);

    // One that fails is tried again, fails again, and heals when what it lacked is there.
    write(on.program.project, { "models/prices.sql": "SELECT * FROM read_csv('data/prices.csv')\n" });
    await shows(page, "failed");
    await latest(page, "failed because it was edited");
    await action(page, "Retry").click();
    await told(page, 'Retry model/prices failed: file "data/prices.csv" does not exist');
    await latest(page, "failed because it was tried again");
    const chain = page.getByRole("region", { name: "History" }).locator(".chain").first();
    await chain.getByText("models/prices.sql").waitFor();
    write(on.program.project, { "data/prices.csv": "price\n1\n2\n" });
    await shows(page, "ok");
    await latest(page, "done built because something outside moved");
    await leave();
  });

  test("is refreshed with its dependents after the number was shown", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "orders"));
    await shows(page, "ok");
    await page.locator("summary.button").click();
    await page.getByRole("button", { name: /^Refresh with dependents/ }).click();
    const dialog = page.getByRole("dialog", { name: "Refresh 5 resources?" });
    await dialog.getByText("daily").waitFor();
    await dialog.getByRole("button", { name: "Refresh 5", exact: true }).click();
    await told(page, "Refresh 5 resources");
    await page.getByRole("log").locator("li.done").first().waitFor();
    await latest(page, "because a refresh was asked for");
    await leave();
  });

  test("says what would be lost before it is refreshed in full", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "shop", "model", "orders"));
    await shows(page, "ok");
    await page.locator("summary.button").click();
    await page.getByRole("button", { name: "Refresh in full… Forgets" }).click();
    const dialog = page.getByRole("dialog", { name: "Refresh 1 resource?" });
    await dialog.getByText("bit by bit").waitFor();
    const before = await on.program.ask("resources/model/orders");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(await on.program.ask("resources/model/orders")).toEqual(before);
    await leave();
  });

  test("is paused, resumed, refreshed and tested by keyboard alone", async () => {
    const { page, leave } = await visit(home(on.program.home, "shop"));
    await page.getByText("daily").first().waitFor();
    await find(page, "daily");
    await shows(page, "ok");
    await tabTo(page, "Pause");
    await page.keyboard.press("Enter");
    await shows(page, "paused");
    await find(page, "Resume daily");
    await shows(page, "ok");
    await find(page, "Refresh daily");
    await told(page, "Refresh model/daily built, 7 rows");
    await find(page, "Test daily");
    await told(page, "has no tests");
    await leave();
  });
});

served("forty failures of one cause", forty, (on) => {
  test("are tried again by their number, and a number that holds no more is asked for anew", async () => {
    const { page, leave } = await visit(home(on.program.home, "forty"));
    await page.getByText("reading_01").first().waitFor();
    await find(page, "retry all");
    const dialog = page.getByRole("dialog");
    await page.getByRole("dialog", { name: "Retry 40 resources?" }).waitFor();
    await dialog.getByText("and 28 more").waitFor();
    // One of them is mended meanwhile.
    write(on.program.project, { "models/reading_07.sql": "-- @materialize: true\nSELECT 7 AS reading\n" });
    await until(() => on.program.ask("resources/model/reading_07"), ({ health }) => health === "ok", page);
    await dialog.getByRole("button", { name: "Retry 40", exact: true }).click();
    await page.getByRole("dialog", { name: "Retry 39 resources?" }).waitFor();
    await dialog.getByText("You confirmed 40; meanwhile the choice stands for 39. Nothing was done.").waitFor();
    await dialog.getByRole("button", { name: "Retry 39", exact: true }).click();
    await told(page, "Retry 39 resources failed: 39 failed");
    // What they lack is there: all of them, and nothing that nobody asked for.
    write(on.program.project, { "data/meter.csv": "value\n1\n" });
    await until(() => on.program.list("&health=failed"), (failed) => failed.length === 0, page);
    expect((await on.program.list()).filter(({ health }) => health !== "ok")).toEqual([]);
    await leave(FAILED_REQUEST);
  });
});
