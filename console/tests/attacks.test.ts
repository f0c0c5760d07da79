// Names, values and messages that attack the page, texts without measure, and pages that would frame ours.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { browser, visit } from "./lib/browser.ts";
import { home, pageOf, shows, told } from "./lib/journey.ts";
import { attack } from "./lib/projects.ts";
import { pour, standIn } from "./lib/stand_in.ts";
import { served } from "./lib/served.ts";

served("a project that attacks whoever looks at it", attack, (on) => {
  /** Marks that turn a text around and escapes of terminals are on no page. */
  const MARKS = /[\u202A-\u202E\u2066-\u2069\u001b]/;

  test("is words on every page, and nothing of them is obeyed", async () => {
    const { page, leave } = await visit(home(on.program.home, "attack"));
    await page.getByText("words").first().waitFor();
    expect(await page.locator("body").innerText()).not.toMatch(MARKS);
    const all = await on.program.list();
    expect(all.length).toBeGreaterThanOrEqual(9);
    for (const { kind, name, health } of all) {
      await page.goto(pageOf(on.program.home, "attack", kind, name));
      await shows(page, health);
      await page.getByRole("region", { name: "History" }).getByRole("listitem").first().waitFor();
      // Whatever is folded is looked at as well.
      const folded = page.locator("main details:not([open]) > summary:not(.button)");
      for (let opened = 0; opened < 50 && (await folded.count()) > 0; opened++) await folded.first().click();
      expect(await page.locator("main").innerText()).not.toMatch(MARKS);
      const made = "main img, main script, main b, main iframe, main [onclick], main [onerror], main [onmouseover]";
      expect(await page.locator(made).count()).toBe(0);
      const links = await page.locator("main a[href]").evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href));
      expect(links.filter((link) => !link.startsWith(on.program.home))).toEqual([]);
    }
    await leave();
  });

  test("can be asked for things by its odd names", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "attack", "model", "<img src=x onerror=alert(1)>"));
    await shows(page, "ok");
    await page.getByRole("button", { name: "Reconcile", exact: true }).click();
    await told(page, "Reconcile model/<img src=x onerror=alert(1)> nothing to do");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("onerror");
    await page.getByRole("option", { name: /Refresh <img/ }).click();
    await told(page, "model/<img src=x onerror=alert(1)> built");
    await leave();
  });

  test("with an endless message shows the beginning of it, and more when asked", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "attack", "model", "long"));
    await shows(page, "failed");
    const problem = page.getByRole("region", { name: "What is wrong" });
    await problem.getByText("All work and no play.").first().waitFor();
    expect((await problem.innerText()).length).toBeLessThan(10_000);
    await problem.getByRole("button", { name: /^Show all [\d,]+ characters/ }).first().click();
    await problem.getByRole("button", { name: "Show less" }).first().waitFor();
    expect((await problem.innerText()).length).toBeGreaterThan(30_000);
    await leave();
  });

  test("cannot be framed by another page", async () => {
    const other = createServer((_, answer) => {
      answer.writeHead(200, { "content-type": "text/html" });
      answer.end(`<!doctype html><title>other</title><iframe src="${on.program.home}"></iframe>`);
    });
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const context = await (await browser()).newContext();
    const page = await context.newPage();
    const refused = page.waitForEvent("console", (line) => /frame-ancestors|Refused to frame|Framing/.test(line.text()));
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    await refused;
    const inner = page.frames()[1];
    expect((await inner?.content())?.includes("Watershed") ?? false).toBe(false);
    await context.close();
    other.closeAllConnections();
    other.close();
  });
});

served("a stream", attack, (on) => {
  // The service's own lines are bounded, so these come from a server in its place.
  test("of lines of ten megabytes, and of more lines than anyone reads, leaves the page alive", async () => {
    const flood = await standIn(on.program.port, (asked, answer) => {
      if (!/\/logs\?follow/.test(asked.url ?? "")) return false;
      answer.writeHead(200, { "content-type": "text/event-stream" });
      const about = { level: "info", run: "1-1", target: "t", resource: { kind: "model", name: "words" } };
      const line = (id: number, message: string) => {
        const one = { ...about, id, at: new Date(id).toISOString(), message };
        answer.write(`event: lines\ndata: ${JSON.stringify([one])}\n\n`);
      };
      line(1, "x".repeat(10_000_000));
      for (let id = 2; id < 5_000; id++) line(id, `line ${id}`);
      line(5_000, "the last line");
      return true;
    });
    const { page, leave } = await visit(pageOf(flood.home, "attack", "model", "words"));
    const lines = page.getByRole("region", { name: "Lines" });
    await lines.getByText("the last line").waitFor();
    expect(await lines.getByRole("listitem").count()).toBeLessThanOrEqual(300);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find resources and actions" }).waitFor();
    await leave();
    flood.close();
  });

  test("whose listing never ends is given up, and the page says so", async () => {
    let number = 0;
    const flood = await standIn(on.program.port, (asked, answer) => {
      if (!/\/watch/.test(asked.url ?? "")) return false;
      answer.writeHead(200, { "content-type": "text/event-stream" });
      const about = { kind: "model", refs: [], paths: [], phase: "idle", health: "ok", blocked_by: [], warnings: [] };
      const one = () => `event: changed\ndata: ${JSON.stringify({ ...about, name: `endless_${number++}` })}\n\n`;
      pour(answer, () => Array.from({ length: 500 }, one).join(""));
      return true;
    });
    const { page, leave } = await visit(home(flood.home, "attack"));
    await page.getByText(/more than 100,000 resources were told, and no end of them/).waitFor({ timeout: 60_000 });
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find resources and actions" }).waitFor();
    await leave();
    flood.close();
  });
});
