// What the console costs, as one JSON object a line: release build, two cores, no GPU, the median of five.
//
//     make bench-console

import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { test } from "vitest";
import { browser, closeBrowser } from "./lib/browser.ts";
import { settled } from "./lib/explore.ts";
import { folder, Program, ROOT } from "./lib/program.ts";
import { copied, write } from "./lib/projects.ts";

const ROUNDS = 5;
/** How often each of the thousand models has run before the night is looked at. */
const NIGHT = 20;

function median(numbers: number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return Math.round((sorted[sorted.length >> 1] ?? 0) * 10) / 10;
}

/** The number that nineteen of twenty don't exceed. */
const p95 = (numbers: number[]): number => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * 0.95)] ?? 0;

function tell(name: string, value: number, unit: string, target: number) {
  // The runner has words of its own for the output.
  appendFileSync(process.env.WATERSHED_FIGURES ?? "/dev/stderr", `${JSON.stringify({ name, value, unit, target })}\n`);
}

/** A project of models in layers, each of which reads two of the layer before. */
function layers(models: number): string {
  const at = join(folder(), "layers");
  const files: Record<string, string> = { "watershed.yaml": "olap_connector: duckdb\n" };
  const wide = Math.ceil(models / 6);
  for (let number = 0; number < models; number++) {
    const [layer, place] = [Math.floor(number / wide), number % wide];
    const parent = (step: number) => `m${layer - 1}_${(place * 7 + step) % wide}`;
    const reads = layer === 0 ? "SELECT 1 AS id" : `SELECT id FROM ${parent(0)} UNION ALL SELECT id FROM ${parent(3)}`;
    files[`models/layer_${layer}/m${layer}_${place}.sql`] = `${reads}\n`;
  }
  write(at, files);
  return at;
}

/** Everything that the graph needs, as it goes over a slow line: the page, and the files that it has asked for once the graph is there. */
async function firstLoad(page: Page) {
  const dist = join(ROOT, "console/dist");
  const asked: string[] = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  const names = new Set(asked.flatMap((address) => /\/assets\/([^/?]+\.(?:js|css|svg))$/.exec(address)?.[1] ?? []));
  // Workers ask for their files themselves.
  for (const name of readdirSync(join(dist, "assets"))) if (/worker-.*\.js$/.test(name)) names.add(name);
  const files = [join(dist, "index.html"), ...[...names].map((name) => join(dist, "assets", name))];
  const bytes = files.reduce((sum, path) => sum + gzipSync(readFileSync(path), { level: 9 }).length, 0);
  tell("first_load_kb", Math.round(bytes / 100) / 10, "kB", 110);
}

async function open(address: string, painted = "canvas[data-painted]"): Promise<{ page: Page; took: number }> {
  const context = await (await browser()).newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(address, { waitUntil: "commit" });
  const took = await page.evaluate(
    (painted) =>
      new Promise<number>((done) => {
        const now = () => done(performance.now());
        // A canvas says itself when it was painted; all else is with the next frame.
        const seen = () => (painted.startsWith("canvas") ? now() : requestAnimationFrame(now));
        const look = () => (document.querySelector(painted) ? seen() : requestAnimationFrame(look));
        look();
      }),
    painted,
  );
  return { page, took };
}

