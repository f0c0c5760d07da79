// Questions in SQL: asked by mouse and by keyboard alone, refused at their place, cancelled, cut, taken along.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LOOKS, FAILED_REQUEST, accessible, picture, visit } from "./lib/browser.ts";
import { pageOf, shows, tabTo, until } from "./lib/journey.ts";
import { Line } from "./lib/line.ts";
import { write as writeFiles } from "./lib/projects.ts";
import { served } from "./lib/served.ts";
import { answer, ask, cells, data, ended, ENDLESS, grid, HARD, readers, run, sqlOf, text, write } from "./lib/sql.ts";

served("questions in SQL", data, (on) => {
  const open = (question?: string, options = {}) => visit(sqlOf(on.program.home, "data", question), options);

  test("are asked, sorted, summed up, drawn and linked by mouse", async () => {
    const { page, leave } = await open();
    await page.getByRole("searchbox", { name: "Filter outputs" }).fill("ord");
    await page.getByText("orders", { exact: true }).click();
    await page.getByRole("button", { name: "amount", exact: true }).waitFor();
    await page.getByRole("button", { name: "ask for rows" }).click();
    await expect.poll(() => page.locator("section.answer").count()).toBe(0);
    await write(page, "SELECT id, name, amount FROM orders ORDER BY id");
    await ask(page).click();
    await ended(page);
    expect(await cells(page, -1)).toEqual(["id", "name", "amount"]);
    expect(await cells(page, 2)).toEqual(["2", "shop 2", "3.00"]);
    await page.getByText("100,000 rows in").first().waitFor();
    // What is sorted and summed up are the rows that are there, and it says so.
    const amount = page.getByRole("columnheader", { name: /^amount/ });
    await amount.click();
    await page.getByText("Sorted by amount: the 100,000 rows that were there").waitFor();
    await amount.click();
    await expect.poll(() => cells(page, 0)).toEqual(["99999", "shop 4", "149998.50"]);
    expect(await amount.getAttribute("aria-sort")).toBe("descending");
    await amount.locator("[data-mark]").click();
    const side = page.getByRole("region", { name: "Column amount" });
    await side.getByText("Among the 100,000 rows that are there").waitFor();
    await expect.poll(() => side.innerText()).toMatch(/greatest\s+149998\.50/);
    await side.getByRole("button", { name: "Close" }).click();
    // The question is in the address, and what comes of a build is another answer once it is asked for.
    expect(decodeURIComponent(new URL(page.url()).hash)).toBe("#q=SELECT id, name, amount FROM orders ORDER BY id");
    await answer(page, "SELECT * FROM daily");
    await page.getByRole("button", { name: "chart", exact: true }).click();
    await page.getByRole("img", { name: "line of taken, orders by day, 90 rows. The grid has all values." }).locator("canvas").waitFor();
    await page.getByRole("button", { name: "histogram" }).click();
    await page.getByRole("img", { name: /^histogram of taken/ }).locator("canvas").waitFor();
    await page.goBack();
    await expect.poll(() => text(page).evaluate((one) => (one as HTMLTextAreaElement).value ?? one.textContent)).toContain("ORDER BY id");
    await leave();
  });

  test("are asked by keyboard alone, and read cell by cell", async () => {
    const { page, leave } = await visit(`${on.program.home}ui/data`);
    await page.getByText("orders").first().waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("SQL");
    await page.getByRole("option", { name: /^go to SQL/ }).waitFor();
    await page.keyboard.press("Enter");
    await text(page).waitFor();
    await page.getByRole("searchbox", { name: "Filter outputs" }).focus();
    await text(page).focus();
    await page.keyboard.type("SELECT id, shop, name, {a: id, b: [1, NULL]} AS deep FROM orders ORDER BY id LIMIT 5000");
    await page.keyboard.press("Control+Enter");
    await ended(page);
    await tabTo(page, "Answer");
    const told = () => page.evaluate(() => document.getElementById(document.activeElement?.getAttribute("aria-activedescendant") ?? "")?.innerText.trim());
    expect(await told()).toBe("0");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Control+ArrowDown");
    await expect.poll(told).toBe("1");
    expect(await grid(page).getAttribute("aria-rowcount")).toBe("5001");
    await page.keyboard.press("End");
    await expect.poll(told).toContain("a: 4999");
    await page.keyboard.press("Enter");
    const side = page.getByRole("region", { name: "deep of row 5,000" });
    await side.waitFor();
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("deep of row 5,000");
    await side.locator("summary").focus();
    await page.keyboard.press("Enter");
    await side.getByText("NULL", { exact: true }).waitFor();
    await page.keyboard.press("Escape");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("grid");
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.getByText("Sorted by id").waitFor();
    await expect.poll(() => cells(page, 0)).toContain("4999");
    await page.keyboard.press(" ");
    await page.getByRole("region", { name: "Column id" }).waitFor();
    await leave();
  });

  test("are completed by outputs and their columns, which are asked for once for each build", async () => {
    const { page, leave } = await open();
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST" && request.url().endsWith("/query")) asked.push(request.postDataJSON().sql);
    });
    await text(page).click();
    await page.keyboard.type("SELECT * FROM or");
    await page.getByRole("option", { name: /^orders/ }).waitFor();
    expect(asked).toEqual([]);
    // What was typed just now is not taken for the choice of a proposal.
    await page.getByRole("option", { name: /^orders/ }).click();
    await page.keyboard.type(" WHERE am");
    await page.getByRole("option", { name: /^amount/ }).click();
    await page.keyboard.type(" > 1 AND sh");
    await page.getByRole("option", { name: /^shop/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.type("op = 3 ORDER BY id");
    await page.keyboard.press("Control+Enter");
    await ended(page);
    expect((await cells(page, 0)).slice(0, 2)).toEqual(["3", "3"]);
    expect(asked).toEqual(["DESCRIBE orders", "SELECT * FROM orders WHERE amount > 1 AND shop = 3 ORDER BY id"]);
    await leave();
  });

  test("of which one part is selected are asked as that part, and a mistake stands at its place in the whole", async () => {
    const { page, leave } = await open();
    await write(page, "SELECT 1 AS one;\nSELECT nothing FROM orders");
    await page.keyboard.press("Shift+Home");
    await page.keyboard.press("Control+Enter");
    await page.getByText('"nothing" not found').first().waitFor();
    await page.getByRole("button", { name: "line 1, column 8 of what was selected" }).click();
    await page.keyboard.press("Control+Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.press("Control+Enter");
    await ended(page);
    expect(await cells(page, 0)).toEqual(["1"]);
    await leave(FAILED_REQUEST);
  });

  test("that are none, two, or no reading get the code of the service at its place", async () => {
    const { page, leave } = await open();
    const refused: [string, string, string | undefined][] = [
      ["", "there is no statement", undefined],
      ["-- nothing but words", "there is no statement", undefined],
      ["SELECT 1; SELECT 2", "not-allowed-sql", "line 1, column 11"],
      ["DROP TABLE orders", "not-allowed-sql", undefined],
      ["SELECT 'ü',\n  * FROM read_text('/etc/passwd')", "the table function `read_text`", "line 2, column 10"],
      ["SELECT 'ü', nothing FROM orders", "unknown-column", "line 1, column 13"],
      ["SELECT FROM WHERE", "sql-syntax", "line 1, column 13"],
    ];
    for (const [question, words, place] of refused) {
      await write(page, question);
      await ask(page).click();
      await page.locator(".work .problem").getByText(words).first().waitFor();
      await ended(page, "refused");
      const link = page.locator(".work .problem").getByRole("button", { name: /^line/ });
      if (place) await link.filter({ hasText: place }).waitFor();
      else expect(await link.count()).toBe(0);
      await picture(page, `sql refused ${words.slice(0, 20)}`);
    }
    await leave(FAILED_REQUEST);
  });

  test("have exact answers, of two columns of one name, ten thousand columns, or a cell of ten megabytes", async () => {
    const { page, leave } = await open();
    await answer(page, HARD);
    const seen: string[] = [];
    const count = Number(await grid(page).getAttribute("aria-colcount")) - 1;
    await grid(page).focus();
    for (let column = 0; column < count; column++) {
      seen.push((await page.locator(`[data-row="0"] [data-column="${column}"] :is(bdi, i)`).textContent()) ?? "");
      await page.keyboard.press("ArrowRight");
      await page.locator(`[data-row="0"] [data-column="${Math.min(column + 1, count - 1)}"]`).waitFor();
    }
    expect(seen).toEqual([
      "NULL", "empty text", "NULL", "12345678901234567890123456789012345678", "-0.00000000000000000000000000000000000001", "170141183460469231731687303715884105727", "NaN", "-inf", "0044-03-15 (BC)",
      "2024-02-29 10:00:00.123456+00", "9007199254740993", '{a: "1.10", b: [null, "x", ""], c: {k: "9007199254740993"}}', "-1 day", "true", "\\x00ab", "0.1", "-0",
    ]);
    // A missing value is told from a text that says so.
    expect(await page.locator('[data-row="0"] i').filter({ hasText: "NULL" }).count()).toBe(0);
    await page.keyboard.press("Home");
    await page.locator('[data-row="0"] [data-column="0"] i').waitFor();
    expect(await page.locator('[data-row="0"] [data-column="2"] bdi').count()).toBe(1);
    await answer(page, "SELECT 1 AS a, 2 AS a, 3 AS A");
    expect([await cells(page, -1), await cells(page, 0)]).toEqual([["a", "a", "A"], ["1", "2", "3"]]);
    await answer(page, "SELECT id FROM orders WHERE false");
    await page.getByText(/^0 rows in/).first().waitFor();
    expect(await cells(page, -1)).toEqual(["id"]);
    await answer(page, `SELECT ${Array.from({ length: 10_000 }, (_, place) => `${place} AS c${place}`).join(", ")}`);
    expect(await grid(page).getAttribute("aria-colcount")).toBe("10001");
    expect(await page.locator("[data-row='0'] [data-column]").count()).toBeLessThan(60);
    await grid(page).focus();
    await page.keyboard.press("End");
    await page.locator("[data-row='0'] [data-column='9999']").waitFor();
    await answer(page, "SELECT repeat('wide ', 2000000) AS cell, 1 AS after");
    expect((await cells(page, 0))[0]!.length).toBeLessThan(300);
    await page.locator('[data-row="0"] [data-mark]').click();
    await page.getByText("The first 100,000 of 10,000,000 characters.").waitFor();
    await leave();
  });

  test("that outlive their limit, or whose answer is cut, say so and keep what came", async () => {
    const line = await Line.open(on.program.port);
    const { page, leave } = await visit(sqlOf(`${line.origin}/`, "data"));
    // The screen's own limits are minutes.
    await page.route("**/query", (route) => route.continue({ postData: JSON.stringify({ ...route.request().postDataJSON(), timeout_ms: 300 }) }));
    await write(page, ENDLESS);
    await ask(page).click();
    await ended(page, "refused");
    await page.getByText("deadline-passed").first().waitFor();
    await page.unroute("**/query");
    // The answer is compressed on its way.
    line.cutAfter(60_000);
    await write(page, "SELECT * FROM orders");
    await ask(page).click();
    await ended(page, "part");
    await page.getByText(/rows, which are a part of the answer/).first().waitFor();
    expect(await cells(page, 3)).toEqual(["3", "3", "4.50", "2024-01-04", "shop 3"]);
    await page.getByText("The rows that came stay.").waitFor();
    line.mend();
    await leave(FAILED_REQUEST);
    line.cut();
  });

  test("S-API26 leave the engine idle when they are cancelled, replaced, left, or their tab is closed", async () => {
    const { page, leave } = await open();
    await write(page, ENDLESS);
    const times: Record<string, number> = {};
    const idle = async (name: string, act: () => Promise<unknown>) => {
      await ask(page).click();
      await run(on.program, 1);
      await act();
      times[name] = await run(on.program, 0);
    };
    await idle("cancelled", () => page.getByRole("button", { name: "Cancel" }).click());
    await ended(page, "left");
    await ask(page).click();
    await run(on.program, 1);
    await write(page, "SELECT 1 AS one");
    await ask(page).click();
    await ended(page);
    times.replaced = await run(on.program, 0);
    await write(page, ENDLESS);
    await idle("left", () => page.getByRole("link", { name: "Activity" }).click());
    await page.goBack();
    await text(page).waitFor();
    await ask(page).click();
    await run(on.program, 1);
    await leave();
    times.closed = await run(on.program, 0);
    console.log("idle after", times);
    // A loaded machine takes longer to look than an engine to stop.
    for (const took of Object.values(times)) expect(took).toBeLessThan(2_000);
    expect(await readers(on.program)).toBe(0);
  });

  test("stop at a million rows, cancel, say so and offer the file", async () => {
    const { page, leave } = await open();
    await write(page, "SELECT range AS n FROM range(3000000)");
    await ask(page).click();
    await ended(page, "full");
    await run(on.program, 0);
    await page.getByText("Stopped at 1,000,000 rows").first().waitFor();
    await grid(page).focus();
    await page.keyboard.press("Control+End");
    await expect.poll(() => page.locator("[data-row]").last().getAttribute("aria-rowindex")).toBe("1000001");
    await page.getByRole("button", { name: "Before", exact: true }).click();
    await page.getByText("rows 1 to 500,000").waitFor();
    await leave();
  }, 180_000);
});

served("answers that are taken along", data, (on) => {
  test("come as files that are whole, and cells of sheets run nothing", async () => {
    const { page, leave } = await visit(sqlOf(on.program.home, "data"), { acceptDownloads: true });
    await answer(page, `SELECT '=HYPERLINK("https://example.org")' AS "=head", -1.5 AS n, '-2' AS text, '@SUM(A1)' AS at, NULL AS nothing`);
    const take = async (name: string) => {
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name, exact: true }).click();
      return readFileSync(await (await download).path());
    };
    const csv = (await take("CSV")).toString();
    expect(csv).toBe(`"'=head",n,text,at,nothing\n"'=HYPERLINK(""https://example.org"")",-1.5,-2,"'@SUM(A1)",\n`);
    expect(JSON.parse((await take("JSON")).toString()).rows).toEqual([['=HYPERLINK("https://example.org")', "-1.5", "-2", "@SUM(A1)", null]]);
    expect((await take("Excel")).subarray(0, 2).toString()).toBe("PK");
    expect((await take("Parquet")).subarray(0, 4).toString()).toBe("PAR1");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as CSV" }).click();
    await page.getByText("Copied 1 row as CSV.").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`"'=HYPERLINK`);
    await grid(page).focus();
    await page.keyboard.press("Control+Home");
    for (let step = 0; step < 3; step++) await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Control+c");
    await page.getByText("Copied 4 cells.").waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(`"'=HYPERLINK(""https://example.org"")"\t-1.5\t-2\t'@SUM(A1)`);
    await leave();
  });

  test("are no files where the answer breaks off", async () => {
    const line = await Line.open(on.program.port);
    const { page, leave } = await visit(sqlOf(`${line.origin}/`, "data"));
    await answer(page, "SELECT * FROM orders");
    line.cutAfter(60_000);
    let downloads = 0;
    page.on("download", () => (downloads += 1));
    for (const name of ["CSV", "JSON"]) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.getByText(/Nothing was saved/).first().waitFor();
    }
    expect(downloads).toBe(0);
    const left = await page.evaluate(async () => {
      const names = [];
      const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle("watershed-exports");
      for await (const [name] of (folder as any).entries()) names.push(name);
      return names;
    });
    expect(left).toEqual([]);
    line.mend();
    await leave(FAILED_REQUEST);
    line.cut();
  });

  test("of a resource are rows in the same grid, and say when they are of an earlier build", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "data", "model", "daily"));
    await shows(page, "ok");
    await page.getByRole("button", { name: "Show the rows" }).click();
    await ended(page);
    expect(await grid(page, "Rows").getAttribute("aria-rowcount")).toBe("91");
    writeFiles(on.program.project, { "models/daily.sql": "SELECT day, count(*) AS orders\nFROM orders\nGROUP BY day\n" });
    await page.getByText("It was built anew since.").waitFor();
    await page.getByRole("button", { name: "Show the newer rows" }).click();
    await expect.poll(() => cells(page, -1)).toEqual(["day", "orders"]);
    await leave();
  });

  test("are found by their columns in the palette, also of what was built since", async () => {
    const { page, leave } = await visit(`${on.program.home}ui/data`);
    await page.getByText("orders").first().waitFor();
    writeFiles(on.program.project, { "models/priced.sql": "-- @materialize: true\nSELECT id, amount * 2 AS doubled_price FROM orders\n" });
    await page.getByText("priced").first().waitFor();
    await until(() => on.program.list(), (all) => all.some(({ name, health }) => name === "priced" && health === "ok"), page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("doubled_price");
    await page.getByRole("option", { name: /column priced\.doubled_price/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Nothing was asked yet").waitFor();
    await ask(page).click();
    await ended(page);
    expect(await cells(page, -1)).toEqual(["doubled_price"]);
    await leave();
  });
});

served("the screen of questions", data, (on) => {
  test.each([...LOOKS])("has nothing serious in the $theme theme at $width pixels", async ({ theme, width }) => {
    const { page, leave } = await visit(sqlOf(on.program.home, "data"), { colorScheme: theme, viewport: { width, height: 900 } });
    const look = async (name: string) => {
      await accessible(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await picture(page, `sql ${name} ${theme} ${width}`);
    };
    await text(page).waitFor();
    await look("empty");
    await answer(page, "SELECT *, {a: id, b: [name]} AS deep FROM orders");
    await page.locator("[data-row='1'] [data-column='0']").click();
    await look("rows");
    await page.keyboard.press("Enter");
    await page.locator(".side").waitFor();
    await look("cell");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "chart", exact: true }).click();
    await page.locator("canvas").last().waitFor();
    await look("chart");
    await page.getByRole("button", { name: "Your questions" }).click();
    await look("past");
    await write(page, "SELECT nothing FROM orders");
    await ask(page).click();
    await ended(page, "refused");
    await look("refused");
    await answer(page, `SELECT ${Array.from({ length: 100 }, (_, place) => `${place} AS c${place}`).join(", ")}`);
    await page.getByRole("button", { name: "rows", exact: true }).click();
    await look("wide");
    await leave(FAILED_REQUEST);
  });
});
