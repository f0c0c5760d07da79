// The stream behind a page: cut at random, ended with the service, led to another past. An old state is never shown as new,
// and in the end the page says what the list says.

import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { closeBrowser, FAILED_REQUEST, picture, visit } from "./lib/browser.ts";
import { action, home, pageOf, shows, told, until } from "./lib/journey.ts";
import { Line } from "./lib/line.ts";
import { canRun } from "./lib/needs.ts";
import { folder, Program } from "./lib/program.ts";
import { copied, shop, write } from "./lib/projects.ts";
import { random } from "./lib/random.ts";
import { served } from "./lib/served.ts";

/** What Chromium writes when a stream or a request ends before its end. */
const BROKEN = /^error: Failed to load resource|ERR_/;

/** How long random edits go on while the line holds, in milliseconds. WATERSHED_MINUTES says another length. */
const LONG = 60_000 * Number(process.env.WATERSHED_MINUTES ?? (process.env.WATERSHED_PROOF === "ci" ? 1 : 0.1));

const seeded = (name: string, run: (next: (bound: number) => number) => Promise<void>, timeout?: number) => {
  const seed = Number(process.env.WATERSHED_SEED) || (process.env.WATERSHED_PROOF === "ci" ? 20_261_128 : Date.now() >>> 0);
  test(`${name} (seed ${seed})`, { timeout: timeout ?? 90_000 }, () => run(random(seed)));
};

/** The rows of a page and how fresh it says they are, at one moment. */
function rows(page: Page): Promise<{ stands: string; rows: string[] }> {
  return page.evaluate(() => {
    const all = document.querySelectorAll("ol[aria-label='Resources'] > li");
    const told = [...all].map((row) => {
      const state = row.querySelector<HTMLElement>("[data-health]");
      return `${row.querySelector("a")?.textContent} ${state?.dataset.health} ${state?.dataset.phase}`;
    });
    const line = document.querySelector<HTMLElement>("header [data-line]");
    return { stands: line?.dataset.line ?? "nothing", rows: told.sort() };
  });
}

const stands = (page: Page, word: "live" | "old") => page.locator(`header [data-line="${word}"]`).waitFor();

/** The rows that a page should have. */
async function listed(program: Program): Promise<string[]> {
  return (await program.list()).map(({ name, health, phase }) => `${name} ${health} ${phase}`).sort();
}

/** Waits until page and list say the same, both of a project that rests. */
async function agree(page: Page, program: Program) {
  const both = async () => ({ shown: await rows(page), list: await listed(program) });
  const same = ({ shown, list }: Awaited<ReturnType<typeof both>>) =>
    shown.stands === "live" && JSON.stringify(shown.rows) === JSON.stringify(list) && list.every((row) => row.endsWith(" idle"));
  await until(both, same, page);
}

/** Edits a file at random, to something that is well, wrong, new or gone. */
function edit(program: Program, next: (bound: number) => number) {
  const texts = [
    "SELECT shop, sum(amount) AS taken FROM orders GROUP BY shop\n",
    "-- @materialize: true\nSELECT shop, sum(amount) AS taken FROM orders GROUP BY shop\n",
    "SELECT shop, sum(amount) AS taken FROM ordres GROUP BY shop\n",
    "SELEC shop\n",
  ];
  const names = ["daily", "extra_1", "extra_2", "extra_3"];
  write(program.project, { [`models/${names[next(names.length)]}.sql`]: texts[next(texts.length)] ?? "" });
}

