// Managed things: a session is followed down its tree, a part that fails is seen from above, and a session ended early.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { accessible, picture, visit } from "./lib/browser.ts";
import { find, home, tabTo, told, until } from "./lib/journey.ts";
import { copied } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** The lab, whose sessions are tried again every second for as long as a test may take. */
function lab(): string {
  const at = copied("lab");
  const session = join(at, "sessions/monday.yaml");
  writeFileSync(session, readFileSync(session, "utf8").replace("attempts: 5, base: 1s, cap: 10s", "attempts: 90, base: 1s, cap: 1s"));
  return at;
}

served("the managed things of a lab", lab, (on) => {
  test("are seen as trees with windows, and a session is ended early by an event", async () => {
    const { page, leave } = await visit(`${home(on.program.home, "lab")}/programs`);
    const list = page.getByRole("list", { name: "Managed" });
    await list.getByText("before its time").waitFor();
    await page.getByRole("button", { name: "monday", exact: true }).click();
    const stages = page.getByRole("list", { name: "Stages" });
    await stages.locator("[data-part='monday.shell']").getByText("there").waitFor();
    await stages.locator("[data-part='monday.web']").getByText("it answers").waitFor();
    await accessible(page);
    await picture(page, "managed");
    await page.getByRole("button", { name: "tuesday", exact: true }).click();
    await stages.getByText(/before: opens/).waitFor();
    // 09:00 in Oslo, in the zone of the one who looks, which is written out.
    await stages.getByText(/from 3 Mar 2099, \d\d:00:00 \S+ to 3 Mar 2099, \d\d:00:00 \S+, cleared by/).waitFor();
    await picture(page, "managed window");
    await page.getByRole("button", { name: "monday", exact: true }).click();
    await page.getByRole("button", { name: "Event…" }).click();
    const dialog = page.getByRole("dialog", { name: "Tell monday of an event?" });
    await dialog.getByText("Sets the desired stage to gone, until somebody sets another one.").waitFor();
    await accessible(page);
    await dialog.getByRole("button", { name: "Tell", exact: true }).click();
    await page.getByText("The event is stored; it concerns 1 resource.").waitFor();
    await stages.locator("[data-part='monday']").getByText(/set by the event/).first().waitFor();
    await until(() => on.program.ask("resources/managed/monday/tree"), ({ stage }) => stage === "gone", page);
    await stages.locator("[data-part='monday.web']").getByText("gone").waitFor();
    await leave();
  });

  test("go through a set and back by keyboard alone, also after a restart, and show from above what fails below", async () => {
    const { page, leave } = await visit(home(on.program.home, "lab"), { colorScheme: "dark", viewport: { width: 390, height: 900 } });
    await page.getByText("worker").first().waitFor();
    await find(page, "monday");
    await page.getByRole("button", { name: "Set…" }).waitFor();
    // The part is broken outside: what boots it fails from now on.
    const pod = join(on.program.project, "lab/pod");
    const good = readFileSync(pod, "utf8");
    writeFileSync(pod, good.replace("boot)\n", 'boot)\n    case $name in *shell) echo "no power in the rack" >&2; exit 9;; esac\n'));
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await tabTo(page, "Set…");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "Set the stage of monday?" });
    await dialog.getByRole("combobox").selectOption("active");
    await dialog.getByText("Moves monday and its 2 parts from gone to active.").waitFor();
    await tabTo(page, "Set");
    await page.keyboard.press("Enter");
    await told(page, "Set managed/monday set");
    const shell = page.locator("[data-part='monday.shell']");
    await shell.getByText(/attempt \d+ of 90/).waitFor();
    await shell.getByText("no power in the rack").first().waitFor();
    await shell.getByText("tries again").first().waitFor();
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await picture(page, "managed dark 390");
    await page.goto(`${home(on.program.home, "lab")}/programs`);
    await page.getByRole("list", { name: "Managed" }).getByText("tries again").waitFor();
    writeFileSync(pod, good);
    await until(() => on.program.ask("resources/managed/monday/tree"), ({ stage }) => stage === "active", page);
    await page.getByRole("list", { name: "Managed" }).getByText("tries again").waitFor({ state: "hidden" });
    await leave(/Failed to load resource|ERR_/);
  });
});
