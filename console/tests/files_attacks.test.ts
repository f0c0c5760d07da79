// Files whose names, texts, hovers and findings attack; a language server that comes and goes; and how the page looks.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LOOKS, FAILED_REQUEST, accessible, picture, visit } from "./lib/browser.ts";
import { disk, fileOf, findings, reads, save, settled, text, tree, write } from "./lib/files.ts";
import { Line } from "./lib/line.ts";
import { ATTACK, project, shop, write as writeFiles } from "./lib/projects.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

// The editor draws its cursor beside an empty picture without a source.
const MADE = "main img:not(.cm-widgetBuffer), main script, main b, main iframe, main [onclick], main [onerror], main [onmouseover], main a[href^=javascript]";
const BROKEN = /^error: Failed to load resource|ERR_|WebSocket connection/;
const NAME = "<img src=x onerror=alert(1)>";

/** Files whose names, keys and descriptions attack. */
function hostile(): string {
  return project("hostile", {
    [`models/${NAME}.sql`]: "SELECT 1 AS id\n",
    "models/javascript:alert(1).sql": "SELECT 1 AS id\n",
    "models/\u202Egnirts.sql": "SELECT 1 AS id\n",
    "models/<b>folder<\u200B>/x.sql": "SELECT 1 AS id\n",
    "models/reads.sql": `SELECT * FROM "${NAME}"\n`,
    "models/words.yaml": `type: model\nsql: SELECT 1 AS id\n${JSON.stringify(`${ATTACK} [link](javascript:alert(1)) <p onclick=alert(2)>`)}: 1\n`,
    "models/failing.sql": `-- @materialize: true\nSELECT error('${ATTACK.replaceAll("'", "''")}') AS id\n`,
  });
}

served("files that attack whoever looks at them", hostile, (on) => {
  test("U9 are words in the tree, the tabs, the findings, hovers, proposals and dialogs", async () => {
    const { page, leave } = await visit(fileOf(on.program.home, "hostile", "models/words.yaml"));
    const harmless = async () => {
      expect(await page.locator(MADE).count()).toBe(0);
      expect(await page.locator("main").innerText()).not.toMatch(/[\u202A-\u202E\u2066-\u2069\u001b]/);
    };
    await text(page, "models/words.yaml").waitFor();
    await findings(page).waitFor();
    await harmless();
    await tree(page).getByRole("link", { name: `${NAME}.sql` }).click();
    await text(page, `models/${NAME}.sql`).waitFor();
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByText("1 resource reads it").waitFor();
    await harmless();
    await page.getByRole("button", { name: "Leave it" }).click();
    await tree(page).getByRole("link", { name: "failing.sql" }).click();
    await findings(page).getByText("javascript:alert(4)").waitFor();
    await harmless();
    await tree(page).getByRole("link", { name: "reads.sql" }).click();
    await reads(page, "models/reads.sql", /onerror/);
    await text(page, "models/reads.sql").getByText("onerror").first().hover();
    await page.locator(".cm-tooltip").first().waitFor();
    await harmless();
    await write(page, "models/reads.sql", "SELECT * FROM ");
    await page.keyboard.press("Control+Space");
    await page.getByRole("option").first().waitFor();
    await harmless();
    await picture(page, "files attacks");
    await leave();
  });

  test("are not led out of the project by an address", async () => {
    const { page, leave } = await visit(fileOf(on.program.home, "hostile"));
    const { pathname } = new URL(page.url());
    for (const path of ["..%2f..%2fetc%2fpasswd", "%2e%2e/watershed.yaml", ".env", "models%00.sql", "models/READS.sql", ".watershed/state"]) {
      await page.goto(`${on.program.origin}${pathname}${path}`);
      await page.locator("main").waitFor();
      await page.locator("main .problem, main h1").first().waitFor({ state: "attached" });
      await page.getByText("Reading the file…").waitFor({ state: "detached" });
      expect(await page.getByRole("textbox", { name: /^Text of/ }).count()).toBe(0);
    }
    await leave(FAILED_REQUEST);
  });
});

