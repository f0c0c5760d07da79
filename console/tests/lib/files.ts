// Steps on the screen of files.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Program } from "./program.ts";

/** The address of a file. */
export const fileOf = (home: string, name: string, path = "", query = "") => `${home}ui/${name}/files/${path.split("/").map(encodeURIComponent).join("/")}${query}`;

/** The text of a file on the page. */
export const text = (page: Page, path: string) => page.getByRole("textbox", { name: `Text of ${path}` });
export const tree = (page: Page) => page.getByRole("complementary", { name: "All files" });
export const strip = (page: Page) => page.getByRole("region", { name: "What the save has set going" });
export const save = (page: Page) => page.getByRole("button", { name: "Save", exact: true });
export const findings = (page: Page) => page.getByRole("region", { name: "What is wrong in the file" });

/** Writes a text in place of what is there. */
export async function write(page: Page, path: string, to: string) {
  await text(page, path).click();
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(to);
}

/** Waits until the editor shows something. */
export const reads = (page: Page, path: string, words: string | RegExp) => expect.poll(() => text(page, path).innerText()).toMatch(words);

/** Waits until all that a save has set going rests. */
export const settled = (page: Page) => page.locator('section.strip[data-settled="true"]').waitFor({ timeout: 60_000 });

/** The file on the disk. */
export const disk = (program: Program, path: string) => readFileSync(join(program.project, path), "utf8");
