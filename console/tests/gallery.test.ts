// The gallery on the real program: each of its parts draws, or says in words why it does not.

import { expect, test } from "vitest";
import { FAILED_REQUEST, LOOKS, accessible, picture, visit } from "./lib/browser.ts";
import { asked, boardOf, framesOf, part, readOut } from "./lib/boards.ts";
import { settled, told } from "./lib/explore.ts";
import { tabTo } from "./lib/journey.ts";
import { copied, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

const NORTH = "north@bakery.example.org";
/** Boards, with what their addresses say. */
const BOARDS: Record<string, string> = { figures: "", charts: "", own: "", choices: "let.details=true", narrowed: "is.shop=Market", fixed: "" };
/** What does not draw, and says so. */
const SAYS: Record<string, RegExp> = {
  "A picture elsewhere": /which is not loaded/,
  // Its second measure is not among those that the service asks for.
  "Came in": /no column “bought”/,
};

/** The gallery, with a board of which one part is broken, one without rows, and long names. */
function gallery(): string {
  const project = copied("gallery");
  write(project, {
    "canvases/broken.yaml":
      "type: canvas\ndisplay_name: The board of a bakery with forty letters in it\nrows:\n  - items:\n      - markdown: {content: '{{ .user.region }}'}\n      - {width: 2, kpi: {metrics_view: sales, measure: sales, title: 'A figure with a name of forty letters, no more'}}\n" +
      "      - bar_chart: {metrics_view: sales, x: {field: product, type: nominal}, y: {field: sales, type: quantitative}, title: 'A chart with a name of forty letters, no more'}\n" +
      "      - globe: {of: tomorrow}\n",
    "canvases/apart.yaml":
      "type: canvas\ndefaults: {time_range: P1M}\nrows:\n  - items:\n      - table: {metrics_view: sales, columns: [product, sales], title: Compared, time_filters: 'tr=P7D&compare_tr=rill-PW'}\n" +
      "      - kpi: {metrics_view: sales, measure: sales, title: One day, time_filters: 'tr=P1D&grain=day'}\n",
  });
  return project;
}

served("the gallery", gallery, (on) => {
  const of = (name: string, words = BOARDS[name] ?? "") => boardOf(on.program.home, "gallery", name, words);

  test.each(Object.keys(BOARDS))("draws each part of the board %s, or says why not", async (name) => {
    const { page, leave } = await visit(of(name), { viewport: { width: 1440, height: 6_000 } });
    await settled(page);
    // What draws charts comes with the first of them.
    await expect.poll(() => page.locator(".chart[aria-busy=true]").count()).toBe(0);
    const frames = await framesOf(page);
    expect(frames.length).toBeGreaterThan(3);
    for (const { name: of, draws, says } of frames) if (draws.length === 0) expect(says.join(), `${of}: ${says}`).toMatch(SAYS[of] ?? /^$/);
    await leave();
  });

  test("sets variables by a select and by a switch, and what reads them follows, by mouse", async () => {
    const { page, leave } = await visit(of("choices", ""), { viewport: { width: 1440, height: 2_400 } });
    await settled(page);
    const questions = asked(page);
    await page.getByText("Notes on Market in the rain.").waitFor();
    await part(page, "When there is rain").waitFor();
    await part(page, "Which shop").getByRole("combobox").selectOption("Quay");
    await part(page, "Products of Quay").waitFor();
    await settled(page);
    expect(new URL(page.url()).searchParams.get("let.shop")).toBe("Quay");
    const ofShop = questions.filter(({ query }) => JSON.stringify(query.where ?? "").includes("Quay"));
    expect(ofShop.map(({ view }) => view)).toContain("sales");
    await part(page, "Products of Quay").getByText("As a table").click();
    const [, ...rows] = await told(on.program, { metrics_view: "sales", ...ofShop[0]!.query, limit: ofShop[0]!.limit }, "canvas/choices");
    const cells = part(page, "Products of Quay as a table").locator("tbody tr");
    await expect.poll(() => cells.evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent?.trim().replace("empty text", ""))))).toEqual(rows);
    // A part under a condition goes, and comes back.
    await part(page, "Select").getByRole("combobox").selectOption({ label: "Fog over the quay" });
    await page.getByText("Notes on Quay in the fog.").waitFor();
    expect(await part(page, /^When there is/).count()).toBe(0);
    expect(await page.getByRole("tab", { name: "Details" }).count()).toBe(0);
    await page.getByRole("switch", { name: "Details" }).check();
    await page.getByRole("tab", { name: "Details" }).click();
    await part(page, "Sales by Product").waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole("tab", { name: "Details" }).waitFor({ state: "detached" });
    await settled(page);
    await leave();
  });

  test("sets them by keyboard alone", async () => {
    const { page, leave } = await visit(of("choices", ""));
    await settled(page);
    await tabTo(page, /Harbour/);
    await page.keyboard.type("Har");
    await part(page, "Products of Harbour").waitFor();
    await settled(page);
    const focused = () => page.evaluate(() => document.activeElement?.closest("label")?.textContent?.trim().split("\n")[0] ?? "");
    for (let stop = 0; stop < 20 && (await focused()) !== "Notes of the baker"; stop++) await page.keyboard.press("Tab");
    await page.getByText("Notes on Harbour in the rain.").waitFor();
    await page.keyboard.press("Space");
    await page.getByText("Notes on Harbour in the rain.").waitFor({ state: "detached" });
    await settled(page);
    expect(await focused()).toBe("Notes of the baker");
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ "let.shop": "Harbour", "let.notes": "false" });
    await leave();
  });

  test("compares charts by the values of a dimension, as the file says or a person chooses", async () => {
    const { page, leave } = await visit(of("own"), { viewport: { width: 1440, height: 2_400 } });
    const questions = asked(page);
    await page.reload();
    await settled(page);
    expect(await page.getByLabel("lines by").inputValue()).toBe("region");
    const apart = () => questions.filter(({ query }) => query.dimensions?.length === 2 && query.dimensions[0].name === "sold_at").map(({ query }) => query.dimensions[1]);
    expect(new Set(apart())).toEqual(new Set(["region"]));
    questions.length = 0;
    await page.getByLabel("lines by").selectOption({ label: "Product" });
    await settled(page);
    expect(new Set(apart())).toEqual(new Set(["product"]));
    await part(page, "Takings by Sold At").getByRole("img", { name: /Takings by Sold At and Product/ }).waitFor();
    await page.getByLabel("compared with").selectOption("-1P");
    await settled(page);
    expect(await page.getByLabel("lines by").inputValue()).toBe("none");
    expect(await page.getByText("has no meaning here").count()).toBe(0);
    await leave();
  });

  test("shows a component at a time of its own, whatever the board's is", async () => {
    const { page, leave } = await visit(of("figures"), { viewport: { width: 1440, height: 2_400 } });
    const questions = asked(page);
    await page.reload();
    await settled(page);
    const [week, months] = [part(page, "The last week"), part(page, "Three months by week")];
    await week.getByText(/^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d, its own range, compared with \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d, by day\.$/).waitFor();
    await months.getByText(/, its own range, by week\.$/).waitFor();
    await months.getByText("Its own filter: shop IN ('Quay').").waitFor();
    const narrowed = questions.find(({ query }) => query.time_range === "P3M")!;
    expect(narrowed.query.where).toEqual({ cond: { op: "in", exprs: [{ name: "shop" }, { val: ["Quay"] }] } });
    await part(page, "Sales but for buns").getByText("Its own filter: product NIN ('Bun', 'Rye').").waitFor();
    await part(page, "Sales but for buns").getByText("As a table").click();
    await part(page, "Sales but for buns as a table").getByText("Pretzel", { exact: false }).first().waitFor();
    expect(await part(page, "Sales but for buns as a table").innerText()).not.toMatch(/Bun|Rye/);
    expect(await week.locator(".change").count()).toBe(2);
    const own = () => questions.filter(({ query }) => ["P7D", "P3M"].includes(query.time_range)).map(({ query }) => [query.time_range, query.comparison_time_range?.offset, query.dimensions?.[0]?.grain]);
    const all = [["P3M", undefined, "week"], ["P7D", "rill-PP", undefined], ["P7D", undefined, "day"]];
    await expect.poll(() => own().map(String).sort()).toEqual(all.map(String).sort());
    const said = await week.locator(".about").innerText();
    await page.goto(of("figures", "range=2024-02"));
    await settled(page);
    expect(await week.locator(".about").innerText()).toBe(said);
    await page.locator(".resolved", { hasText: "2024-02-01 to 2024-03-01" }).waitFor();
    await leave();
  });

  test("tells above the board what it is compared with, also where its parts compare nothing", async () => {
    const { page, leave } = await visit(of("figures"), { viewport: { width: 1440, height: 2_400 } });
    const ranges = /^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d, compared with \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(/;
    for (const words of ["", "compare=-1Y"]) {
      await page.goto(of("figures", words));
      await settled(page);
      expect(await page.locator(".resolved").innerText()).toMatch(ranges);
    }
    await page.goto(of("charts", "compare=-1P"));
    await page.locator(".resolved", { hasText: ranges }).waitFor();
    // Where each part has a time of its own, none tells that of the board.
    await page.goto(of("apart", "compare=-1P"));
    await page.locator(".resolved", { hasText: ranges }).waitFor();
    await part(page, "Compared").getByText("Of its own time filters this has no effect: compare_tr=rill-PW").waitFor();
    // One bucket is no line.
    await settled(page);
    expect(await part(page, "One day").locator("svg").count()).toBe(0);
    await page.getByLabel("compared with").selectOption("none");
    await page.locator(".resolved", { hasText: /^\d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d \(UTC\)/ }).waitFor();
    await leave();
  });

  test("tells of the nearest point of a line, and of none elsewhere", async () => {
    const { page, leave } = await visit(of("charts"), { viewport: { width: 1440, height: 1_200 } });
    await settled(page);
    const chart = part(page, "Takings by Sold At").locator("canvas").first();
    await chart.waitFor();
    const { x, y, width, height } = (await chart.boundingBox())!;
    const tip = page.locator(".tip");
    // Far from the line both times.
    await page.mouse.move(x + width / 2, y + height * 0.15);
    await expect.poll(() => tip.innerText()).toMatch(/takings: /i);
    const first = await tip.innerText();
    const dot = (await page.locator("main .dot").boundingBox())!;
    expect(Math.abs(dot.x + dot.width / 2 - (x + width / 2))).toBeLessThan(20);
    if (process.env.WATERSHED_PICTURES) await page.screenshot({ path: `${process.env.WATERSHED_PICTURES}/gallery nearest.png` });
    await page.mouse.move(x + width * 0.8, y + height * 0.8);
    await expect.poll(() => tip.innerText()).not.toBe(first);
    await page.mouse.move(x + width / 2, y - 40);
    await tip.waitFor({ state: "detached" });
    await leave();
  });

  test.each([1440, 390])("keeps each menu inside of the page at %i pixels, and one open", async (width) => {
    const { page, leave } = await visit(of("figures"), { viewport: { width, height: 2_400 } });
    await settled(page);
    const menus = page.locator("main .menu");
    const count = await menus.count();
    expect(count).toBeGreaterThan(8);
    for (let place = 0; place < count; place++) {
      // An open menu may cover the next one.
      await menus.nth(place).locator("> summary").press("Enter");
      const panel = menus.nth(place).locator("> :not(summary)");
      const ends = () => panel.evaluate((one) => ((box, page) => [box.left >= page.left && box.left >= 0, box.right <= page.right && box.right <= innerWidth])(one.getBoundingClientRect(), document.querySelector("main")!.getBoundingClientRect()));
      await expect.poll(ends, { message: `menu ${place}` }).toEqual([true, true]);
      await expect.poll(() => page.locator("main .menu[open]").count()).toBe(1);
    }
    await leave();
  });

  test("shows a viewer what his policies leave, and says of the rest that it is not shown", async () => {
    const viewer = await standIn(on.program.port, (asked) => {
      if (/^\/v1\/.*\/(canvases|metrics)\//.test(asked.url ?? "")) asked.headers["watershed-view-as"] = NORTH;
      return false;
    });
    const { page, leave } = await visit(boardOf(viewer.home, "gallery", "narrowed", "is.shop=Market"), { viewport: { width: 1440, height: 2_400 } });
    await settled(page);
    await page.getByText("This is not shown to you.").waitFor();
    expect((await readOut(page)).join()).not.toMatch(/guest/i);
    await page.goto(boardOf(viewer.home, "gallery", "choices"));
    await settled(page);
    expect(await page.getByRole("tab", { name: "For the head" }).count()).toBe(0);
    expect(await part(page, "Which shop").getByRole("combobox").locator("option").allTextContents()).toEqual(["Harbour", "Market"]);
    await page.goto(boardOf(viewer.home, "gallery", "closed"));
    await page.getByText("unknown-name").waitFor();
    await leave(FAILED_REQUEST);
    viewer.close();
  });

  test("is printed in whole, in light colours and without what can be clicked", async () => {
    const { page, leave } = await visit(of("choices"), { colorScheme: "dark", viewport: { width: 1000, height: 500 } });
    await settled(page);
    await page.evaluate(() => (window.print = () => ((window as any).printed = [...document.querySelectorAll("main section.frame")].map((one) => one.querySelector("canvas, table, [data-measure], select, [role=switch], .prose") !== null))));
    await page.getByRole("button", { name: "Print" }).click();
    await expect.poll(() => page.evaluate(() => (window as any).printed)).toBeDefined();
    // All tabs are there, and all below the edge of the screen is drawn.
    const printed: boolean[] = await page.evaluate(() => (window as any).printed);
    expect(printed.length).toBeGreaterThan(11);
    expect(printed).not.toContain(false);
    await page.goto(of("figures"));
    await settled(page);
    await page.emulateMedia({ media: "print" });
    await settled(page);
    await expect.poll(() => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe("light");
    expect(await page.locator("nav:visible, .menu:visible, main .chips:visible, [role=tablist]:visible").count()).toBe(0);
    const cut = await page.locator("main, main *").evaluateAll((all) => all.filter((one) => /auto|scroll|hidden/.test(getComputedStyle(one).overflowY) && one.scrollHeight > one.clientHeight + 1 && !one.matches(".unseen, .unseen *, td, th, h3, bdi")).map((one) => one.className));
    expect(cut).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBeGreaterThan(1_000);
    if (process.env.WATERSHED_PICTURES) await page.screenshot({ path: `${process.env.WATERSHED_PICTURES}/gallery printed.png`, fullPage: true });
    await page.emulateMedia({ media: "screen" });
    await expect.poll(() => page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe("light dark");
    await leave();
  });

  test("wears the colours and the corners of its themes, where they can be read", async () => {
    const { page, leave } = await visit(of("own"), { colorScheme: "light" });
    await settled(page);
    const style = (selector: string, name: string) => page.locator(selector).first().evaluate((one, name) => getComputedStyle(one).getPropertyValue(name), name);
    await expect.poll(() => style("section.frame", "border-radius")).toBe("20px");
    expect(await style("section.frame", "background-color")).toBe("rgb(255, 240, 250)");
    await page.getByText("View as").click();
    expect(await style(".tools .menu[open] form", "background-color")).toBe("rgb(230, 251, 255)");
    expect(await style(".tools .menu[open] form", "color")).toBe("rgb(90, 0, 0)");
    // Yellow on a light ground can't be read, and navy behind dark letters neither.
    expect(await page.evaluate(() => document.adoptedStyleSheets.flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join())).not.toMatch(/yellow|navy|lime|maroon/);
    await leave();
  });

  test.each([...LOOKS])("has nothing serious in the $theme theme at $width pixels", { timeout: 240_000 }, async ({ theme, width }) => {
    const { page, leave } = await visit(of("figures"), { colorScheme: theme, viewport: { width, height: 2_400 } });
    for (const [name, words] of [...Object.entries(BOARDS), ["broken", ""], ["figures", "range=2030-01"]] as const) {
      await page.goto(of(name, words));
      await settled(page);
      await expect.poll(() => page.locator(".chart[aria-busy=true]").count()).toBe(0);
      await accessible(page);
      expect(await page.locator("main").evaluate((main) => main.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `gallery ${name}${words.startsWith("range") ? " empty" : ""} ${theme} ${width}`);
    }
    // What waits for its first answers.
    await page.route("**/metrics/*/query", () => {});
    await page.goto(of("figures"));
    await page.locator("main section.frame").getByText("…", { exact: true }).first().waitFor();
    await accessible(page);
    await picture(page, `gallery loading ${theme} ${width}`);
    await leave();
  });
});
