// Files where what stands around the page fails: a language server that answers late, twice, never, or about another version of
// the text; and a browser that has no room for what is not saved.

import { expect, test } from "vitest";
import type { Page } from "playwright-core";
import { visit } from "./lib/browser.ts";
import { Between, type Said } from "./lib/between.ts";
import { disk, fileOf, findings, reads, save, settled, text, tree, write } from "./lib/files.ts";
import { home } from "./lib/journey.ts";
import { shop, write as writeFiles } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const DAILY = "models/daily.sql";
const GOOD = "SELECT shop, sum(amount) AS taken\nFROM orders\nGROUP BY shop\n";
const MISTAKE = GOOD.replace("FROM orders", "FROM {{ ref \"ordres\" }}");
const LIE = "A lie about this text";
const LIES = [{ range: { start: { line: 0, character: 0 }, end: { line: 0, character: 6 } }, severity: 1, code: "lie", message: LIE }];

/** Asks the server something, and waits for the answer: all that was said before was heard by then. */
async function heard(page: Page) {
  await text(page, DAILY).focus();
  await page.keyboard.press("F2");
  const about = page.getByRole("region", { name: "The name at the cursor" });
  await about.waitFor();
  await about.getByRole("button", { name: /^Close/ }).click();
}

/** The texts of proposals. */
const proposals = (page: Page) => page.getByRole("option").allInnerTexts();

served("a language server", shop, (on) => {
  /** Opens the file, with something between the page and the server. */
  async function open() {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, leave } = await visit(home(on.program.home, "shop"));
    const between = await Between.of(page);
    const show = async () => {
      await page.goto(fileOf(on.program.home, "shop", DAILY));
      await reads(page, DAILY, /FROM orders/);
    };
    return { page, leave, between, show };
  }

  test("that says all twice, answers what nobody asked and speaks of other versions is believed once, of this one", async () => {
    const { page, leave, between, show } = await open();
    let lies = 0;
    between.alter = (said: Said) => {
      const { id, method, params } = said;
      if (method === "textDocument/publishDiagnostics") {
        if (typeof params.version !== "number") return [said, said];
        lies += 2;
        const of = (version: number) => ({ ...said, params: { ...params, version, diagnostics: LIES } });
        return [of(params.version - 1), said, said, of(params.version + 1), of(params.version - 1)];
      }
      if (id === undefined || method !== undefined) return [said];
      const lie = { contents: LIE, items: [{ label: "lie", detail: LIE }], isIncomplete: false };
      return [{ jsonrpc: "2.0", id: id + 1_000, result: lie }, said, said, { jsonrpc: "2.0", id, result: lie }, { jsonrpc: "2.0", id, error: { code: -32603, message: LIE } }];
    };
    await show();
    await write(page, DAILY, MISTAKE);
    await findings(page).getByText("missing-ref").waitFor();
    expect(await findings(page).getByRole("listitem").count()).toBe(1);
    await heard(page);
    expect(await page.getByText(LIE).count()).toBe(0);
    await write(page, DAILY, GOOD);
    await findings(page).waitFor({ state: "detached" });
    await heard(page);
    expect(await findings(page).count()).toBe(0);

    await write(page, DAILY, "SELECT shop FROM ord");
    await page.keyboard.press("Control+Space");
    await page.getByRole("option", { name: /^orders/ }).first().waitFor();
    const offered = await proposals(page);
    expect(new Set(offered).size).toBe(offered.length);
    expect(offered.join(" ")).not.toContain("lie");
    await page.keyboard.press("Escape");
    await write(page, DAILY, `-- saved\n${GOOD}`);
    await save(page).click();
    await settled(page);
    expect(disk(on.program, DAILY)).toBe(`-- saved\n${GOOD}`);
    expect(await page.getByText(LIE).count()).toBe(0);
    expect(lies).toBeGreaterThan(3);
    await leave();
  });

  test.each([["in order", (held: object[]) => held], ["the last first", (held: object[]) => held.toReversed()]] as const)("that says all late, %s, changes neither the text nor what is true of it by then", async (_, order) => {
    const { page, leave, between, show } = await open();
    await show();
    await heard(page);
    between.hold();
    await write(page, DAILY, MISTAKE);
    await expect.poll(() => between.holds("missing-ref")).toBeGreaterThan(0);
    await text(page, DAILY).focus();
    // Proposals for a place that is not there any more when they come.
    await page.keyboard.press("Control+End");
    await page.keyboard.insertText("ORDER BY sh");
    await page.keyboard.press("Control+Space");
    await expect.poll(() => between.holds('"items"')).toBeGreaterThan(0);
    await write(page, DAILY, GOOD);
    await expect.poll(() => between.holds('"diagnostics":[]')).toBeGreaterThan(0);
    expect(await findings(page).count()).toBe(0);
    between.release(order);
    await heard(page);
    await expect.poll(() => findings(page).count()).toBe(0);
    expect(await page.getByRole("option").count()).toBe(0);
    await page.keyboard.press("Control+s");
    expect((await text(page, DAILY).innerText()).trim()).toBe(GOOD.trim());
    // And it is judged as before.
    await write(page, DAILY, MISTAKE);
    await findings(page).getByText("missing-ref").waitFor();
    await leave();
  });

  test("that never says anything hinders nobody to write and save", async () => {
    const { page, leave, between, show } = await open();
    between.hold();
    await show();
    await write(page, DAILY, `-- unheard\n${GOOD}`);
    await page.keyboard.press("Control+Space");
    await page.keyboard.press("Control+s");
    await settled(page);
    expect(disk(on.program, DAILY)).toBe(`-- unheard\n${GOOD}`);
    expect(await findings(page).count()).toBe(0);
    between.release();
    await write(page, DAILY, MISTAKE);
    await findings(page).getByText("missing-ref").waitFor();
    await leave();
  });
});

