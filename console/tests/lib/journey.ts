// Steps that journeys share: by mouse, and by keyboard alone.

import type { Page } from "playwright-core";
import { expect } from "vitest";

/** The address of a project's page. */
export function home(base: string, project: string): string {
  return `${base}ui/${encodeURIComponent(project)}`;
}

/** The address of a resource's page. */
export function pageOf(home: string, project: string, kind: string, name: string): string {
  return `${home}ui/${[project, kind, name].map(encodeURIComponent).join("/")}`;
}

/** The health that the page of a resource shows. */
export async function shows(page: Page, health: string) {
  const mark = page.locator("main header [data-health]").first();
  await page
    .locator(`main header [data-health="${health}"]`)
    .waitFor()
    .catch(async (error: unknown) => {
      const shown = await mark.getAttribute("data-health", { timeout: 1_000 }).catch(() => "none");
      throw new Error(`${page.url()} shows the health "${shown}", not "${health}"`, { cause: error });
    });
}

/** Waits until the page says something about what was asked for. */
export function told(page: Page, text: string) {
  return page.getByRole("log").getByRole("listitem").filter({ hasText: text }).first().waitFor();
}

/** A button of the resource on the page. */
export function action(page: Page, name: string) {
  return page.getByRole("group", { name: /^Actions on/ }).getByRole("button", { name, exact: true });
}

/** What the focus may rest on. */
const STOPS = "a[href], button, input, select, textarea, summary, [tabindex], [contenteditable]";

/** Moves the focus by Tab until it is on what has such a name, once the page has that; the number of stops is bounded. */
export async function tabTo(page: Page, name: string | RegExp) {
  const none = `no stop of the keyboard is called ${name}`;
  const isThere = async () => (await names(page, STOPS)).some((found) => is(found, name));
  await expect.poll(isThere, { message: none }).toBe(true);
  for (let stop = 0; stop < 200; stop++) {
    await page.keyboard.press("Tab");
    if ((await names(page, ":focus")).some((focused) => is(focused, name))) return;
  }
  throw new Error(none);
}

/** What a person would call the elements that a selector finds. */
function names(page: Page, selector: string) {
  return page.locator(selector).evaluateAll((all) => all.map((element) => element.getAttribute("aria-label") ?? element.textContent?.trim() ?? ""));
}

function is(found: string, name: string | RegExp) {
  return typeof name === "string" ? found === name : name.test(found);
}

/** Goes to what a few letters find, by keyboard alone. */
export async function find(page: Page, letters: string) {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find resources and actions" }).waitFor();
  await page.keyboard.type(letters);
  await page.getByRole("listbox", { name: "Found" }).getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
}

/** The reasons and outcomes of a resource's history, the latest first. */
export async function history(page: Page): Promise<string[]> {
  const entries = page.getByRole("region", { name: "History" }).locator("ol > li .what");
  return (await entries.allTextContents()).map((text) => text.replace(/\s+/g, " ").trim());
}

/** Waits until the latest entry of the history says something. */
export async function latest(page: Page, text: string) {
  const first = page.getByRole("region", { name: "History" }).locator("ol > li .what").first();
  await first.filter({ hasText: text }).waitFor();
}

/** Waits until something holds of what the program itself says. */
export async function until<T>(ask: () => Promise<T>, holds: (answer: T) => boolean, page: Page): Promise<T> {
  const end = Date.now() + 20_000;
  for (;;) {
    const answer = await ask();
    if (holds(answer)) return answer;
    expect(Date.now(), `it did not come to hold: ${JSON.stringify(answer).slice(0, 500)}`).toBeLessThan(end);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}
