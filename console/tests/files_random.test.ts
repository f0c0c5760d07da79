// Two tabs of one person and the disk change the same files at random: they open, type, save, compare, decide, rename, close and
// reload, and the disk edits, goes back, deletes and moves. After each step both tabs, what the browser keeps and the folder are
// what a naive model says, so that no text that was typed is lost but by a choice.
//
//     WATERSHED_STEPS=1000 npx vitest run --project journeys tests/files_random.test.ts

import { readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { Desk, isUnsaved, type Open, type Tab } from "./lib/desk.ts";
import { fileOf, save, text, tree } from "./lib/files.ts";
import { project, write } from "./lib/projects.ts";
import { random } from "./lib/random.ts";
import { served } from "./lib/served.ts";

const STEPS = Number(process.env.WATERSHED_STEPS ?? (process.env.WATERSHED_PROOF === "ci" ? 150 : 60));
const seed = Number(process.env.WATERSHED_SEED) || (process.env.WATERSHED_PROOF === "ci" ? 20_261_129 : Date.now() >>> 0);

const BEGUN = "SELECT 1 AS id\n";
const begun = Object.fromEntries(["a", "b", "c", "odd"].map((name) => [`models/${name}.sql`, `-- ${name}\n${BEGUN}`]));
/** The most lines of a text: of longer ones the page shows a part where both stand beside each other. */
const LINES = 6;
const MERGED = { name: "Yours, which you can change here" };

/** What a tab shows. */
interface Shown {
  open: string[];
  here: string | undefined;
  note: "gone" | "changed" | undefined;
  text: string | undefined;
  theirs: string | undefined;
}

/** What a tab should show. */
function expected(tab: Tab): Shown {
  const { shown: one } = tab;
  const isCompared = one !== undefined && tab.comparing === one;
  return {
    open: [...tab.open.values()].map((open) => `${open.path}${isUnsaved(open) ? `, not saved${open.theirs === undefined ? "" : ", overtaken"}` : ""}`).sort(),
    here: tab.here,
    note: one?.theirs === "gone" ? "gone" : one?.theirs !== undefined && !isCompared ? "changed" : undefined,
    text: one?.text,
    theirs: isCompared ? one.theirs : undefined,
  };
}

/** What a tab shows now, at one moment. */
function seen(page: Page): Promise<Shown> {
  return page.evaluate(() => {
    const lines = (host: Element | null | undefined, of: string) => {
      const content = host?.shadowRoot?.querySelector(of);
      return content ? [...content.querySelectorAll(".cm-line")].map((line) => line.textContent).join("\n") : undefined;
    };
    const both = document.querySelector(".conflict .host");
    const notes = [...document.querySelectorAll(".work [role=alert]")].map((note) => note.textContent ?? "");
    const open = [...document.querySelectorAll(".work nav .tab")].map((tab) => {
      const dot = tab.querySelector(".dot");
      return `${tab.querySelector("a")?.title}${dot ? `, not saved${dot.classList.contains("theirs") ? ", overtaken" : ""}` : ""}`;
    });
    return {
      open: open.sort(),
      here: document.querySelector<HTMLAnchorElement>(".work nav .tab a[aria-current=page]")?.title,
      note: notes.some((note) => note.includes("is gone from the disk")) ? ("gone" as const) : notes.some((note) => note.includes("has changed on disk")) ? ("changed" as const) : undefined,
      text: both ? lines(both, ".cm-merge-b .cm-content") : lines(document.querySelector(".work .text .text"), ".cm-content"),
      theirs: both ? lines(both, ".cm-merge-a .cm-content") : undefined,
    };
  });
}

/** The texts that the browser keeps. */
const kept = (page: Page): Promise<string[]> =>
  page.evaluate(() =>
    Object.keys(localStorage)
      .filter((key) => key.startsWith("watershed unsaved "))
      .map((key) => JSON.stringify([JSON.parse(key.slice("watershed unsaved ".length))[3], JSON.parse(localStorage.getItem(key)!).text]))
      .sort(),
  );

/** The tabs and the folder, with the model of both. */
class Journey {
  readonly done: string[] = [];
  private written = 0;

  constructor(
    private readonly folder: string,
    private readonly pages: Page[],
    private readonly desk: Desk,
    private readonly next: (below: number) => number,
  ) {}

  private one<T>(of: Iterable<T>): T | undefined {
    const all = [...of];
    return all[this.next(Math.max(all.length, 1))];
  }
  /** A line that was never written before. */
  private line = () => `-- ${++this.written}\n`;

  /** Waits until all is as the model says. */
  async agree(): Promise<void> {
    const told = `seed ${seed}, after ${this.done.slice(-12).join("; ")}`;
    const { desk, pages } = this;
    const wanted = { tabs: desk.tabs.map(expected), kept: [...desk.kept].map(({ path, text }) => JSON.stringify([path, text])).sort() };
    await expect.poll(async () => ({ tabs: await Promise.all(pages.map(seen)), kept: await kept(pages[0]!) }), { message: told }).toEqual(wanted);
    const files = readdirSync(join(this.folder, "models")).map((name) => [`models/${name}`, readFileSync(join(this.folder, "models", name), "utf8")]);
    expect(Object.fromEntries(files), told).toEqual(Object.fromEntries([...desk.disk].map(([path, text]) => [path, ends(path, text)])));
  }

  /** Does one thing, if there is one to be done. */
  async step(): Promise<boolean> {
    const number = this.next(2);
    const [tab, page] = [this.desk.tabs[number]!, this.pages[number]!];
    const { shown } = tab;
    const what = this.next(10);
    const told = what < 3 ? this.ofDisk() : shown === undefined || what === 3 ? await this.open(tab, page) : await this.ofTab(tab, page, shown);
    if (told === undefined) return false;
    this.done.push(what < 3 ? `disk: ${told}` : `tab ${number + 1}: ${told}`);
    await this.agree();
    return true;
  }

  private ofDisk(): string | undefined {
    const told = this.change();
    this.desk.look();
    return told;
  }
  /** Changes something on the disk. */
  private change(path = this.one(this.desk.disk.keys())): string | undefined {
    const { disk } = this.desk;
    const what = this.next(8);
    if (path === undefined || disk.size < 3) return this.put(`models/n${++this.written}.sql`, this.line() + BEGUN);
    if (what < 4) return this.put(path, this.line() + BEGUN);
    if (what < 6) {
      // A person goes back to what was there before, as by git.
      const back = this.one(this.desk.tabs.flatMap((tab) => tab.open.get(path)?.base ?? []));
      return back === undefined || back === disk.get(path) ? undefined : this.put(path, back);
    }
    const text = disk.get(path)!;
    disk.delete(path);
    if (what === 6) return (rmSync(join(this.folder, path)), `${path} is deleted`);
    const to = `models/${path.includes("odd") ? "odd" : "m"}${++this.written}.sql`;
    renameSync(join(this.folder, path), join(this.folder, to));
    disk.set(to, text);
    return `${path} is moved to ${to}`;
  }
  private put(path: string, text: string): string {
    write(this.folder, { [path]: ends(path, text) });
    this.desk.disk.set(path, text);
    return `${path} is ${JSON.stringify(text)}`;
  }

  private async open(tab: Tab, page: Page): Promise<string | undefined> {
    const path = this.one(this.desk.disk.keys());
    if (path === undefined || path === tab.here) return undefined;
    await tree(page).getByRole("link", { name: path.slice("models/".length), exact: true }).click();
    this.desk.show(tab, path);
    this.desk.look();
    return `open ${path}`;
  }

  private async ofTab(tab: Tab, page: Page, one: Open): Promise<string | undefined> {
    const isCompared = tab.comparing === one;
    const what = this.next(12);
    if (what < 4) return this.type(page, one, isCompared);
    if (isCompared) return this.decide(tab, page, one);
    if (what < 7) return this.save(tab, page, one);
    if (what === 7) return this.rename(tab, page, one);
    if (what === 8) return this.close(tab, page);
    if (what === 9) return this.reload(tab, page);
    if (one.theirs === "gone") return this.gone(tab, page, one);
    if (what === 10) return this.restore(page, one);
    return this.discard(tab, page, one);
  }

  private async type(page: Page, one: Open, isCompared: boolean): Promise<string> {
    const into = isCompared ? page.getByRole("textbox", MERGED) : text(page, one.path);
    await into.focus();
    const line = this.line();
    const isFull = one.text.split("\n").length > LINES;
    const isFirst = this.next(2) === 0;
    await page.keyboard.press(isFull ? "Control+a" : isFirst ? "Control+Home" : "Control+End");
    if (isFull) await page.keyboard.press("Delete");
    await page.keyboard.insertText(line);
    this.desk.type(one, isFull ? line : isFirst ? line + one.text : one.text + line);
    return `type ${JSON.stringify(one.text)} in ${one.path}${isCompared ? " beside the other" : ""}`;
  }

  /** True for one of three: then the disk changes at the same moment. */
  private meanwhile(path: string): string {
    return this.next(3) === 0 && this.desk.disk.has(path) ? `, while ${this.put(path, this.line() + BEGUN)}` : "";
  }
  private async save(tab: Tab, page: Page, one: Open): Promise<string | undefined> {
    if (!isUnsaved(one)) return undefined;
    const too = this.meanwhile(one.path);
    if (this.next(2) === 0) await save(page).click();
    else {
      await text(page, one.path).focus();
      await page.keyboard.press("Control+s");
    }
    this.desk.save(tab, one);
    return `save ${one.path}${too}`;
  }
  private async decide(tab: Tab, page: Page, one: Open): Promise<string> {
    const what = this.next(4);
    if (what === 0) {
      await page.getByRole("button", { name: "Decide later" }).click();
      tab.comparing = undefined;
      return "decide later";
    }
    if (what === 1) {
      await page.getByRole("button", { name: "Take theirs, let mine go" }).click();
      this.desk.discard(tab, one);
      return "take theirs";
    }
    const too = this.meanwhile(one.path);
    // What nobody has seen is not replaced: the page may have shown the new version by now, or not yet.
    const mine = await page.getByRole("button", { name: /^Save mine/ }).elementHandle();
    const theirs = await mine!.evaluate((button: HTMLElement) => {
      const lines = button.closest(".conflict")?.querySelector(".host")?.shadowRoot?.querySelectorAll(".cm-merge-a .cm-line");
      if (!button.isConnected) return undefined;
      button.click();
      return [...(lines ?? [])].map((line) => line.textContent).join("\n");
    });
    if (theirs === undefined) this.desk.look();
    else if (this.desk.disk.get(one.path) === theirs) this.desk.replace(tab, one);
    else this.desk.look();
    return `save mine of ${one.path}${too}`;
  }
  private async gone(tab: Tab, page: Page, one: Open): Promise<string> {
    if (this.next(2) === 0) {
      await page.getByRole("button", { name: "Put it away" }).click();
      this.desk.close(tab, one.path);
      return `put ${one.path} away`;
    }
    await page.getByRole("button", { name: "Write it anew" }).click();
    this.desk.replace(tab, one);
    return `write ${one.path} anew`;
  }
  private async rename(tab: Tab, page: Page, one: Open): Promise<string | undefined> {
    if (!this.desk.disk.has(one.path)) return undefined;
    const to = `models/${one.path.includes("odd") ? "odd" : "r"}${++this.written}.sql`;
    const dialog = page.getByRole("dialog");
    // The list may not have the version yet that was saved a moment ago: then it is refused, and a person asks again.
    for (let isDone = false; !isDone; ) {
      await page.getByRole("button", { name: "Rename…", exact: true }).click();
      await dialog.getByRole("textbox").fill(to);
      await dialog.getByRole("button", { name: "Rename", exact: true }).click();
      const refused = dialog.locator(".problem");
      isDone = await Promise.race([dialog.waitFor({ state: "detached" }).then(() => true), refused.waitFor().then(() => false)]);
      if (!isDone) await dialog.getByRole("button", { name: "Leave it" }).click();
    }
    this.desk.rename(tab, to);
    return `rename ${one.path} to ${to}`;
  }
  private async close(tab: Tab, page: Page): Promise<string> {
    const path = this.one(tab.open.keys())!;
    await page.getByRole("button", { name: `Close ${path}` }).click();
    this.desk.close(tab, path);
    return `close ${path}`;
  }
  private async reload(tab: Tab, page: Page): Promise<string | undefined> {
    if (!this.desk.disk.has(tab.here!)) return undefined;
    await page.reload();
    this.desk.reload(tab);
    return "reload";
  }
  private async restore(page: Page, one: Open): Promise<string | undefined> {
    if (one.offers.length === 0 || isUnsaved(one) || one.theirs !== undefined) return undefined;
    await page.getByRole("button", { name: "Show it" }).first().click();
    this.desk.restore(one, one.offers[0]!);
    return `show what was kept of ${one.path}`;
  }
  private async discard(tab: Tab, page: Page, one: Open): Promise<string | undefined> {
    if (!isUnsaved(one)) return undefined;
    if (one.theirs !== undefined && one.theirs !== "gone" && this.next(2) === 0) {
      await page.getByRole("button", { name: "Compare both" }).click();
      tab.comparing = one;
      return `compare ${one.path}`;
    }
    await page.getByRole("button", { name: "Undo all" }).click();
    this.desk.discard(tab, one);
    return `undo all in ${one.path}`;
  }
}

/** A text with the line ends of its file: those of odd ones are of another system. */
const ends = (path: string, text: string) => (path.includes("odd") ? text.replaceAll("\n", "\r\n") : text);

served("two tabs and the disk", () => project("many", Object.fromEntries(Object.entries(begun).map(([path, text]) => [path, ends(path, text)]))), (on) => {
  test(`lose nothing that was typed in ${STEPS} steps (seed ${seed})`, { timeout: 60_000 + STEPS * 10_000 }, async () => {
    const { page, another, leave } = await visit(fileOf(on.program.home, "many"));
    const other = await another(page.url());
    const journey = new Journey(on.program.project, [page, other], new Desk(new Map(Object.entries(begun))), random(seed));
    for (let steps = 0; steps < STEPS; ) if (await journey.step()) steps += 1;
    expect(journey.done.filter((one) => /: (type|save|rename)/.test(one)).length).toBeGreaterThan(STEPS / 6);
    await leave(FAILED_REQUEST);
  });
});
