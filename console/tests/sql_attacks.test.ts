// Answers, links and stored questions that attack whoever looks at them, and a person who may not ask.

import { expect, test } from "vitest";
import { ATTACK, project } from "./lib/projects.ts";
import { visit } from "./lib/browser.ts";
import { pageOf, shows } from "./lib/journey.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";
import { answer, ask, cells, data, ended, grid, sqlOf, text, write } from "./lib/sql.ts";

const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
// The editor draws its cursor beside an empty picture without a source.
const MADE = "main img:not(.cm-widgetBuffer), main script, main b, main iframe, main [onclick], main [onerror], main [onmouseover], main a[href^=javascript]";

/** An output whose columns, values and nested names all attack. */
function hostile(): string {
  return project("hostile", {
    "models/words.sql":
      `-- @materialize: true\nSELECT ${literal(ATTACK)} AS ${quoted(ATTACK)}, {${quoted("<img src=x onerror=alert(1)>")}: [${literal(ATTACK)}], "__proto__": 1} AS deep, 1.5 AS ${quoted("<b>n</b>")}\n`,
  });
}

served("an answer that attacks whoever looks at it", hostile, (on) => {
  test("U9 is words in headings, cells, beside the grid, in charts, completions and files", async () => {
    const { page, leave } = await visit(sqlOf(on.program.home, "hostile"));
    await answer(page, "SELECT * FROM words");
    const marks = /[\u202A-\u202E\u2066-\u2069\u001b]/;
    const harmless = async () => {
      expect(await page.locator(MADE).count()).toBe(0);
      expect(await page.locator("main").innerText()).not.toMatch(marks);
    };
    await harmless();
    await grid(page).focus();
    for (let column = 0; column < 3; column++) {
      await page.keyboard.press("Enter");
      await page.locator(".side").waitFor();
      await page.locator(".side summary").evaluateAll((all) => all.forEach((one) => (one as HTMLElement).click()));
      await harmless();
      await page.keyboard.press("Escape");
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press(" ");
      await page.getByText("Among the 1 rows that are there").waitFor();
      await harmless();
      await page.keyboard.press("Escape");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowRight");
    }
    await page.getByRole("button", { name: "chart", exact: true }).click();
    await page.locator("canvas").last().waitFor();
    await harmless();
    await page.getByText("words", { exact: true }).first().click();
    await page.getByRole("button", { name: "Insert this name" }).or(page.locator("button.name")).first().waitFor();
    await harmless();
    await write(page, "SELECT ");
    await page.keyboard.insertText(" FROM words");
    for (let step = 0; step < " FROM words".length; step++) await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Control+ ");
    await page.locator(".cm-tooltip-autocomplete li").first().waitFor();
    await harmless();
    expect(await page.locator(".cm-tooltip-autocomplete :is(img, script, b)").count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("img src");
    await page.getByRole("option", { name: /^column/ }).first().waitFor();
    expect(await page.locator("dialog img, dialog script").count()).toBe(0);
    await leave();
  });
});

served("a link", data, (on) => {
  test("runs nothing by itself, nor does a stored question, however it is made", async () => {
    const { page, leave } = await visit(`${on.program.home}ui/data`);
    let asked: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/query")) asked.push(request.postDataJSON().sql);
    });
    const stored = JSON.stringify([{ sql: "SELECT 'stored' AS word", at: Date.now(), ended: "<img src=x onerror=alert(1)>" }, { sql: ATTACK, at: 8.64e15 }, { sql: "x", at: -1e300 }, { sql: 1 }, null]);
    await page.evaluate((stored) => localStorage.setItem(`watershed questions ${JSON.stringify(["", "data", "local"])}`, stored), stored);
    for (const mark of ["#q=SELECT%201", "#q=%", "#q=", "#run=1&q=SELECT%201", `#q=${encodeURIComponent(ATTACK)}`, `#q=${"SELECT%201%2C".repeat(10_000)}`]) {
      await page.goto("about:blank");
      await page.goto(`${sqlOf(on.program.home, "data")}${mark}`);
      await text(page).waitFor();
      await page.getByRole("button", { name: "Your questions" }).click();
      await page.getByText("SELECT 'stored'").waitFor();
      expect(await page.locator(MADE).count()).toBe(0);
      await page.keyboard.press("Escape");
    }
    await page.getByRole("button", { name: "SELECT 'stored' AS word" }).first().click();
    expect(asked).toEqual([]);
    expect(await page.locator("section.answer").count()).toBe(0);
    await ask(page).click();
    await ended(page);
    expect(asked).toEqual(["SELECT 'stored' AS word"]);
    asked = [];
    // A link within the page that is open fills it in, and the answer that is there stays.
    await page.evaluate(() => (location.hash = "#q=SELECT%202%20AS%20two"));
    await page.getByText("Nothing was asked yet").waitFor();
    expect([asked, await cells(page, 0)]).toEqual([[], ["stored"]]);
    await leave();
  });

  test("of 100 KB fills the editor, and one of a megabyte is left out", async () => {
    const { page, leave } = await visit(`${on.program.home}ui/data`);
    const long = `SELECT '${"x".repeat(100_000)}' AS word`;
    await page.goto(sqlOf(on.program.home, "data", long));
    await page.getByText("Nothing was asked yet").waitFor();
    await ask(page).click();
    await ended(page);
    expect((await cells(page, 0))[0]).toMatch(/^x{100,300}…$/);
    await page.getByRole("button", { name: "Copy link" }).click();
    await page.getByText("too long for a link").waitFor();
    await page.goto("about:blank");
    await page.goto(sqlOf(on.program.home, "data", "x".repeat(1_000_000)));
    await page.getByText("was left out").waitFor();
    await leave();
  });

  test("that a person without the right opens shows the question, and offers nothing", async () => {
    // A project of this machine has one person, who may do everything: the service in its place tells of another one.
    const other = await standIn(on.program.port, (asked, answer) => {
      if (!asked.url?.endsWith("/v1/me")) return false;
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify({ schema: "watershed.me/1", principal: "reader", authentication: "token", roles: ["read", "operate"], instances: { data: "operate" }, attributes: {} }));
      return true;
    });
    const { page, leave } = await visit(sqlOf(other.home, "data", "SELECT secret FROM orders"));
    await page.getByText("Questions in SQL need a role with").waitFor();
    await page.getByText("SELECT secret FROM orders").waitFor();
    expect(await text(page).count() + (await ask(page).count()) + (await page.getByRole("link", { name: "SQL", exact: true }).count())).toBe(0);
    await page.goto(pageOf(other.home, "data", "model", "orders"));
    await shows(page, "ok");
    expect(await page.getByRole("button", { name: "Show the rows" }).count()).toBe(0);
    await leave();
    other.close();
  });
});