/** The times between frames, and the largest twentieth of them. */
async function frames(page: Page, during: () => Promise<unknown>): Promise<number> {
  await page.evaluate(() => {
    const times: number[] = [];
    let last = performance.now();
    const frame = (now: number) => {
      times.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    (window as any).times = times;
  });
  await during();
  const times: number[] = await page.evaluate(() => (window as any).times);
  return p95(times);
}

/** From a key to what it makes wrong or right, as the text and the list below it show that: a model ends in a dot, and doesn't. */
async function keystrokes(home: string): Promise<number[]> {
  const { page } = await open(`${home}/files/models/layer_3/m3_0.sql`, ".work .text .text");
  await page.getByRole("textbox", { name: "Text of models/layer_3/m3_0.sql" }).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("End");
  const took: number[] = [];
  for (let round = 0; round < 8 * ROUNDS; round++) {
    const isWrong = round % 2 === 0;
    await page.evaluate((isWrong) => {
      (window as any).judged = new Promise<number>((done, failed) => {
        setTimeout(() => failed(new Error(`a key was not judged in 10 seconds: ${isWrong}`)), 10_000);
        const look = (begun: number) => {
          const mark = document.querySelector(".work .text .text")?.shadowRoot?.querySelector(".cm-lintRange-error, .cm-lintPoint-error");
          const list = document.querySelector("[aria-label='What is wrong in the file']");
          if ([mark, list].every((one) => Boolean(one) === isWrong)) requestAnimationFrame(() => done(performance.now() - begun));
          else requestAnimationFrame(() => look(begun));
        };
        addEventListener("keydown", ({ timeStamp }) => look(timeStamp), { once: true, capture: true });
      });
    }, isWrong);
    await page.keyboard.press(isWrong ? "." : "Backspace");
    took.push(await page.evaluate(() => (window as any).judged));
  }
  await page.context().close();
  return took;
}

test("the costs of the console", { timeout: 900_000 }, async () => {
  const project = layers(1_000);
  const program = await Program.start(project);
  await program.settle();
  const home = `${program.origin}/ui/layers`;

  const loads: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { page, took } = await open(home);
    loads.push(took);
    if (round === 0) await firstLoad(page);
    await page.context().close();
  }
  tell("graph_1k_ms", median(loads), "ms", 700);

  // All thousand are done again: each is pending, runs, and ends.
  const storms: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { page } = await open(home);
    storms.push(await frames(page, () => program.ask("resources:refresh", { method: "POST", body: { confirm: 1_000 }, wait: 60 })));
    await page.context().close();
  }
  tell("storm_p95_ms", median(storms), "ms", 50);

  // From the file to the pixels: a model breaks and is mended, as the list and the graph show it.
  const lives: number[] = [];
  const { page } = await open(home);
  const path = join(project, "models/layer_5/m5_0.sql");
  const good = readFileSync(path, "utf8");
  for (let round = 0; round < 2 * ROUNDS; round++) {
    const failed = round % 2 === 0;
    const seen = page.evaluate(
      (failed) =>
        new Promise<number>((done) => {
          const look = () => {
            const chips = document.querySelectorAll("[aria-label='By standing'] .tone-failed").length;
            if (failed === chips > 0) requestAnimationFrame(() => done(Date.now()));
            else requestAnimationFrame(look);
          };
          look();
        }),
      failed,
    );
    const begun = Date.now();
    writeFileSync(path, failed ? "SELECT nothing_there FROM m4_0\n" : good);
    lives.push((await seen) - begun);
  }
  tell("live_ms", median(lives), "ms", 300);
  await page.context().close();

  tell("keystroke_ms", Math.round(p95(await keystrokes(home)) * 10) / 10, "ms", 150);

  // A night of twenty thousand runs: all thousand are done again until there are so many.
  for (let done = ROUNDS + 1; done < NIGHT; done++) await program.ask("resources:refresh", { method: "POST", body: { confirm: 1_000 }, wait: 60 });
  const nights: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const { page, took } = await open(`${home}/activity`, "[aria-label='Runs'] li");
    nights.push(took);
    await page.context().close();
  }
  tell("night_20k_ms", median(nights), "ms", 1_000);

  // A hundred thousand rows: from the click to the first of them on the screen.
  const firsts: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const question = "SELECT range AS id, range % 7 AS shop, range * 1.5 AS amount, 'name ' || range AS name FROM range(100000)";
    const { page } = await open(`${home}/sql#q=${encodeURIComponent(question)}`, ".bar .primary");
    firsts.push(
      await page.evaluate(
        () =>
          new Promise<number>((done) => {
            const begun = performance.now();
            const look = () => (document.querySelector("[data-row='0'] [data-column]") ? requestAnimationFrame(() => done(performance.now() - begun)) : requestAnimationFrame(look));
            (document.querySelector(".bar .primary") as HTMLElement).click();
            look();
          }),
      ),
    );
    await page.locator("[data-standing=whole]").waitFor();
    await page.context().close();
  }
  tell("rows_100k_first_ms", median(firsts), "ms", 300);
  await program.stop();
  await boards();
  await explores();
  await closeBrowser();
});

/** Charts of a board that is measured, with as many figures. */
const CHARTS = 10;

/** A board of twenty parts over the gallery's views: ten charts and ten figures, each with a query of its own. */
function twenty(): string {
  const project = copied("gallery");
  const kinds = ["line_chart", "area_chart", "bar_chart"];
  const limit = (place: number) => `x: {field: sold_at, type: temporal, limit: ${20 + place}}, y: {field: ${["takings", "cost", "sales", "pieces"][place % 4]}, type: quantitative}`;
  const charts = Array.from({ length: CHARTS }, (_, place) => `      - ${kinds[place % 3]}: {metrics_view: sales, ${limit(place)}, color: {field: ${["shop", "region", "paid"][place % 3]}}}\n`);
  const figures = Array.from({ length: CHARTS }, (_, place) => `      - kpi: {metrics_view: ${place % 2 ? "visits" : "sales"}, sparkline: none, measure: ${["sales", "came", "takings", "bought", "cost", "waited", "pieces", "bought_share", "basket", "came"][place]}}\n`);
  const row = (items: string[]) => `  - height: 160px\n    items:\n${items.join("")}`;
  write(project, { "canvases/twenty.yaml": `type: canvas\ntime_zones: [UTC]\ndefaults: {time_range: P3M}\nrows:\n${row(figures)}${row(charts.slice(0, 5))}${row(charts.slice(5))}` });
  return project;
}