served("a page", shop, (on) => {
  let line: Line;
  beforeAll(async () => {
    line = await Line.open(on.program.port);
  });
  afterEach(() => line?.mend());
  afterAll(() => {
    line?.close();
  });

  seeded("follows random edits without a reload", async (next) => {
    const { page, leave } = await visit(home(on.program.home, "shop"));
    const end = Date.now() + LONG;
    let compared = 0;
    for (; Date.now() < end; compared++) {
      edit(on.program, next);
      await agree(page, on.program);
    }
    if (process.env.WATERSHED_MINUTES) console.log(`page and list were equal after each of ${compared} edits`);
    await leave();
  }, LONG + 90_000);

  seeded("whose stream is cut at random ends equal to the list", async (next) => {
    const { page, leave } = await visit(home(`${line.origin}/`, "shop"));
    await stands(page, "live");
    for (let round = 0; round < 12; round++) {
      edit(on.program, next);
      if (next(2) === 0) line.cut();
      else line.cutAfter(next(20_000));
      edit(on.program, next);
      line.mend();
      if (next(3) === 0) await agree(page, on.program);
    }
    await agree(page, on.program);
    await leave(BROKEN);
  });

  seeded("without a line says how old it is, and is never fresh before it has caught up", async (next) => {
    const { page, leave } = await visit(home(`${line.origin}/`, "shop"));
    await agree(page, on.program);
    for (let round = 0; round < 3; round++) {
      line.hold();
      await stands(page, "old");
      await page.locator("header").getByText(/as of .* ago/).waitFor();
      write(on.program.project, { [`models/held_${round}.sql`]: "SELECT * FROM nowhere\n" });
      edit(on.program, next);
      await until(() => listed(on.program), (list) => list.some((row) => row.startsWith(`held_${round} failed idle`)), page);
      expect((await rows(page)).stands).toBe("old");
      line.mend();
      // The first moment at which it calls itself fresh is looked at from within the page.
      const first = await page.evaluate(
        () =>
          new Promise<string>((done) => {
            const look = () => {
              if (document.querySelector("header [data-line=live]")) {
                done(document.querySelector("ol[aria-label='Resources']")?.textContent ?? "");
              } else requestAnimationFrame(look);
            };
            look();
          }),
      );
      expect(first).toContain(`held_${round}`);
      await agree(page, on.program);
    }
    await leave(BROKEN);
  });

  test("outlives the service, and goes on with the next one", async () => {
    const { page, leave } = await visit(pageOf(`${line.origin}/`, "shop", "model", "orders"));
    await shows(page, "ok");
    await on.program.stop("SIGKILL");
    await stands(page, "old");
    // What is asked for meanwhile is refused, and says so.
    await action(page, "Pause").click();
    await told(page, "Pause model/orders failed");
    // The notice has a line of its own, between the bar and the page, on narrow screens too.
    for (const width of [1440, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const of = async (name: string) => (await page.locator(name).boundingBox())!;
      const [bar, notice, main] = [await of(".bar > header"), await of(".bar > .notice"), await of("main")];
      expect(notice.y).toBeGreaterThanOrEqual(bar.y + bar.height);
      expect(main.y).toBeGreaterThanOrEqual(notice.y + notice.height);
      expect(notice.height).toBeLessThan(40);
      await picture(page, `without a service ${width}`);
    }
    write(on.program.project, { "models/orders.sql": "SELECT * FROM nowhere\n" });
    await on.program.start();
    line.lead(on.program.port);
    await stands(page, "live");
    await shows(page, "failed");
    await page.getByRole("region", { name: "What is wrong" }).getByText("nowhere").first().waitFor();
    await page.getByRole("log").getByRole("button", { name: "Try again" }).click();
    await shows(page, "paused");
    await action(page, "Resume").click();
    await shows(page, "failed");
    await leave(BROKEN);
  });

  test("takes the past of a backup for what it is", async () => {
    write(on.program.project, { "models/orders.sql": "-- @materialize: true\nSELECT 1 AS id, 2 AS shop, 3 AS amount\n" });
    const { page, leave } = await visit(home(`${line.origin}/`, "shop"));
    await agree(page, on.program);
    const file = join(folder(), "backup");
    await on.program.run("backup", file);
    write(on.program.project, { "models/later.sql": "SELECT 1 AS id\n" });
    await page.getByRole("list", { name: "Resources" }).getByText("later").waitFor();
    await on.program.stop();
    await stands(page, "old");
    await on.program.run("restore", "--yes", file);
    await on.program.start();
    line.lead(on.program.port);
    await agree(page, on.program);
    await leave(BROKEN);
  });
});

describe.runIf(canRun)("another project on the same port", () => {
  test("is not mixed with the one that was shown", async () => {
    const one = await Program.start(shop());
    await one.settle();
    const other = await Program.start(copied("broken"));
    const line = await Line.open(one.port);
    const { page, leave } = await visit(home(`${line.origin}/`, "shop"));
    await stands(page, "live");
    line.lead(other.port);
    // It knows no project of that name, so nothing new is shown, and what was there is old.
    await stands(page, "old");
    expect((await rows(page)).rows.every((row) => /^(orders|daily|best|prices) /.test(row))).toBe(true);
    line.lead(one.port);
    await agree(page, one);
    await leave(FAILED_REQUEST);
    line.close();
    await one.stop();
    await other.stop();
    await closeBrowser();
  });
});