served("the language server", shop, (on) => {
  let line: Line;
  beforeAll(async () => {
    line = await Line.open(on.program.port);
  });
  afterAll(() => line?.close());

  test("that goes away is said to, and has the open texts when it is back", async () => {
    const { page, leave } = await visit(fileOf(`${line.origin}/`, "shop", "models/best.sql"));
    await reads(page, "models/best.sql", /FROM daily/);
    line.cut();
    await page.getByText("Nobody judges what you type").waitFor();
    await write(page, "models/best.sql", "SELECT 1 AS id FROM {{ ref 'nothing' }}\n");
    line.mend();
    await page.getByText("Nobody judges what you type").waitFor({ state: "detached" });
    await findings(page).waitFor();
    expect(disk(on.program, "models/best.sql")).toContain("FROM daily");
    await page.getByRole("button", { name: "Undo all" }).click();
    await findings(page).waitFor({ state: "detached" });
    await leave(BROKEN);
  });

  test("is not needed to save, and a refusal of the service stands in its words", async () => {
    const refuse = { status: 403, code: "remote-edit-off", detail: "files of `shop` may run programs: only the service's own user changes them", hint: "the operator can allow it by `remote_edit: true` in the configuration" };
    const between = await standIn(on.program.port, (asked, answer) => {
      if (asked.method !== "PUT") return false;
      asked.resume();
      answer.writeHead(403, { "content-type": "application/problem+json" });
      answer.end(JSON.stringify({ type: "problems/remote-edit-off", title: "", retryable: false, ...refuse }));
      return true;
    });
    const { page, leave } = await visit(fileOf(between.home, "shop", "models/best.sql"));
    await reads(page, "models/best.sql", /FROM daily/);
    await write(page, "models/best.sql", "SELECT 1 AS id\n");
    await save(page).click();
    await page.locator(".work .problem").getByText("only the service's own user changes them").waitFor();
    await page.locator(".work .problem").getByText("the operator can allow it").waitFor();
    expect(await text(page, "models/best.sql").innerText()).toContain("SELECT 1 AS id");
    await leave(BROKEN);
    between.close();
  });
});

served("a person who signs out", shop, (on) => {
  test("leaves no unsaved text in the browser", async () => {
    let isOut = false;
    const between = await standIn(on.program.port, (asked, answer) => {
      const json = (value: unknown) => (answer.writeHead(200, { "content-type": "application/json" }), answer.end(JSON.stringify(value)), true);
      if (asked.url === "/auth/logout") {
        asked.resume();
        isOut = asked.method === "POST";
        return json({});
      }
      if (asked.url !== "/v1/me") return false;
      return json({ schema: "watershed.me/1", principal: "anna", authentication: "session", attributes: {}, instances: { shop: "edit" }, roles: ["read", "operate", "edit", "query"], trust: { shop: "full" }, remote_edit: [] });
    });
    const { page, leave } = await visit(fileOf(between.home, "shop", "models/best.sql"));
    await page.getByText("Changes are refused here.").waitFor();
    await write(page, "models/best.sql", "SELECT 1 AS mine");
    const kept = () => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("watershed unsaved")).length);
    await expect.poll(kept).toBe(1);
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect.poll(() => isOut).toBe(true);
    await page.waitForURL(/\/ui\/shop$/);
    await expect.poll(kept).toBe(0);
    await leave(BROKEN);
    between.close();
  });
});

served("the page of files", shop, (on) => {
  test.each([...LOOKS])("has nothing serious in the $theme theme at $width pixels", async ({ theme, width }) => {
    writeFiles(on.program.project, { "models/bad.yaml": "type: model\nsqll: SELECT 1\n", "models/daily.sql": "-- @materialize: true\nSELECT shop, sum(amount) AS taken FROM ordres GROUP BY shop\n" });
    const options = { colorScheme: theme, viewport: { width, height: width > 400 ? 900 : 800 } };
    const { page, leave } = await visit(fileOf(on.program.home, "shop"), options);
    const look = async (name: string) => {
      await accessible(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `files ${name} ${theme} ${width}`);
    };
    await page.getByText("Choose a file.").waitFor();
    await look("none");
    await tree(page).getByRole("link", { name: "bad.yaml" }).click();
    await findings(page).waitFor();
    await look("broken");
    await write(page, "models/bad.yaml", "type: model\nsql: SELECT 1 AS id\nmaterial");
    await page.getByRole("option").first().waitFor();
    await look("completed");
    await page.keyboard.press("Escape");
    await write(page, "models/bad.yaml", "type: model\nsql: SELECT 1 AS id\n");
    await save(page).click();
    await settled(page);
    await look("saved");
    await page.getByRole("button", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByText("nothing that the compiler sees").waitFor();
    await look("delete");
    await page.keyboard.press("Escape");
    await page.goto(fileOf(on.program.home, "shop", "models/nothing.sql"));
    await page.getByText("There is no file").first().waitFor();
    await look("missing");
    rmSync(join(on.program.project, "models/bad.yaml"));
    await leave(FAILED_REQUEST);
  });
});
