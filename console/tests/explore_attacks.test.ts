// Explores whose content attacks whoever looks at it, and formats of all numbers.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatOf } from "../src/screens/explore/format/index.ts";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { exploreOf, settled, told } from "./lib/explore.ts";
import { hostile, numbers } from "./lib/projects.ts";
import { SEED } from "./lib/random.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

served("an explore that attacks whoever looks at it", hostile, (on) => {
  const MARKS = /[\u202A-\u202E\u2066-\u2069\u001b]/;

  test("is words everywhere, and its links are those of the web that say where they lead", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "hostile", "words", "by=word"));
    for (const words of ["by=word", "view=pivot&rows=word&columns=kind", "view=rows", "is.word=%3Cimg+src%3Dx+onerror%3Dalert(9)%3E%E2%80%AE&compare=-1P&range=P4W"]) {
      await page.goto(exploreOf(on.program.home, "hostile", "words", words));
      await settled(page);
      await page.locator("main details").evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
      await settled(page);
      expect(await page.locator("main").innerText()).not.toMatch(MARKS);
      const made = "main img, main script, main b, main iframe, main [onclick], main [onerror], main [onmouseover]";
      expect(await page.locator(made).count()).toBe(0);
      const links = await page.locator("main a[href]").evaluateAll((all) => all.map((link) => [(link as HTMLAnchorElement).href, (link as HTMLAnchorElement).rel, link.textContent]));
      for (const [href, rel, text] of links) {
        expect(href).toMatch(/^https:\/\/example\.org\/\d*$/);
        expect(rel).toContain("noopener");
        expect(text).toContain("example.org");
      }
    }
    await page.goto(exploreOf(on.program.home, "hostile", "words"));
    await settled(page);
    await page.getByRole("heading", { name: "Kind", exact: true }).scrollIntoViewIfNeeded();
    await page.locator("main a[target=_blank]").first().waitFor();
    // A missing value, an empty one, and values that differ by case alone are told apart.
    const board = page.getByRole("region", { name: "By dimension" });
    for (const value of ["no value", "empty text", "Case", "case"]) expect(await board.getByRole("button", { name: value, exact: true }).count()).toBe(1);
    expect(await board.getByRole("button", { name: /^w{100}/ }).isDisabled()).toBe(true);
    await leave();
  });

  test("gives files whose cells no program of sheets runs", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "hostile", "words", "view=pivot&rows=cell&measures=n"));
    await settled(page);
    await page.getByText("take along").click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV", exact: true }).click();
    const text = readFileSync(await (await download).path(), "utf8");
    expect(text).toContain(`"'=HYPERLINK(""https://example.org"")",20`);
    expect(text).toContain(`"'@SUM(A1)",20`);
    expect(text).not.toMatch(/^"?[=@+]/m);
    await leave();
  });

  test("has colours of its theme alone, whatever a service says of them", async () => {
    const colours = { light: { primary: "url(https://example.org/x)", secondary: "red; background: url(https://example.org/y)", "fg-primary": "#fefefe", "kpi-positive": "var(--bg)" }, dark: {} };
    const other = await standIn(on.program.port, (asked, answer) => {
      if (!/resources\/explore\/words\?/.test(asked.url ?? "")) return false;
      answer.writeHead(200, { "content-type": "application/json" });
      answer.end(JSON.stringify({ kind: "explore", name: "words", spec: { metrics_view: "words", embedded_theme: colours }, result: { metrics_view: "words", measures: ["n"], dimensions: ["word"] } }));
      return true;
    });
    const { page, leave } = await visit(exploreOf(other.home, "hostile", "words"), { colorScheme: "light" });
    await settled(page);
    expect(await page.locator("article.explore").evaluate((one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundImage])).toEqual(["rgb(26, 32, 39)", "none"]);
    expect(await page.evaluate(() => document.adoptedStyleSheets.map((sheet) => [...sheet.cssRules].map((rule) => rule.cssText).join("")).join(""))).not.toMatch(/url|example/);
    await leave();
    other.close();
  });

  test("whose view is broken says why", async () => {
    const gone = await standIn(on.program.port, (asked, answer) => {
      if (!/\/metrics\/words\/query/.test(asked.url ?? "")) return false;
      answer.writeHead(422, { "content-type": "application/problem+json" });
      answer.end(JSON.stringify({ type: "/problems/project-error", title: "project error", status: 422, code: "project-error", detail: "the metrics view is broken", hint: "mend it", retryable: false }));
      return true;
    });
    const { page, leave } = await visit(exploreOf(gone.home, "hostile", "words"));
    await page.getByText("the metrics view is broken").waitFor();
    await page.getByRole("link", { name: "What is wrong with it" }).waitFor();
    await leave(FAILED_REQUEST);
    gone.close();
  });
});

const COUNT = 10_000;
served("numbers of all sizes", () => numbers(SEED, COUNT), (on) => {
  test(`are written as the program writes them, in every format (seed ${SEED})`, async () => {
    const measures = ["bare", ...Array.from({ length: 21 }, (_, place) => `m${place}`)];
    const query = { dimensions: ["id"], measures, sort: ["id"] };
    const whole = { metrics_view: "numbers", ...query, limit: COUNT };
    const answer = await on.program.ask("metrics/numbers/query", { method: "POST", body: { query, limit: COUNT } });
    const [, ...rows] = await told(on.program, whole, "numbers");
    expect(rows).toHaveLength(COUNT);
    const formats = answer.columns.map((column: any) => formatOf(column, "UTC"));
    const wrong: string[] = [];
    for (const [number, row] of answer.rows.entries()) {
      for (let place = 1; place < row.length; place++) {
        const shown = formats[place](row[place]).trim();
        if (shown !== rows[number]![place]) wrong.push(`${row[place]} as ${answer.columns[place].format_preset ?? answer.columns[place].format_d3}: ${shown}, not ${rows[number]![place]}`);
      }
    }
    expect(wrong.slice(0, 10)).toEqual([]);
  }, 120_000);
});
