// What axe finds, in both themes and on a narrow page; and the order in which a page is read.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LOOKS, FAILED_REQUEST, accessible, closeBrowser, picture, visit } from "./lib/browser.ts";
import { home, pageOf, shows } from "./lib/journey.ts";
import { canRun } from "./lib/needs.ts";
import { Program } from "./lib/program.ts";
import { project, shop, write } from "./lib/projects.ts";

const LONG = "revenue_by_region_and_quarter_with_growth_rates";

describe.runIf(canRun)("the pages", () => {
  let program: Program;
  beforeAll(async () => {
    program = await Program.start(shop());
    write(program.project, {
      "models/daily.sql": "-- @materialize: true\nSELECT shop, sum(amount) AS taken FROM ordres GROUP BY shop\n",
      [`models/${LONG}.sql`]: "SELECT * FROM orders\n",
      "models/checked.yaml":
        "type: model\nmaterialize: true\nsql: SELECT i AS id FROM range(3) t(i)\ntests:\n  - {name: no zero, assert: id > 0, severity: warn}\n",
    });
    await program.settle().catch(() => {});
  });
  afterAll(async () => {
    await program?.stop();
    await closeBrowser();
  });

  test.each([...LOOKS])("have nothing serious in the $theme theme at $width pixels", async ({ theme, width }) => {
    const options = { colorScheme: theme, viewport: { width, height: width > 400 ? 900 : 800 } };
    const { page, leave } = await visit(home(program.home, "shop"), options);
    const look = async (name: string) => {
      await accessible(page);
      // Nothing but code and lines may be wider than the page.
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `${name} ${theme} ${width}`);
    };
    await page.getByText("daily").first().waitFor();
    await look("project");
    const names: [string, string, string][] = [
      ["model", "best", "blocked"],
      ["model", "daily", "failed"],
      ["model", LONG, "ok"],
      ["model", "checked", "ok"],
      ["metrics_view", "orders", "ok"],
    ];
    for (const [kind, name, health] of names) {
      await page.goto(pageOf(program.home, "shop", kind, name));
      await shows(page, health);
      await page.getByRole("region", { name: "History" }).getByRole("listitem").first().waitFor();
      await look(name);
    }
    await page.getByText("Spec, with its defaults").click();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox", { name: "Find resources and actions" }).waitFor();
    await look("palette");
    await page.keyboard.type("retry all");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Retry 1 resource?" }).waitFor();
    await look("question");
    await page.keyboard.press("Escape");
    await page.goto(pageOf(program.home, "shop", "model", "dialy"));
    await page.getByText("Nothing of this kind has that name.").waitFor();
    await look("unknown");
    await leave(FAILED_REQUEST);
  });

  test("read a failed resource in the order in which it is understood", async () => {
    const { page, leave } = await visit(pageOf(program.home, "shop", "model", "daily"));
    await shows(page, "failed");
    await page.getByRole("region", { name: "History" }).getByRole("listitem").first().waitFor();
    // The steps are asked for once the history is there.
    await page.getByRole("heading", { name: /Last run by step/ }).waitFor();
    const headings = page.locator("main").getByRole("heading");
    const order = (await headings.allTextContents()).map((text) => text.replace(/ \d+$/, ""));
    const wanted = ["daily", "What is wrong", "Code", "History", "Read by", "Last run by step", "Logs", "Spec and state"];
    expect(order.filter((title) => wanted.includes(title))).toEqual(wanted);
    await leave();
  });
});

describe.runIf(canRun)("a project without resources", () => {
  test("says so", async () => {
    const program = await Program.start(project("empty", {}));
    const { page, leave } = await visit(home(program.home, "empty"));
    await accessible(page);
    await picture(page, "empty");
    await leave();
    await program.stop();
    await closeBrowser();
  });
});
