// A real Chromium, whose pages fail a test when anything is said on the console, refused by the policy of the page,
// or asked of another origin.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, onTestFailed } from "vitest";

/** Places where systems keep Chromium. */
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The browser's program; none if there is none. */
export function browserProgram(): string | undefined {
  const named = process.env.CHROMIUM;
  return [...(named ? [named] : []), ...PLACES].find((place) => existsSync(place));
}

let shared: Promise<Browser> | undefined;

/** The browser of this process; started once. WATERSHED_BROWSER is the address of one that runs for several. */
export function browser(): Promise<Browser> {
  const running = process.env.WATERSHED_BROWSER;
  shared ??= running ? chromium.connect(running) : chromium.launch({
    executablePath: browserProgram() ?? "chromium",
    // A container lacks the rights of Chromium's own sandbox, and its small shared memory.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"],
  });
  return shared;
}

/** Ends the browser. */
export async function closeBrowser() {
  await (await shared)?.close();
  shared = undefined;
}

/** A page with what it did wrong. */
export interface Visit {
  page: Page;
  /** Lines of the browser's console, errors of scripts, requests to other origins. */
  faults: string[];
  /** Opens a second tab of the same visitor. */
  another(address: string): Promise<Page>;
  /** Closes the page; fails if anything went wrong but what a test allows for. */
  leave(allowed?: RegExp): Promise<void>;
}

/** Opens an address as a new visitor. */
export async function visit(address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await (await browser()).newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: "reduce",
    locale: "en-GB",
    ...options,
  });
  // Machines that tests share stall for seconds: a disk that is written to, a browser that is started.
  context.setDefaultTimeout(30_000);
  const faults: string[] = [];
  const origin = new URL(address).origin;
  context.on("request", (request) => {
    const at = request.url();
    const isOwn = at.startsWith(`${origin}/`) || at.startsWith(`blob:${origin}`) || at.startsWith("data:image/");
    if (!isOwn) faults.push(`request to ${at}`);
  });
  const page = await tab(context, faults);
  await page.goto(address);
  return {
    page,
    faults,
    async another(address: string) {
      const other = await tab(context, faults);
      await other.goto(address);
      return other;
    },
    async leave(allowed?: RegExp) {
      expect(faults.filter((fault) => !allowed?.test(fault))).toEqual([]);
      await context.close();
    },
  };
}

/** Opens a tab, whose faults are gathered. */
async function tab(context: BrowserContext, faults: string[]): Promise<Page> {
  const page = await context.newPage();
  page.on("console", (line) => faults.push(`${line.type()}: ${line.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", async (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("popup", () => faults.push("a second window"));
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      console.error(`policy: ${event.violatedDirective} refused ${event.blockedURI}`);
    });
  });
  onTestFailed(async ({ task }) => {
    console.log(`at the end the page of "${task.name}" was ${page.url()}`, faults);
    await picture(page, `failed ${task.name}`).catch(() => {});
  });
  return page;
}

/** What Chromium writes by itself when a request fails or is refused: no page can prevent that. */
export const FAILED_REQUEST = /^error: Failed to load resource/;

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails if axe finds anything serious on the page. */
export async function accessible(page: Page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await (window as any).axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    });
    return violations
      .filter((one: any) => one.impact === "serious" || one.impact === "critical")
      .flatMap((one: any) => one.nodes.map((node: any) => `${one.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
  });
  expect(found).toEqual([]);
}

/**
 * The themes and widths at which axe looks at a page: each theme and each width once, as colours do not depend on the width. Who
 * keeps pictures has all of them, and the width between.
 */
export const LOOKS = process.env.WATERSHED_PICTURES
  ? (["light", "dark"] as const).flatMap((theme) => [1440, 390, 320].map((width) => ({ theme, width })))
  : ([{ theme: "light", width: 1440 }, { theme: "dark", width: 320 }] as const);

/** Keeps a picture of the page for people to look at. */
export async function picture(page: Page, name: string) {
  const to = process.env.WATERSHED_PICTURES;
  if (!to) return;
  mkdirSync(to, { recursive: true });
  await page.screenshot({ path: join(to, `${name}.png`) });
}
