// Explores: somebody without SQL sees how a measure moves and who makes it, and a colleague sees his own part.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LOOKS, FAILED_REQUEST, accessible, picture, visit } from "./lib/browser.ts";
import { board, exploreOf, figuresOf, isTrue, questions, rowsOf, settled, told } from "./lib/explore.ts";
import { find, home, tabTo } from "./lib/journey.ts";
import { copied } from "./lib/projects.ts";
import { random, SEED } from "./lib/random.ts";
import { served } from "./lib/served.ts";

const DESK = "desk@jfk.example.org";
const NEW_YORK = { time_zone: "America/New_York" };

served("the explores of flights", () => copied("flights"), (on) => {
  test("explain why February was bad, from nothing to the airline and the day, by mouse", async () => {
    const { page, leave } = await visit(home(on.program.home, "flights"));
    await page.getByRole("link", { name: "Explore", exact: true }).click();
    await page.getByRole("link", { name: "departures", exact: true }).click();
    await settled(page);
    await page.getByRole("button", { name: "other…" }).click();
    await page.getByLabel("or in words").fill("2013-02");
    await page.getByRole("button", { name: "Take it" }).click();
    await page.getByText("2013-02-01 to 2013-03-01 (America/New_York)").waitFor();
    await settled(page);
    const [, [share, delay] = []] = await told(on.program, { metrics_view: "departures", measures: ["cancelled_share", "mean_delay"], time_range: "2013-02", ...NEW_YORK }, "departures");
    expect(await figuresOf(page)).toEqual({ cancelled_share: share, mean_delay: delay });
    await board(page, "Weather").getByRole("button", { name: "snow or ice", exact: true }).click();
    await settled(page);
    await board(page, "Airline").getByRole("button", { name: "Delta Air Lines Inc.", exact: true }).click();
    await settled(page);
    await board(page, "From").getByRole("button", { name: "EWR", exact: true }).click({ modifiers: ["Alt"] });
    await settled(page);
    expect(new URL(page.url()).search).toBe("?range=2013-02&is.conditions=snow+or+ice&is.airline=Delta+Air+Lines+Inc.&not.origin=EWR");
    // A span that is drawn over the chart is the new range.
    const chart = page.getByRole("application", { name: "Mean delay over time" });
    const box = (await chart.locator(".u-over").boundingBox())!;
    await page.mouse.move(box.x + (box.width * 7) / 27, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + (box.width * 10) / 27, box.y + 40, { steps: 5 });
    await page.mouse.up();
    await page.getByText("2013-02-08 to 2013-02-12 (America/New_York)").waitFor();
    await settled(page);
    await page.getByRole("button", { name: "Rows", exact: true }).click();
    const rows = page.getByRole("region", { name: "Rows behind" });
    await rows.getByText("Delta Air Lines Inc.").first().waitFor();
    expect(await rows.getByText("EWR", { exact: true }).count()).toBe(0);
    // Back is the view before.
    await page.goBack();
    await page.goBack();
    await page.getByText("2013-02-01 to 2013-03-01 (America/New_York)").waitFor();
    await leave();
  });

  test("are walked by keyboard alone: cursor, span, values and filters", async () => {
    const { page, leave } = await visit(home(on.program.home, "flights"));
    await page.getByRole("link", { name: "Explore", exact: true }).waitFor();
    await find(page, "explore departures");
    await settled(page);
    await tabTo(page, "last month");
    await page.keyboard.press("Enter");
    await page.getByText("2013-12-01 to 2014-01-01").waitFor();
    await settled(page);
    await tabTo(page, "Share cancelled over time");
    await page.keyboard.press("Home");
    await page.getByText(/Sun.* 1 Dec.* 2013: /).first().waitFor();
    await page.keyboard.press("ArrowRight");
    await page.getByText(/Mon.* 2 Dec.* 2013: /).first().waitFor();
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Enter");
    await page.getByText("2013-12-02 to 2013-12-05").first().waitFor();
    await settled(page);
    await tabTo(page, "JFK");
    await page.keyboard.press("Space");
    await page.getByRole("region", { name: "Filters" }).getByText("From is JFK").waitFor();
    await tabTo(page, "Add a filter");
    await page.keyboard.press("Enter");
    await tabTo(page, "Search values of From");
    await page.keyboard.type("LG");
    await settled(page);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.getByRole("region", { name: "Filters" }).getByText("From is JFK or LGA").waitFor();
    await leave();
  });

  test("compare with the time before, and a missing value is no zero", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=2013-02&sort=mean_delay"));
    await settled(page);
    await page.getByRole("combobox", { name: "compared with" }).selectOption("-1P");
    await settled(page);
    const query = { metrics_view: "departures", measures: ["mean_delay", { name: "b", compute: { comparison_value: { measure: "mean_delay" } } }, { name: "c", compute: { comparison_ratio: { measure: "mean_delay" } } }], time_range: "2013-02", comparison_time_range: { offset: "-1P" }, ...NEW_YORK };
    const [, [now, before, change] = []] = await told(on.program, query, "departures");
    const figure = page.getByRole("region", { name: "Mean delay", exact: true }).locator(".figure");
    expect((await figure.innerText()).replace(/\s+/g, " ")).toBe(`Mean delay ${now} ▲ ${change} from ${before}`);
    await page.getByRole("region", { name: "Mean delay", exact: true }).getByText("As a table").click();
    const table = page.getByRole("region", { name: "Mean delay as a table" });
    expect(await table.locator("thead").innerText()).toContain("before");
    expect(await table.locator("tbody tr").count()).toBe(28);
    // February has no row of SkyWest, and the comparison has none either: both sides say so.
    await page.getByRole("combobox", { name: "Order" }).selectOption("change");
    await settled(page);
    const shown = await rowsOf(page, "Airline");
    expect(shown.length).toBe(8);
    await page.getByRole("button", { name: "All values of Airline" }).click();
    await page.getByRole("dialog").getByText("no value").first().waitFor();
    await leave();
  });

  test("show a colleague his own part of a link, and nothing of the rest", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=P1M&by=origin"));
    await settled(page);
    await page.getByText("View as").click();
    await page.getByLabel(/E-mail of one/).fill(DESK);
    await page.getByRole("button", { name: "View", exact: true }).click();
    await page.getByText(`You see what ${DESK} sees.`).waitFor();
    await settled(page);
    expect((await rowsOf(page, "From")).map(([value]) => value)).toEqual(["JFK"]);
    expect(await page.locator("main").innerText()).not.toMatch(/\b(EWR|LGA)\b/);
    expect(page.url()).not.toContain("desk");
    await page.getByRole("button", { name: "Stop" }).click();
    await board(page, "From").getByText("EWR").waitFor();
    await page.getByText("View as").click();
    await page.getByLabel(/E-mail of one/).fill("nobody@example.org");
    await page.getByRole("button", { name: "View", exact: true }).click();
    await page.getByText(/no mock user has the e-mail/).waitFor();
    await leave(FAILED_REQUEST);
  });

  test("name what an address says that can't be read, and show the rest", async () => {
    const words = "range=P1M&grain=second&token=abc&is.origin=JFK&is.gone=1&of.airline=flights%3E500&measures=flights";
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", words));
    await settled(page);
    await page.getByText("This part of the address has no meaning here: token=abc grain=second").waitFor();
    const filters = page.getByRole("region", { name: "Filters" });
    await filters.getByText("no field here: gone is 1").waitFor();
    await filters.getByText("Airline whose Flights is above 500").waitFor();
    await filters.getByRole("button", { name: "Remove: gone is 1" }).click();
    await filters.getByText("gone is 1").waitFor({ state: "detached" });
    expect(page.url()).not.toContain("gone");
    await page.goto(exploreOf(on.program.home, "flights", "departures", "range=someday"));
    await page.getByText(/"someday" is no range of time/).first().waitFor();
    await page.goto(exploreOf(on.program.home, "flights", "nothing"));
    await page.getByText(/there is no resource `explore\/nothing`/).waitFor();
    await page.goto(exploreOf(on.program.home, "flights", "departures", "range=2030"));
    await page.getByText("No rows in this time.").first().waitFor();
    await leave(FAILED_REQUEST);
  });

  test("set filters by values that are searched while one types, by texts and by measures", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=P1M"));
    await settled(page);
    const filters = page.getByRole("region", { name: "Filters" });
    await filters.getByText("Add a filter").click();
    await filters.getByRole("combobox", { name: "Field" }).selectOption("airline");
    await filters.getByRole("searchbox").fill("delta");
    await filters.getByLabel("Delta Air Lines Inc.").check();
    await filters.getByText("Airline is Delta Air Lines Inc.").waitFor();
    await filters.getByRole("combobox", { name: "Condition" }).selectOption("lacks");
    await filters.getByRole("combobox", { name: "Field" }).selectOption("destination");
    await filters.getByLabel("Text").fill("A");
    await filters.getByRole("button", { name: "Set" }).click();
    await filters.getByText("To lacks A").waitFor();
    await filters.getByText("Add a filter").click();
    await filters.getByRole("combobox", { name: "Condition" }).selectOption("between");
    await filters.getByRole("combobox", { name: "Measure" }).selectOption("flights");
    await filters.getByRole("textbox", { name: "From" }).fill("10");
    await filters.getByRole("textbox", { name: "To" }).fill("1e3");
    await filters.getByRole("button", { name: "Set" }).click();
    await filters.getByText("To whose Flights is from 10 to 1e3").waitFor();
    await settled(page);
    expect(new URL(page.url()).search).toBe("?range=P1M&is.airline=Delta+Air+Lines+Inc.&lacks.destination=A&of.destination=flights%3A10..1e3");
    await leave();
  });

  test("pivot with totals that are the service's, and are taken along as a file and as a query", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "view=pivot&range=P3M&rows=airline&measures=flights,mean_delay"));
    await settled(page);
    await page.getByLabel("Add to columns").selectOption("scheduled_at:month");
    await settled(page);
    expect(new URL(page.url()).searchParams.get("columns")).toBe("scheduled_at:month");
    const table = page.getByRole("region", { name: "Pivot table" });
    expect(await table.locator("thead th").allInnerTexts()).toEqual(["Airline", "2013-10-01 Flights", "2013-10-01 Mean delay", "2013-11-01 Flights", "2013-11-01 Mean delay", "2013-12-01 Flights", "2013-12-01 Mean delay", "total Flights", "total Mean delay"]);
    const [, ...months] = await told(on.program, { metrics_view: "departures", dimensions: [{ name: "scheduled_at", grain: "month" }], measures: ["flights", "mean_delay"], time_range: "P3M", ...NEW_YORK }, "departures");
    expect(await table.locator("tfoot td.number").allInnerTexts()).toEqual(months.flatMap(([, ...numbers]) => numbers));
    const [, ...airlines] = await told(on.program, { metrics_view: "departures", dimensions: ["airline"], measures: ["flights", "mean_delay"], time_range: "P3M", sort: ["airline"], ...NEW_YORK }, "departures");
    expect(await table.locator("tbody td.total").allInnerTexts()).toEqual(airlines.flatMap(([, ...numbers]) => numbers));
    await page.getByRole("region", { name: "Pivot", exact: true }).getByText("take along").click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV", exact: true }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe("departures_pivot.csv");
    const lines = readFileSync(await file.path(), "utf8").trim().split("\r\n");
    expect(lines).toHaveLength(airlines.length + 1);
    const query = await page.locator(".entries pre").innerText();
    expect((await told(on.program, JSON.parse(query), "departures")).length).toBe(airlines.length + 1);
    await leave();
  });

  test("say that data is newer, and change nothing until somebody asks", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=P7D"));
    await settled(page);
    const asked = questions(page);
    await on.program.ask("resources/model/departures_in_weather/refresh", { method: "POST", wait: 60 });
    const button = page.getByRole("button", { name: "Newer data: show it" });
    await button.waitFor();
    expect(asked.size).toBe(0);
    await button.click();
    await button.waitFor({ state: "detached" });
    await settled(page);
    expect(asked.has("figures")).toBe(true);
    await leave();
  });

  test("ask each tile once, and at most six questions at a time", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures"));
    await settled(page);
    const seen: string[] = [];
    page.on("request", (request) => request.url().endsWith("/query") && seen.push(request.postData() ?? ""));
    // The page counts itself: what is told from outside comes late.
    await page.addInitScript(() => {
      const counted = Object.assign(window, { asked: 0, most: 0 });
      const real = window.fetch;
      window.fetch = async (...words) => {
        if (!String(words[0]).endsWith("/query")) return real(...words);
        counted.most = Math.max(counted.most, ++counted.asked);
        return real(...words).finally(() => (counted.asked -= 1));
      };
    });
    await page.goto(exploreOf(on.program.home, "flights", "departures", "range=P1M&compare=-1P&dimensions=origin,destination,airline,conditions,leaving_hour,weekday"));
    await settled(page);
    for (let step = 0; step < 4; step++) await page.mouse.wheel(0, 600);
    await settled(page);
    expect(seen.length).toBeGreaterThan(4);
    expect(new Set(seen).size).toBe(seen.length);
    const most = await page.evaluate(() => (window as unknown as { most: number }).most);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(6);
    await leave();
  });

  test.each([...LOOKS])("have nothing serious for axe in the $theme theme at $width pixels", async ({ theme, width }) => {
    const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=P1M&compare=-1P&is.origin=JFK"), { colorScheme: theme, viewport: { width, height: 900 } });
    const look = async (name: string) => {
      await settled(page);
      await accessible(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      expect(await page.locator("main").evaluate((main) => main.scrollWidth - main.clientWidth)).toBeLessThanOrEqual(0);
      await picture(page, `explore ${name} ${theme} ${width}`);
    };
    await look("overview");
    await page.getByText("As a table").first().click();
    await page.getByText("Add a filter").click();
    await look("filter");
    await page.goto(exploreOf(on.program.home, "flights", "airport_days", "view=pivot&columns=day:month"));
    await look("pivot");
    await page.goto(exploreOf(on.program.home, "flights", "departures", "view=rows&range=P1D"));
    await look("rows");
    await leave();
  });

  test(`show at each step of a random walk what the program answers (seed ${SEED})`, async () => {
    const below = random(SEED);
    const steps = Number(process.env.WATERSHED_STEPS ?? 12);
    for (const as of [undefined, DESK]) {
      const { page, leave } = await visit(exploreOf(on.program.home, "flights", "departures", "range=P3M"));
      const asked = questions(page);
      await settled(page);
      if (as) {
        await page.getByText("View as").click();
        await page.getByLabel(/E-mail of one/).fill(as);
        await page.getByRole("button", { name: "View", exact: true }).click();
        await page.getByText(`You see what ${as} sees.`).waitFor();
      }
      let compared = 0;
      for (let step = 0; step < steps; step++) {
        const values = page.locator("section[aria-label='By dimension'] .value:not([disabled])");
        const ways = [
          async () => page.getByRole("group", { name: "Range" }).locator("button:not([aria-expanded])").nth(below(4)).click(),
          async () => page.getByRole("combobox", { name: "compared with" }).selectOption(["none", "-1P", "-1M", "-1Y"][below(4)]!),
          async () => page.getByRole("combobox", { name: "Measure of the leaderboards" }).selectOption({ index: below(2) }),
          async () => page.getByRole("button", { name: /^(high|low)est first$/ }).click(),
          async () => (await values.count()) && values.nth(below(await values.count())).click(below(3) === 0 ? { modifiers: ["Alt"] } : {}),
          async () => page.getByRole("region", { name: "Filters" }).getByRole("button", { name: /^Remove: / }).first().click({ timeout: 500 }).catch(() => {}),
        ];
        await ways[below(ways.length)]!();
        await settled(page);
        compared += await isTrue(page, on.program, asked, "departures", { origin: "From", airline: "Airline", conditions: "Weather" }, as);
      }
      expect(compared).toBeGreaterThan(steps * 3);
      await leave(FAILED_REQUEST);
    }
  }, 300_000);
});