/** Gives a page the time since a moment in which at least one of its questions had no answer yet: they lie over each other. */
function countWaits() {
  (window as any).waited = (since: number) => {
    const all = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    const asked = all.filter(({ name, requestStart }) => requestStart >= since && /\/metrics\/[^/]+\/(query|bounds)/.test(name));
    let [waited, until] = [0, 0];
    for (const { requestStart, responseStart } of asked.toSorted((a, b) => a.requestStart - b.requestStart)) {
      waited += Math.max(responseStart - Math.max(requestStart, until), 0);
      until = Math.max(until, responseStart);
    }
    return waited;
  };
}

/** A year of ten million facts, and an explore of them. All shops fit into their list, so that each can be clicked. */
function facts(): string {
  const at = join(folder(), "facts");
  const fact = "TIMESTAMP '2024-01-01' + to_seconds(range * 3) AS at, 'shop ' || range % 6 AS shop, 'kind ' || range * 7 % 12 AS kind, range % 1000 / 8 AS amount";
  write(at, {
    "watershed.yaml": "olap_connector: duckdb\n",
    "models/facts.sql": `-- @materialize: true\nSELECT ${fact} FROM range(10000000)\n`,
    "metrics/facts.yaml":
      "version: 1\ntype: metrics_view\nmodel: facts\ntimeseries: at\ndimensions:\n  - {name: shop, column: shop}\n  - {name: kind, column: kind}\n" +
      "measures:\n  - {name: sales, expression: count(*)}\n  - {name: taken, expression: sum(amount)}\n",
    "explores/all.yaml": 'type: explore\nmetrics_view: facts\ndimensions: "*"\nmeasures: "*"\ndefaults: {time_range: P1Y}\n',
  });
  return at;
}

/** From a filter that is clicked to all its charts painted, without the time in which the engine has questions to answer. */
async function explores() {
  const program = await Program.start(facts());
  await program.settle();
  const page = await (await (await browser()).newContext({ viewport: { width: 1440, height: 1_200 } })).newPage();
  await page.addInitScript(countWaits);
  await page.goto(`${program.origin}/ui/facts/explores/all`);
  await settled(page);
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    await page.evaluate((shop) => {
      performance.clearResourceTimings();
      const named = (button: HTMLElement) => button.textContent?.trim() === shop;
      const buttons = [...document.querySelectorAll<HTMLElement>("[aria-label='By dimension'] button")];
      const button = buttons.find(named);
      if (!button) throw new Error(`there is no ${shop}`);
      (window as any).painted = new Promise<number>((done) => {
        const begun = performance.now();
        let quiet = 0;
        const look = () => {
          // What was clicked is asked for by the third frame.
          quiet = document.querySelector("article.explore[aria-busy=false]") ? quiet + 1 : 0;
          const [now, waited] = [performance.now(), (window as any).waited(begun)];
          if (quiet > 3 && waited > 0) done(now - begun - waited);
          else requestAnimationFrame(look);
        };
        button.click();
        look();
      });
    }, `shop ${round}`);
    const took: number = await page.evaluate(() => (window as any).painted);
    if (round > 0) times.push(took);
    await settled(page);
  }
  tell("explore_ms", median(times), "ms", 150);
  await page.context().close();
  await program.stop();
}

/** From the navigation to twenty painted parts, when all files are at hand, without the time in which the engine has questions to answer. */
async function boards() {
  const program = await Program.start(twenty());
  await program.settle();
  const page = await (await (await browser()).newContext({ viewport: { width: 1440, height: 1_200 } })).newPage();
  await page.addInitScript(countWaits);
  const times: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    await page.goto("about:blank");
    await page.goto(`${program.origin}/ui/gallery/canvases/twenty`, { waitUntil: "commit" });
    const took = await page.evaluate(
      (charts) =>
        new Promise<number>((done) => {
          const look = () => {
            const painted = document.querySelectorAll(".board .chart[aria-busy=false] canvas").length === charts && document.querySelectorAll(".board [data-measure]").length === charts;
            if (!painted) return void requestAnimationFrame(look);
            requestAnimationFrame(() => {
              done(performance.now() - (window as any).waited(0));
            });
          };
          look();
        }),
      CHARTS,
    );
    // The first visit fetches what draws.
    if (round > 0) times.push(took);
  }
  tell("board_20_ms", median(times), "ms", 1_000);
  await page.context().close();
  await program.stop();
}