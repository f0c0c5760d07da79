// Projects that are large and deep. WATERSHED_MODELS=10000 tries a larger one, and prints how long each step took.

import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { find, shows } from "./lib/journey.ts";
import { project } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** The models of the chain: enough for folders to be folded. */
const MODELS = Number(process.env.WATERSHED_MODELS ?? 2_100);

/** How long a step may take, in milliseconds: files of a large project are read for minutes in a build for tests. */
const PATIENCE = MODELS > 2_100 ? 1_200_000 : 60_000;

/** Models in folders of a few hundred, each of which reads the one before. The first one fails, so that none is built. */
function chain(): string {
  const path = (at: number) => join("models", `part_${Math.floor(at / 500)}`, `m${at}.sql`);
  const text = (at: number) => (at === 0 ? "SELECT error('nothing to begin with') AS id\n" : `SELECT id FROM m${at - 1}\n`);
  return project("chain", Object.fromEntries(Array.from({ length: MODELS }, (_, at) => [path(at), `-- @materialize: true\n${text(at)}`])));
}

/** Does a step, and tells how long it took where somebody asked for that. */
async function step<T>(name: string, act: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  const done = await act();
  if (process.env.WATERSHED_MODELS) console.log(`${name}: ${Math.round(performance.now() - begun)} ms`);
  return done;
}

async function painted(page: Page, nodes: number) {
  await expect.poll(() => page.locator("canvas").getAttribute("data-painted"), { timeout: PATIENCE }).toBe(`${nodes}`);
}

served(`a chain of ${MODELS} models`, chain, (on) => {
  const last = `m${MODELS - 1}`;
  const folders = Math.ceil(MODELS / 500);

  test("is listed, filtered, found and drawn, folded and open", { timeout: PATIENCE + 90_000 }, async () => {
    const home = `${on.program.origin}/ui/chain`;
    const { page, leave } = await visit(`${home}?select=${last}`);
    await painted(page, 1);
    await step("navigation to the folded graph", async () => {
      await page.goto(home);
      await painted(page, folders);
    });
    await page.getByRole("button", { name: `all ${MODELS.toLocaleString("en-GB")}` }).waitFor();
    // Of a long list what is in sight is drawn, and the rest is counted.
    const rows = page.getByRole("list", { name: "Resources" }).getByRole("listitem");
    expect(await rows.count()).toBeLessThan(60);
    expect(await rows.first().getAttribute("aria-setsize")).toBe(`${MODELS}`);
    await step("to the end of the list", async () => {
      await page.locator(".box").evaluate((box) => (box.scrollTop = box.scrollHeight));
      await page.getByRole("link", { name: last, exact: true }).waitFor();
    });
    const filter = page.getByRole("searchbox");
    await step("filter to the last three", async () => {
      await filter.fill(`2+${last}`);
      await filter.press("Enter");
      await painted(page, 3);
    });
    await step("all again", async () => {
      await filter.fill("");
      await painted(page, folders);
    });
    await step("a folder opened", async () => {
      const node = page.locator(".node");
      await node.focus();
      await page.keyboard.press("ArrowRight");
      await expect.poll(() => node.getAttribute("aria-label")).toMatch(/^Folder/);
      await page.keyboard.press("Enter");
      await painted(page, folders - 1 + 500);
    });
    await step("search, and the page of the last one", async () => {
      await find(page, last);
      await shows(page, "blocked");
      await page.getByRole("region", { name: "Why it is blocked" }).getByText("nothing to begin with").first().waitFor();
    });
    // A name is no mistake any more once its file was read.
    await leave(FAILED_REQUEST);
  });

  test("is drawn whole where all of it was chosen, from its beginning", async () => {
    // Below the number above which folders are folded.
    const { page, leave } = await visit(`${on.program.origin}/ui/chain?select=${encodeURIComponent("+m1999")}`);
    await painted(page, 2_000);
    await page.locator(".node").focus();
    await page.keyboard.press("ArrowDown");
    const label = () => page.locator(".node").getAttribute("aria-label");
    await expect.poll(label).toBe("model m0, failed, reads 0, read by 1");
    await page.keyboard.press("ArrowRight");
    await expect.poll(label).toBe("model m1, blocked, reads 1, read by 1");
    await leave();
  });
}, false);
