// Who was told, and what is due: an alert with its rows, a dead message sent again, a snooze, a report, and schedules ahead.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test, afterAll } from "vitest";
import { accessible, picture, visit } from "./lib/browser.ts";
import { find, home, tabTo, told, until } from "./lib/journey.ts";
import { project } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** A receiver that refuses for good until it is mended. */
let isMended = false;
let taken = 0;
const receiver: Server = createServer((asked, answer) => {
  asked.resume().on("end", () => {
    if (isMended) taken += 1;
    answer.writeHead(isMended ? 200 : 410).end();
  });
});
await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
afterAll(() => void receiver.close());

function stock(): string {
  const { port } = receiver.address() as AddressInfo;
  return project("stock", {
    "connectors/outbox.yaml": "type: connector\ndriver: file\npath: outbox\n",
    "connectors/hook.yaml": `type: connector\ndriver: webhook\nurl: http://127.0.0.1:${port}/hook\n`,
    "models/stock.sql": "-- @materialize: true\nSELECT i AS item, i - 2 AS rest FROM range(5) t(i)\n",
    "alerts/low.yaml":
      "type: alert\ndisplay_name: Stock is low\nrefresh: {every: 2h, run_in_dev: true}\ndata:\n  sql: SELECT item, rest, '<b>x</b>' AS mark FROM stock WHERE rest < 0\nnotify:\n  file: outbox\n  webhook: hook\n",
    "alerts/calm.yaml": "type: alert\nrefresh: {every: 2h, run_in_dev: true}\ndata:\n  sql: SELECT item FROM stock WHERE rest > 100\nnotify:\n  file: outbox\n",
    "reports/daily.yaml":
      "type: report\ndisplay_name: The stock\nrefresh: {cron: \"0 7 * * *\", time_zone: Asia/Tokyo, run_in_dev: true}\ndata:\n  sql: SELECT * FROM stock\nexport: {format: csv}\nnotify: {file: outbox}\n",
  });
}

served("the night of a project with alerts and reports", stock, (on) => {
  const message = async () => (await on.program.list("&all=true&kind=notification")).find(({ result }) => result.receiver.includes("hook"));

  test("says what fails and who was not told; the dead message is found, and sent again", async () => {
    await expect.poll(async () => (await message())?.result.standing).toBe("dead");
    const { page, leave } = await visit(`${home(on.program.home, "stock")}/activity`);
    await page.getByRole("region", { name: "What failed 1" }).getByText("still so").waitFor();
    const alerts = page.getByRole("list", { name: "Alerts" }).getByRole("listitem");
    await expect.poll(() => alerts.count()).toBe(2);
    // What fails is first, with its rows as text.
    await alerts.first().getByText("fails", { exact: true }).waitFor();
    await alerts.first().getByText(/2 rows found: item 0, rest -2, mark <b>x<\/b>;/).waitFor();
    await alerts.nth(1).getByText("passes").waitFor();
    expect(await page.locator("svg [data-verdict='fail']").count()).toBeGreaterThan(0);
    const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
    await messages.first().getByText("dead", { exact: true }).waitFor();
    await messages.first().getByText(/connector "hook"/).waitFor();
    await messages.nth(1).getByText("delivered", { exact: true }).waitFor();
    await accessible(page);
    await picture(page, "night");
    isMended = true;
    await messages.first().getByRole("button", { name: /^Send again: / }).click();
    await expect.poll(() => messages.getByText("dead", { exact: true }).count()).toBe(0);
    expect((await message()).result.standing).toBe("delivered");
    expect(taken).toBe(1);
    await leave();
  });

  test("is snoozed until a time and not any more, and evaluated, by keyboard alone, also after a restart", async () => {
    const { page, leave } = await visit(home(on.program.home, "stock"), { colorScheme: "dark", viewport: { width: 390, height: 900 } });
    await page.getByText("low").first().waitFor();
    await find(page, "activity");
    // Parts of a page are loaded when they are looked at: who stops the service before has a page that asks to be loaded anew.
    await page.getByRole("button", { name: "Snooze low" }).waitFor();
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await tabTo(page, "Snooze low");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Snooze low?" });
    await dialog.getByText(/Nobody is told of it until .*(UTC|GMT)/).waitFor();
    await accessible(page);
    await tabTo(page, "Snooze");
    await page.keyboard.press("Enter");
    await told(page, "Snooze alert/low snoozed");
    await page.getByText(/^snoozed until /).waitFor();
    await until(() => on.program.ask("resources/alert/low"), ({ result }) => Date.parse(result.snoozed_until) > Date.now() + 7 * 3_600_000, page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await picture(page, "night dark 390");
    await tabTo(page, "End the snooze of low");
    await page.keyboard.press("Enter");
    await until(() => on.program.ask("resources/alert/low"), ({ result }) => result.snoozed_until === null, page);
    const before = (await on.program.ask("resources/alert/low")).result.history.length;
    await tabTo(page, "Evaluate low");
    await page.keyboard.press("Enter");
    await until(() => on.program.ask("resources/alert/low"), ({ result }) => result.history.length > before, page);
    await leave(/Failed to load resource|ERR_/);
  });

  test("lists schedules ahead on both clocks, and a report with the file that was made", async () => {
    const { page, leave } = await visit(`${home(on.program.home, "stock")}/activity`, { timezoneId: "Europe/Oslo" });
    const ahead = page.getByRole("list", { name: "The next 24 hours" }).getByRole("listitem");
    await expect.poll(() => ahead.count()).toBe(3);
    await ahead.filter({ hasText: "daily" }).getByText(/07:00 GMT\+9, Asia\/Tokyo/).waitFor();
    const reports = page.getByRole("list", { name: "Reports" });
    await reports.getByText("not made yet").waitFor();
    await reports.getByRole("button", { name: "Run and send daily" }).click();
    await reports.getByText(/\.csv, 5 rows, \d+ bytes, to 1 receiver/).waitFor();
    await picture(page, "night ahead");
    await leave();
  });
});