served("a slow service", shop, (on) => {
  /** Shows the file; from then on, answers about the file wait until they are let go. */
  async function open() {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, leave } = await visit(fileOf(on.program.home, "shop", DAILY));
    await reads(page, DAILY, /FROM orders/);
    let letGo = () => {};
    const isLeft = new Promise<void>((done) => (letGo = done));
    const held: { method: string; answered: Promise<unknown> }[] = [];
    await page.route(/\/files\/models\/daily\.sql$/, (route) => {
      const answered = route.fetch().then(async (response) => (await isLeft, route.fulfill({ response })));
      held.push({ method: route.request().method(), answered });
      return answered;
    });
    const leaves = async (method: string) => {
      await page.getByRole("link", { name: "Activity" }).click();
      await page.getByRole("heading", { level: 1, name: "Activity" }).waitFor();
      letGo();
      expect(held.map((one) => one.method)).toContain(method);
      await Promise.all(held.map(({ answered }) => answered));
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    };
    return { page, leave, leaves };
  }

  test("answers a page that was left, which says nothing", async () => {
    const { page, leave, leaves } = await open();
    const asked = page.waitForRequest((one) => one.method() === "GET" && one.url().endsWith(DAILY));
    writeFiles(on.program.project, { [DAILY]: `-- theirs\n${GOOD}` });
    await asked;
    await leaves("GET");
    await leave();
  });

  test("saves a text whose page was left, and the browser keeps the text no longer", async () => {
    const { page, leave, leaves } = await open();
    await write(page, DAILY, `-- saved\n${GOOD}`);
    await expect.poll(() => kept(page)).toBe(1);
    await save(page).click();
    await expect.poll(() => disk(on.program, DAILY)).toBe(`-- saved\n${GOOD}`);
    await leaves("PUT");
    await expect.poll(() => kept(page)).toBe(0);
    await leave();
  });
});

/** Fills the browser's storage to its last character. */
const fill = (page: Page) =>
  page.evaluate(() => {
    for (let size = 1 << 20, number = 0; size > 0; ) {
      try {
        localStorage.setItem(`filling ${number++}`, "x".repeat(size));
      } catch {
        size >>= 1;
      }
    }
  });
const empty = (page: Page) => page.evaluate(() => Object.keys(localStorage).forEach((key) => key.startsWith("filling") && localStorage.removeItem(key)));
const kept = (page: Page) => page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith("watershed unsaved")).length);
const full = (page: Page) => page.getByRole("alert").getByText("The browser's storage is full");

served("a browser without room", shop, (on) => {
  test("says so, asks before a text goes that it can't keep, and does all else as ever", async () => {
    writeFiles(on.program.project, { [DAILY]: GOOD });
    const { page, faults, leave } = await visit(fileOf(on.program.home, "shop", DAILY));
    await reads(page, DAILY, /FROM orders/);
    await fill(page);
    await write(page, DAILY, MISTAKE);
    await full(page).waitFor();
    await findings(page).getByText("missing-ref").waitFor();
    expect(await kept(page)).toBe(0);

    // The page would take the text along: a person is asked, and this one stays.
    await page.evaluate(() => location.reload());
    await expect.poll(() => faults).toEqual(["dialog: "]);
    await reads(page, DAILY, /ref "ordres"/);

    // Another screen works, and the text is offered by this page as long as it is there.
    await page.getByRole("link", { name: "SQL", exact: true }).click();
    await page.getByRole("button", { name: /^Ask/ }).waitFor();
    await page.getByRole("link", { name: "Files", exact: true }).click();
    await tree(page).getByRole("link", { name: "daily.sql" }).click();
    await reads(page, DAILY, /FROM orders/);
    await page.getByRole("button", { name: "Show it" }).click();
    await reads(page, DAILY, /ref "ordres"/);
    await full(page).waitFor();

    await write(page, DAILY, `-- saved\n${GOOD}`);
    await full(page).waitFor();
    await save(page).click();
    await settled(page);
    await full(page).waitFor({ state: "detached" });
    expect(disk(on.program, DAILY)).toBe(`-- saved\n${GOOD}`);

    // With room again, it is kept again.
    await write(page, DAILY, MISTAKE);
    await full(page).waitFor();
    await empty(page);
    await page.keyboard.press("Control+End");
    await page.keyboard.insertText("-- room\n");
    await full(page).waitFor({ state: "detached" });
    await expect.poll(() => kept(page)).toBe(1);
    await page.reload();
    await page.getByText("A text of this file was not saved").waitFor();
    await leave(/^dialog: $|Failed to load resource/);
  });
});
