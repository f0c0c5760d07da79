// Answers that are none: refused, cut off, of another sort, without an end. What was there stays, with its age.

import { afterAll, beforeAll, beforeEach, describe, test } from "vitest";
import { closeBrowser, FAILED_REQUEST, visit } from "./lib/browser.ts";
import { action, pageOf, shows, told } from "./lib/journey.ts";
import { canRun } from "./lib/needs.ts";
import { Program } from "./lib/program.ts";
import { shop } from "./lib/projects.ts";
import { pour, standIn } from "./lib/stand_in.ts";

/** What stands between page and program does to the answers of some paths. */
type Harm = "nothing" | "other sort" | "cut off" | "no problem" | "endless";

describe.runIf(canRun)("an answer", () => {
  let program: Program;
  let between: Awaited<ReturnType<typeof standIn>>;
  let harm: Harm = "nothing";
  let harmed = /^$/;
  let address = "";

  beforeAll(async () => {
    program = await Program.start(shop());
    await program.settle();
    between = await standIn(program.port, (asked, answer) => {
      if (harm === "nothing" || !harmed.test(asked.url ?? "")) return false;
      if (harm === "other sort") answer.writeHead(200, { "content-type": "text/html" }).end("<h1>Sign in</h1>");
      if (harm === "no problem") answer.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway</h1>");
      if (harm === "cut off") {
        answer.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
        answer.write('{"runs": [{"id": ');
        setImmediate(() => answer.destroy());
      }
      if (harm === "endless") {
        answer.writeHead(200, { "content-type": "application/json" });
        pour(answer, () => " ".repeat(1 << 20));
      }
      return true;
    });
    address = between.home;
  });
  beforeEach(() => {
    harm = "nothing";
  });
  afterAll(async () => {
    between?.close();
    await program?.stop();
    await closeBrowser();
  });

  const cases: [Harm, RegExp][] = [
    ["other sort", /is no JSON/],
    ["no problem", /502/],
    ["cut off", /ends in the middle|does not answer/],
  ];
  test.each(cases)("that is %s leaves what was there, with its age and a way to try again", async (kind, words) => {
    const { page, leave } = await visit(pageOf(address, "shop", "model", "daily"));
    await shows(page, "ok");
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("because it was declared").waitFor();
    harm = kind;
    harmed = /\/history/;
    await program.ask("resources/model/daily/refresh", { method: "POST", body: {}, wait: 30 });
    await history.getByRole("alert").getByText(words).waitFor();
    await history.getByText(/What is shown is from/).waitFor();
    await history.getByText("because it was declared").waitFor();
    // Nothing of that run is still to come, which would have the page ask by itself.
    const { runs_total } = await program.ask("resources/model/daily");
    await page.locator("aside dl").filter({ hasText: new RegExp(`runs\\s*${runs_total}\\D`) }).waitFor();
    harm = "nothing";
    await history.getByRole("button", { name: "Try again" }).click();
    await history.getByRole("alert").waitFor({ state: "detached" });
    await history.getByText("because a refresh was asked for").first().waitFor();
    await leave(FAILED_REQUEST);
  });

  test("without an end is given up, and the page lives on", async () => {
    harm = "endless";
    harmed = /\/history/;
    const { page, leave } = await visit(pageOf(address, "shop", "model", "daily"));
    await shows(page, "ok");
    const history = page.getByRole("region", { name: "History" });
    await history.getByRole("alert").getByText("The answer does not end.").waitFor({ timeout: 30_000 });
    harm = "nothing";
    await history.getByRole("button", { name: "Try again" }).click();
    await history.getByText("because it was declared").waitFor();
    await leave(FAILED_REQUEST);
  });

  test("to an action that was refused says why, and what was asked for stands until it is taken away", async () => {
    const { page, leave } = await visit(pageOf(address, "shop", "model", "daily"));
    await shows(page, "ok");
    harm = "no problem";
    harmed = /\/pause$/;
    await action(page, "Pause").click();
    await told(page, "Pause model/daily failed");
    const entry = page.getByRole("log").getByRole("listitem").first();
    await entry.getByText(/502/).waitFor();
    await shows(page, "ok");
    harm = "nothing";
    await entry.getByRole("button", { name: "Try again" }).click();
    await shows(page, "paused");
    await action(page, "Resume").click();
    await shows(page, "ok");
    await page.getByRole("button", { name: "Dismiss Resume model/daily" }).click();
    await leave(FAILED_REQUEST);
  });
});
