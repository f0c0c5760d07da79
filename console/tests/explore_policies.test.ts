// Explores by the policies of views and dashboards: what a viewer may not see is nowhere on the page.

import { expect, test } from "vitest";
import { FAILED_REQUEST, visit } from "./lib/browser.ts";
import { board, exploreOf, figuresOf, rowsOf, settled, told } from "./lib/explore.ts";
import { project } from "./lib/projects.ts";
import { served } from "./lib/served.ts";
import { standIn } from "./lib/stand_in.ts";

const [NORTH, NOBODY] = ["north@example.org", "eve@elsewhere.example"];

/** A view that hides a measure, a dimension and rows of those who are no administrators, with one measure over its neighbours. */
function secretive(): string {
  return project("secretive", {
    "watershed.yaml": `olap_connector: duckdb\nmock_users:\n  - {email: ${NORTH}, name: North}\n  - {email: ${NOBODY}, name: Eve}\n`,
    "models/sales.sql":
      "-- @materialize: true\nSELECT DATE '2024-01-01' + CAST(i AS INTEGER) AS day, CASE WHEN i % 2 = 0 THEN 'north' ELSE 'southern_secret' END AS region,\n" +
      "'customer_' || (i % 5) AS customer, i AS amount\nFROM range(200) t(i)\n",
    "metrics/sales.yaml":
      "type: metrics_view\nversion: 1\nmodel: sales\ntimeseries: day\ndimensions:\n  - {name: region, column: region}\n  - {name: customer, column: customer, display_name: Secret customer}\n" +
      "measures:\n  - {name: n, expression: count(*), display_name: Sales}\n  - {name: margin, expression: sum(amount), display_name: Secret margin}\n" +
      "  - {name: share, expression: margin / n, requires: [margin, n], display_name: Mean}\n" +
      "  - {name: running, expression: sum(n), requires: [n], window: {order: day, frame: ROWS BETWEEN 6 PRECEDING AND CURRENT ROW}, display_name: Running}\n" +
      "security:\n  access: \"'{{ .user.domain }}' = 'example.org'\"\n  row_filter: \"{{ if .user.admin }}true{{ else }}region = 'north'{{ end }}\"\n" +
      "  exclude:\n    - {if: \"NOT {{ .user.admin }}\", names: [customer, margin]}\n",
    "explores/sales.yaml": "type: explore\nmetrics_view: sales\ntime_ranges: [P4W, P7D]\ndefaults: {time_range: P4W}\n",
    "explores/closed.yaml": "type: explore\nmetrics_view: sales\nsecurity: {access: false}\n",
  });
}

served("the explores of a view with policies", secretive, (on) => {
  const asNorth = async (words = "") => {
    const visited = await visit(exploreOf(on.program.home, "secretive", "sales", words));
    await visited.page.locator("article.explore h1").waitFor();
    await lookAs(visited.page, NORTH);
    return visited;
  };
  const lookAs = async (page: Awaited<ReturnType<typeof visit>>["page"], email: string) => {
    await page.getByText("View as").click();
    await page.getByLabel(/E-mail of one/).fill(email);
    await page.getByRole("button", { name: "View", exact: true }).click();
  };

  test("show a viewer his fields and rows, and hint at no others", async () => {
    const { page, leave } = await asNorth();
    await settled(page);
    expect((await rowsOf(page, "Region")).map(([value]) => value)).toEqual(["north"]);
    const [, [n, share] = []] = await told(on.program, { metrics_view: "sales", measures: ["n", "share"], time_range: "P4W" }, "sales", NORTH);
    expect(await figuresOf(page)).toEqual({ n, share });
    for (const words of ["", "view=pivot&rows=region&columns=day:month", "view=rows"]) {
      await page.evaluate((words) => history.pushState({}, "", `${location.pathname}?${words}`), words);
      await page.evaluate(() => dispatchEvent(new PopStateEvent("popstate")));
      await settled(page);
      await page.locator("main details").evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
      await settled(page);
      const whole = await page.locator("main").evaluate((main) => main.outerHTML);
      expect([...whole.matchAll(/.{40}(secret|customer|margin(?!-)).{40}/gi)].map(([text]) => text)).toEqual([]);
    }
    await leave(FAILED_REQUEST);
  });

  test("draw a measure over its neighbours, which has no total", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "secretive", "sales", "measures=running"));
    await settled(page);
    const part = page.getByRole("region", { name: "Running", exact: true });
    await part.getByText("has no total").waitFor();
    await part.getByText("As a table").click();
    await settled(page);
    expect(await page.getByRole("region", { name: "Running as a table" }).locator("tbody td").first().innerText()).toBe("1");
    await leave();
  });

  test("leave out what a link filters by and its reader may not see", async () => {
    const { page, leave } = await asNorth("is.customer=customer_1&of.region=margin%3E1&sort=margin&measures=margin,n");
    await settled(page);
    const filters = page.getByRole("region", { name: "Filters" });
    expect(await filters.getByText(/^no field here/).count()).toBe(2);
    expect((await rowsOf(page, "Region")).map(([value]) => value)).toEqual(["north"]);
    expect(Object.keys(await figuresOf(page))).toEqual(["n"]);
    await leave(FAILED_REQUEST);
  });

  test("refuse whoever may not see the view or the dashboard", async () => {
    const { page, leave } = await visit(exploreOf(on.program.home, "secretive", "sales"));
    await settled(page);
    await lookAs(page, NOBODY);
    await page.getByRole("alert").waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/region|north|secret|margin/i);
    await page.goto(exploreOf(on.program.home, "secretive", "closed"));
    await settled(page);
    await lookAs(page, NORTH);
    await page.getByRole("alert").waitFor();
    expect(await page.locator("main").innerText()).not.toMatch(/region|secret|margin/i);
    await leave(FAILED_REQUEST);
  });

  test("are read by those whose role gives them no specs", async () => {
    const reader = await standIn(on.program.port, (asked, answer) => {
      if (!/include=spec/.test(asked.url ?? "")) return false;
      answer.writeHead(403, { "content-type": "application/problem+json" });
      answer.end(JSON.stringify({ type: "/problems/not-allowed", title: "not allowed", status: 403, code: "not-allowed", detail: "specs need a role", retryable: false }));
      return true;
    });
    const { page, leave } = await visit(exploreOf(reader.home, "secretive", "sales", "range=P7D"));
    await settled(page);
    await board(page, "Region").getByText("north").waitFor();
    expect(Object.keys(await figuresOf(page))).toContain("n");
    await leave(FAILED_REQUEST);
    reader.close();
  });
});
