// The same below a path prefix, behind nginx.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { closeBrowser, visit } from "./lib/browser.ts";
import { findings } from "./lib/files.ts";
import { action, find, home, pageOf, shows, told } from "./lib/journey.ts";
import { canRun, needs } from "./lib/needs.ts";
import { lacksNginx, nginx } from "./lib/nginx.ts";
import { Program } from "./lib/program.ts";
import { shop, write } from "./lib/projects.ts";

describe.runIf(canRun && needs(lacksNginx))("below a path prefix behind nginx", () => {
  let program: Program;
  let proxy: { origin: string; stop(): Promise<void> };
  let at: string;
  beforeAll(async () => {
    program = await Program.start(shop(), "/data/tools");
    await program.settle();
    proxy = await nginx("/data/tools", program.port);
    at = `${proxy.origin}/data/tools/`;
  });
  afterAll(async () => {
    await proxy?.stop();
    await program?.stop();
    await closeBrowser();
  });

  test("a mistake is found, mended and its dependents turn green, and actions tell what came of them", async () => {
    const { page, leave } = await visit(home(at, "shop"));
    await page.getByText("best").first().waitFor();
    await find(page, "best");
    await shows(page, "ok");
    write(program.project, { "models/daily.sql": "SELECT shop FROM ordres\n" });
    await shows(page, "blocked");
    const why = page.getByRole("region", { name: "Why it is blocked" });
    await why.getByRole("link", { name: "models/daily.sql:1:18" }).click();
    // The language server answers below the prefix too.
    await findings(page).getByText("unknown-table").waitFor();
    await page.getByRole("textbox", { name: "Text of models/daily.sql" }).focus();
    await page.keyboard.press("Control+Space");
    await page.getByRole("option").first().waitFor();
    write(program.project, { "models/daily.sql": "SELECT shop, amount AS taken FROM orders\n" });
    await findings(page).waitFor({ state: "detached" });
    await find(page, "model/daily");
    await shows(page, "ok");
    await action(page, "Pause").click();
    await told(page, "Pause model/daily paused");
    await action(page, "Resume").click();
    await shows(page, "ok");
    const links = await page.locator("a[href]").evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).pathname));
    expect(links.filter((path) => !path.startsWith("/data/tools/"))).toEqual([]);
    await page.reload();
    await shows(page, "ok");
    await leave();
  });

  test("the page of a code can be opened from a problem", async () => {
    write(program.project, { "models/daily.sql": "SELECT shop FROM ordres\n" });
    const { page, leave } = await visit(pageOf(at, "shop", "model", "daily"));
    await shows(page, "failed");
    const link = page.getByRole("region", { name: "What is wrong" }).getByRole("link", { name: "unknown-table" });
    const answer = await page.request.get((await link.evaluate((it) => (it as HTMLAnchorElement).href)) ?? "");
    expect(answer.status()).toBe(200);
    expect(await answer.text()).toContain("### unknown-table");
    await leave();
  });
});
