// The language server of the page and `watershed lsp` say the same of a project: what is wrong, what may stand where, what a
// name means. One of them speaks of a folder, the other of a service that runs, and an author has both open.

import { isDeepStrictEqual } from "node:util";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { visit } from "./lib/browser.ts";
import { disk, fileOf, findings, text, tree } from "./lib/files.ts";
import { Language } from "./lib/language.ts";
import { copied } from "./lib/projects.ts";
import { random } from "./lib/random.ts";
import { served } from "./lib/served.ts";

/** The places of each project at which both are asked for proposals, and as many for hovers. */
const PLACES = 100;

/** The files that an editor of the page tells the server of; one of `broken` is no text in UTF-8, which no editor shows. */
const isText = (path: string) => /\.(sql|ya?ml)$/i.test(path) && !path.endsWith("latin1.sql");

/** What a server has said to be wrong. An answer comes after all that was told before it. */
async function told(of: Language) {
  await of.at("hover", "watershed.yaml", "");
  return Object.fromEntries([...of.found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A hover says how long ago something ran: as of the last look of each server. */
const undated = (answer: unknown): unknown => JSON.parse(JSON.stringify(answer).replace(/last run [^:"]* ago/g, "last run a while ago"));

/** An offset in a text at which somebody could ask: behind a word, or behind a sign that asks by itself. */
function offset(text: string, next: (below: number) => number): number {
  const all = [...text.matchAll(/[\p{L}\p{N}_ :."/@-](?=[^\p{L}\p{N}_]|$)/gu)].map(({ index }) => index + 1);
  return all[next(Math.max(all.length, 1))] ?? 0;
}

/** An offset in a word that may mean something: a name of the project, or a key; any word where there is none. */
function word(text: string, names: string[], next: (below: number) => number): number {
  const known = new RegExp(`(?<![\\w])(?:${names.map((name) => name.replace(/\W/g, "\\$&")).join("|")})(?![\\w])|\\w+(?=:)`, "g");
  const all = [...text.matchAll(known)].map((one) => one.index + next(one[0].length));
  return all[next(Math.max(all.length, 1))] ?? offset(text, next);
}

/** The text as it is while somebody types at a place: the rest of the line is not there yet. */
const typed = (text: string, at: number) => text.slice(0, at) + text.slice(at).replace(/^[^\n]*/, "");

const seed = Number(process.env.WATERSHED_SEED) || (process.env.WATERSHED_PROOF === "ci" ? 20_261_129 : Date.now() >>> 0);

/** The words of severities, as the protocol counts them. */
const WORDS = ["", "error", "warning", "hint", "hint"];

/** What the page says to be wrong in a file that is shown, beside what a run has found. */
const shown = (page: Page) =>
  findings(page)
    .getByRole("listitem")
    .evaluateAll((items) => items.filter((item) => !item.querySelector(".run")).map((item) => [...item.querySelectorAll(".severity, a")].map((one) => one.textContent).join(" ")));

/** Two conversations about one project. */
class Both {
  constructor(
    readonly ofPage: Language,
    readonly ofProgram: Language,
  ) {}

  each(act: (of: Language) => void): void {
    [this.ofPage, this.ofProgram].forEach(act);
  }

  /** Asks both the same until they agree: what they know of tables they learn while they are asked. Returns the answer. */
  async agree(ask: (of: Language) => unknown, about: string): Promise<unknown> {
    let [one, other]: unknown[] = [];
    const same = async () => {
      [one, other] = await Promise.all([ask(this.ofPage), ask(this.ofProgram)]);
      return isDeepStrictEqual(one, other) || { page: one, program: other };
    };
    await expect.poll(same, { message: about }).toBe(true);
    return one;
  }

  /** Asks about places of a file as it is, and as it is while somebody types there. Returns how many answers said something. */
  async compare(path: string, whole: string, names: string[], places: number, next: (below: number) => number) {
    let [hovers, proposals, findings] = [0, 0, 0];
    this.each((of) => of.open(path, whole));
    for (let place = 0; place < places; place++) {
      const [at, over] = [offset(whole, next), word(whole, names, next)];
      const about = (at: number) => `${path} at ${JSON.stringify(whole.slice(Math.max(at - 40, 0), at))}`;
      if ((await this.agree(async (of) => undated(await of.at("hover", path, whole.slice(0, over))), about(over))) !== null) hovers += 1;
      this.each((of) => of.type(path, typed(whole, at)));
      const found = await this.agree((of) => of.at("completion", path, whole.slice(0, at)), about(at));
      if (JSON.stringify(found)?.includes('"label"')) proposals += 1;
      await this.agree(told, `findings of ${about(at)}`);
      findings += this.ofPage.found.get(path)?.length ?? 0;
      this.each((of) => of.type(path, whole));
    }
    this.each((of) => of.close(path));
    return { hovers, proposals, findings };
  }
}

for (const [name, mistaken] of [["flights", 0], ["broken", 30]] as const) {
  served(`the answers about ${name}`, () => copied(name), (on) => {
    test(`are the same on the page and for an editor beside the folder (seed ${seed})`, { timeout: 300_000 }, async () => {
      const next = random(seed);
      const { page, leave } = await visit(fileOf(on.program.home, name));
      const both = new Both(await Language.overPage(page, name), await Language.overPipes(on.program));
      const { files } = await on.program.ask<{ files: { path: string }[] }>("files");
      const names = (await on.program.list()).map(({ name }) => String(name));
      const paths = files.map(({ path }) => path).filter(isText);
      expect(paths.length).toBeGreaterThan(40);
      const before = await both.agree(told, "findings of the project");
      expect(both.ofProgram.found.size).toBeGreaterThanOrEqual(mistaken);

      const sums = { hovers: 0, proposals: 0, findings: 0 };
      for (const path of paths) {
        const one = await both.compare(path, disk(on.program, path), names, Math.ceil(PLACES / paths.length), next);
        for (const of of ["hovers", "proposals", "findings"] as const) sums[of] += one[of];
      }
      expect(await both.agree(told, "findings of the project after all that")).toEqual(before);
      // Answers that say nothing would be equal for no reason.
      expect(Math.min(sums.hovers, sums.proposals)).toBeGreaterThan(PLACES / 10);
      expect(sums.findings).toBeGreaterThan(0);

      for (const [path, found] of [...both.ofProgram.found].filter(([path]) => paths.includes(path))) {
        await tree(page).getByRole("searchbox").fill(path);
        await tree(page).getByRole("link").click();
        await text(page, path).waitFor();
        const expected = found.map(({ severity, range, code }) => `${WORDS[severity]} line ${range.start.line + 1} ${code}`);
        await expect.poll(() => shown(page), { message: path }).toEqual(expected);
        await page.getByRole("button", { name: `Close ${path}` }).click();
      }
      both.each((of) => of.end());
      await leave();
    });
  });
}
