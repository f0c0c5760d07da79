// An edit that would throw rows away: read as a plan, asked again as it changed, approved, and watched to its end.

import { expect, test } from "vitest";
import { accessible, picture, visit } from "./lib/browser.ts";
import { find, home, pageOf, shows, tabTo, told } from "./lib/journey.ts";
import { project, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const events = (amount: number) => ({ "models/events.yaml": `type: model\nincremental: true\nsql: SELECT i AS id, ${amount} AS amount FROM range(12) t(i)\n` });

function sales(): string {
  return project("sales", { ...events(10), "models/total.sql": "-- @materialize: true\nSELECT sum(amount) AS total FROM events\n" });
}

served("an edit that is held", sales, (on) => {
  test("is read as a plan, asked again once it has changed, approved, and watched", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "sales", "model", "events"));
    await shows(page, "ok");
    const plan = page.getByRole("region", { name: "What would run" });
    await plan.getByRole("button", { name: "Plan", exact: true }).click();
    await plan.getByText("Nothing would be done.").waitFor();
    write(on.program.project, events(20));
    await shows(page, "failed");
    const approval = plan.getByRole("group", { name: "Approval" });
    await approval.getByText("Throws away 12 rows of events, and makes them anew by the new definition. Then 1 resource that waits for it follows.").waitFor();
    await plan.getByRole("listitem").filter({ hasText: "total" }).getByText("is blocked", { exact: true }).waitFor();
    await accessible(page);
    await picture(page, "plan held");
    // Another edit comes after the plan was read: it is shown anew, and nothing is done.
    const version = (await on.program.ask("resources/model/events")).spec_version;
    write(on.program.project, events(30));
    await expect.poll(async () => (await on.program.ask("resources/model/events")).spec_version).toBeGreaterThan(version);
    await approval.getByRole("button", { name: "Approve" }).click();
    await plan.getByRole("alert").getByText("The plan has changed since you read it. Nothing was done; read it again.").waitFor();
    expect((await on.program.ask("resources/model/events")).error.code).toBe("held-change");
    await approval.getByRole("button", { name: "Approve" }).click();
    await told(page, "Approve model/events built, 12 rows");
    await shows(page, "ok");
    await leave();
  });

  test("is approved by keyboard alone, also after a restart", async () => {
    const { page, leave } = await visit(home(on.program.home, "sales"), { colorScheme: "dark", viewport: { width: 390, height: 900 } });
    await page.getByText("events").first().waitFor();
    await find(page, "events");
    write(on.program.project, events(40));
    await shows(page, "failed");
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await page.getByRole("group", { name: "Approval" }).waitFor();
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await picture(page, "plan held dark 390");
    await tabTo(page, "Plan again");
    await page.keyboard.press("Enter");
    await tabTo(page, "Approve");
    await page.keyboard.press("Enter");
    await shows(page, "ok");
    await leave(/Failed to load resource|ERR_/);
  });
});
