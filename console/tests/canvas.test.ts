// Boards: what their authors laid out stands on the page, and whoever looks at them moves all of it at once.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FAILED_REQUEST, LOOKS, accessible, picture, visit } from "./lib/browser.ts";
import { asked, boardOf, part, readOut } from "./lib/boards.ts";
import { settled, told } from "./lib/explore.ts";
import { find, home, pageOf, tabTo } from "./lib/journey.ts";
import { copied, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const THROUGH = "canvas/new_york";
const DESK = "desk@jfk.example.org";
const YEAR = { time_range: "P1Y", time_zone: "America/New_York" };

/** A board that asks nothing before an airport is chosen, and one with a part of each sort that can't be drawn. */
function boards(): string {
  const project = copied("flights");
  write(project, {
    "canvases/of_one.yaml":
      "type: canvas\ndisplay_name: Of one airport\nfilters: {required: [origin]}\ndefaults: {time_range: P1M}\nrows:\n  - items:\n      - kpi: {metrics_view: departures, measure: flights}\n      - leaderboard: {metrics_view: departures, dimensions: [airline], measures: [flights]}\n",
    "canvases/begun.yaml":
      "type: canvas\ntime_ranges: [P1M, P1Y]\nallow_custom_time_range: false\ntime_zones: [America/New_York]\ndefaults: {time_range: P1M, comparison_mode: time, filters: {departures: \"origin = 'LGA'\"}}\nrows:\n  - items:\n      - kpi: {metrics_view: departures, measure: flights}\n      - table: {metrics_view: departures, columns: [airline, flights, mean_delay]}\n      - pivot: {metrics_view: departures, row_dimensions: [airline], col_dimensions: [origin], measures: [flights]}\n",
    "canvases/parts.yaml":
      "type: canvas\nrows:\n  - items:\n      - globe: {of: tomorrow}\n      - image: {url: 'https://example.org/a.png'}\n      - markdown: {content: \"# Delay\\n\\n[the airport](https://example.org/jfk)\"}\n  - items:\n      - {width: 7, kpi: {metrics_view: departures, measure: flights}}\n      - {width: 6, kpi: {metrics_view: departures, measure: mean_delay}}\n",
  });
  return project;
}

served("the boards of flights", boards, (on) => {
  const figure = async (measure: string, where?: string, view = "departures") => {
    const [, [text] = []] = await told(on.program, { metrics_view: view, measures: [measure], ...YEAR, ...(where ? { where: { cond: { op: "in", exprs: [{ name: "origin" }, { val: [where] }] } } } : {}) }, THROUGH);
    return text;
  };

  test("stand as their author laid them out, and a chosen airport moves all of them, by mouse", async () => {
    const { page, leave } = await visit(home(on.program.home, "flights"));
    const questions = asked(page);
    await page.getByRole("link", { name: "Explore", exact: true }).click();
    await page.getByRole("link", { name: "new_york", exact: true }).click();
    await settled(page);
    await page.getByRole("heading", { name: "Leaving New York" }).waitFor();
    await page.getByText("The year 2013, as the three airports knew it.").waitFor();
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(await figure("flights"));
    expect(await page.locator("[data-measure=ruined_share]").innerText()).toBe(await figure("ruined_share", undefined, "airport_days"));
    await page.getByText("Airport: any").click();
    questions.length = 0;
    await page.getByRole("checkbox", { name: "JFK" }).click();
    await settled(page);
    expect(new URL(page.url()).search).toBe("?is.origin=JFK");
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(await figure("flights", "JFK"));
    expect(await page.locator("[data-measure=ruined_share]").innerText()).toBe(await figure("ruined_share", "JFK", "airport_days"));
    const asking = questions.filter(({ query }) => query.measures);
    expect(new Set(asking.map(({ view }) => view))).toEqual(new Set(["departures", "airport_days"]));
    expect(asking.every(({ query }) => JSON.stringify(query.where).includes("JFK"))).toBe(true);
    // A click in a component filters the board, and again clears that.
    const weather = part(page, "Delay by weather").locator("tbody .value").first();
    const value = (await weather.innerText()).trim();
    await weather.click();
    await settled(page);
    expect(new URL(page.url()).searchParams.getAll("is.conditions")).toEqual([value]);
    await page.getByText("Not filtered by Weather, which its data do not have.").first().waitFor();
    // By the clock of the airports days and departures end with the same year.
    await page.getByText("2013-01-01 to 2014-01-01 (America/New_York)").waitFor();
    expect(await part(page, "Flights").getByText("Its time is").count()).toBe(0);
    await weather.click();
    await settled(page);
    expect(new URL(page.url()).search).toBe("?is.origin=JFK");
    await page.goBack();
    await page.goBack();
    await page.goBack();
    await settled(page);
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(await figure("flights"));
    await leave();
  });

  test("are walked by keyboard alone: airport, tabs and the table of a chart", async () => {
    const { page, leave } = await visit(home(on.program.home, "flights"));
    await page.getByRole("link", { name: "Explore", exact: true }).waitFor();
    await find(page, "board new_york");
    await settled(page);
    await tabTo(page, "Airport: any");
    await page.keyboard.press("Enter");
    await tabTo(page, "Search values of Airport");
    await page.keyboard.type("LG");
    await settled(page);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.getByRole("region", { name: "Filters" }).getByText("Airport is LGA").waitFor();
    await tabTo(page, "By hour");
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name: "By airline", selected: true }).waitFor();
    expect(new URL(page.url()).searchParams.get("tab.more")).toBe("By airline");
    await page.getByRole("tabpanel").locator("tbody .value").nth(4).waitFor();
    await page.keyboard.press("Home");
    await page.getByRole("tab", { name: "By hour", selected: true }).waitFor();
    await tabTo(page, /^As a table: Mean delay by Hour/);
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: /^Mean delay by Hour.* as a table/ }).getByRole("row").nth(1).waitFor();
    await leave();
  });

  test("show another person the same from a link, as far as his policies allow", async () => {
    const words = "range=P1M&compare=-1P&is.origin=JFK&tab.more=By+airline";
    const first = await visit(boardOf(on.program.home, "flights", "new_york", words));
    await settled(first.page);
    const said = await readOut(first.page);
    expect(said.join()).toContain("▲");
    await first.leave();
    const second = await visit(boardOf(on.program.home, "flights", "new_york", words));
    await settled(second.page);
    expect(await readOut(second.page)).toEqual(said);
    await second.page.getByText("View as").click();
    await second.page.getByLabel(/E-mail of one/).fill(DESK);
    await second.page.getByRole("button", { name: "View", exact: true }).click();
    await second.page.getByText(`You see what ${DESK} sees.`).waitFor();
    await settled(second.page);
    const [, [own] = []] = await told(on.program, { metrics_view: "departures", measures: ["flights"], time_range: "P1M", time_zone: "America/New_York" }, THROUGH, DESK);
    await second.page.getByRole("button", { name: "Remove: Airport is JFK" }).click();
    await settled(second.page);
    expect(await second.page.locator("[data-measure=flights]").innerText()).toBe(own);
    await second.leave(FAILED_REQUEST);
  });

  test("that require a filter ask for nothing before it is set", async () => {
    const { page, leave } = await visit(home(on.program.home, "flights"));
    const questions = asked(page);
    await page.goto(boardOf(on.program.home, "flights", "of_one"));
    await page.getByText("Choose a value of From above: before that, nothing is asked.").waitFor();
    await settled(page);
    expect(questions).toEqual([]);
    await page.getByText("From: choose").click();
    await page.getByRole("checkbox", { name: "EWR" }).click();
    await settled(page);
    const [, [flights] = []] = await told(on.program, { metrics_view: "departures", measures: ["flights"], time_range: "P1M", time_zone: "UTC", where: { cond: { op: "in", exprs: [{ name: "origin" }, { val: ["EWR"] }] } } }, "canvas/of_one");
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(flights);
    await page.getByRole("button", { name: "Remove: From is EWR" }).click();
    await page.getByText("Waits for From.").first().waitFor();
    await leave();
  });

  test("begin as the file says, which a person may take away", async () => {
    const { page, leave } = await visit(boardOf(on.program.home, "flights", "begun"));
    const questions = asked(page);
    await page.reload();
    await settled(page);
    expect(questions.length).toBeGreaterThan(2);
    expect(questions.every(({ query, where }) => where === "origin = 'LGA'" && query.time_range === "P1M" && query.time_zone === "America/New_York")).toBe(true);
    expect(await page.getByRole("button", { name: "other…" }).count()).toBe(0);
    const all = { metrics_view: "departures", measures: ["flights"], time_range: "P1M", time_zone: "America/New_York" };
    const [, [begun] = []] = await told(on.program, { ...all, where: { cond: { op: "eq", exprs: [{ name: "origin" }, { val: "LGA" }] } } }, "canvas/begun");
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(begun);
    await page.getByRole("button", { name: "Remove: origin = 'LGA' (Departures" }).click();
    await settled(page);
    const [, [bare] = []] = await told(on.program, all, "canvas/begun");
    expect(await page.locator("[data-measure=flights]").innerText()).toBe(bare);
    expect(new URL(page.url()).search).toBe("?filters=none");
    // A heading sorts, and what is read there can be read from the program.
    const table = page.getByRole("region", { name: "Flights, Mean delay by Airline" }).last();
    await table.getByRole("button", { name: "Mean delay" }).click();
    await settled(page);
    const last = questions.filter(({ query }) => query.sort?.[0]?.name === "mean_delay").at(-1)!;
    const [, ...rows] = await told(on.program, { metrics_view: "departures", ...last.query, limit: last.limit }, "canvas/begun");
    const shown = await table.locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent?.trim() ?? "")));
    expect(shown).toEqual(rows.map((row) => row.map((cell) => (cell === "" ? "no value" : cell))));
    await leave();
  });

  test("show the numbers of an edited view by themselves", async () => {
    const file = "metrics/departures.yaml";
    const before = readFileSync(join(on.program.project, file), "utf8");
    const { page, leave } = await visit(boardOf(on.program.home, "flights", "new_york"));
    await settled(page);
    const shown = page.locator("[data-measure=flights]");
    const said = await shown.innerText();
    write(on.program.project, { [file]: before.replace("expression: count(*)\n", "expression: 2 * count(*)\n") });
    await expect.poll(() => shown.innerText()).not.toBe(said);
    write(on.program.project, { [file]: before });
    await expect.poll(() => shown.innerText()).toBe(said);
    await settled(page);
    await leave();
  });

  test("are read out from top to bottom, and what can't be drawn says so in its place", async () => {
    const { page, leave } = await visit(boardOf(on.program.home, "flights", "new_york"));
    await settled(page);
    const said = (await readOut(page)).map((text) => text.split(":")[0]);
    expect(said).toEqual(["Markdown", "Flights", "Mean delay", "Share ruined", "Share ruined, mean of seven days by Day, Airport", "Delay by weather", "Mean delay by Hour of the day"]);
    await page.goto(boardOf(on.program.home, "flights", "parts"));
    await settled(page);
    await page.getByText("Nothing here draws globe.").waitFor();
    await page.getByText("A picture elsewhere, which is not loaded").waitFor();
    expect(await page.getByRole("link", { name: /^the airport ↗ example\.org/ }).getAttribute("rel")).toContain("noopener");
    // What is wider than the twelve columns stands below.
    const [first, second] = await Promise.all(["Flights", "Mean delay"].map((name) => part(page, name).boundingBox()));
    expect(second!.y).toBeGreaterThan(first!.y + first!.height - 1);
    // A link may name a variable that the board does not have any more.
    await page.goto(boardOf(on.program.home, "flights", "parts", "let.gone=DE"));
    await page.getByText("This part of the address has no meaning here: let.gone=DE").waitFor();
    await settled(page);
    await page.goto(boardOf(on.program.home, "flights", "no_such_board"));
    await page.getByText("unknown-name").waitFor();
    await page.goto(pageOf(on.program.home, "flights", "canvas", "new_york"));
    await page.getByRole("link", { name: "Open the board" }).click();
    await settled(page);
    await leave(FAILED_REQUEST);
  });

  test.each([...LOOKS])("have nothing serious in the $theme theme at $width pixels", async ({ theme, width }) => {
    const { page, leave } = await visit(boardOf(on.program.home, "flights", "new_york", "compare=-1P"), { colorScheme: theme, viewport: { width, height: 2_400 } });
    for (const name of ["new_york", "begun", "of_one", "parts"]) {
      await page.goto(boardOf(on.program.home, "flights", name, "compare=-1P"));
      await settled(page);
      await accessible(page);
      expect(await page.locator("main").evaluate((main) => main.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `board ${name} ${theme} ${width}`);
    }
    await leave();
  });
});
