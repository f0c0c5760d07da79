// The picture of the documents, from the real program on the flights project with a model that is broken.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { closeBrowser, visit } from "./lib/browser.ts";
import { copied, write } from "./lib/projects.ts";
import { Program, ROOT } from "./lib/program.ts";

test("the picture of the console", { timeout: 120_000 }, async () => {
  const project = copied("flights");
  const program = await Program.start(project);
  await program.settle();
  const model = "models/2_joined/departures_in_weather.sql";
  const broken = readFileSync(join(project, model), "utf8").replace(/\bFROM \w+/i, "FROM hourly_wether");
  const { page, leave } = await visit(`${program.origin}/ui/flights`, { viewport: { width: 1280, height: 720 }, deviceScaleFactor: 1, colorScheme: "light" });
  write(project, { [model]: broken });
  await page.locator("[aria-label='By standing'] .tone-blocked").waitFor();
  await page.getByRole("button", { name: "Sort again" }).click();
  await page.locator("ol a").first().focus();
  await page.locator("canvas[data-painted]").waitFor({ state: "attached" });
  await page.screenshot({ path: join(ROOT, "docs/recordings/console.png") });
  await leave();
  await program.stop();
  await closeBrowser();
});