served("a browser whose storage is full", data, (on) => {
  test("asks all the same, and says that it keeps no more questions", async () => {
    const { page, leave } = await visit(sqlOf(on.program.home, "data"));
    await page.evaluate(() => {
      for (let size = 1 << 20; size > 0; size >>= 1) {
        try {
          for (let number = 0; ; number++) localStorage.setItem(`full ${size} ${number}`, "x".repeat(size));
        } catch {}
      }
    });
    await answer(page, "SELECT 1 AS one");
    await page.getByRole("button", { name: "Your questions" }).click();
    await page.getByText("Its storage is full").waitFor();
    await page.getByRole("button", { name: "SELECT 1 AS one", exact: true }).waitFor();
    await leave();
  });

  test("keeps the questions of one person, which can be searched and forgotten", async () => {
    const { page, leave } = await visit(sqlOf(on.program.home, "data"));
    for (const number of [1, 2, 3]) await answer(page, `SELECT ${number} AS n${number}`);
    await page.reload();
    await page.getByRole("button", { name: "Your questions" }).click();
    const list = page.getByRole("list", { name: "Your questions" });
    expect(await list.locator("code").allTextContents()).toEqual(["SELECT 3 AS n3", "SELECT 2 AS n2", "SELECT 1 AS n1"]);
    await page.getByRole("searchbox", { name: "Search your questions" }).fill("n2");
    await expect.poll(() => list.locator("code").allTextContents()).toEqual(["SELECT 2 AS n2"]);
    await page.getByRole("button", { name: "Forget SELECT 2 AS n2" }).click();
    await page.getByRole("searchbox", { name: "Search your questions" }).fill("");
    await page.getByRole("button", { name: "Forget all…" }).click();
    await page.getByText("Forget all 2?").waitFor();
    await page.getByRole("button", { name: "Forget them" }).click();
    await page.getByText("You have asked nothing yet.").waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Your questions" }).click();
    await page.getByText("You have asked nothing yet.").waitFor();
    await leave();
  });
});
