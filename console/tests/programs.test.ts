// Programs: a crash loop is seen, its last output read, and the release before brought back; copies are scaled and restarted.

import { expect, test } from "vitest";
import { accessible, picture, visit } from "./lib/browser.ts";
import { find, home, tabTo, told, until } from "./lib/journey.ts";
import { copied, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

const ticker = (run: string) => `type: service\nrun: ${JSON.stringify(run)}\nrestart: {base: 100ms, cap: 200ms, attempts: 3}\n`;

/** The services of the repository, and one whose next release crashes. */
function services(): string {
  const at = copied("services");
  write(at, { "programs/ticker.yaml": ticker('echo "all is well"; exec sleep 100000') });
  return at;
}

served("the programs of a project", services, (on) => {
  const rows = `[aria-label="Jobs and services"]`;
  test("are seen with copies, checks, ports and output, scaled and restarted with the effect said first", async () => {
    const { page, leave } = await visit(home(on.program.home, "services"));
    await page.getByRole("link", { name: "Programs" }).click();
    await page.getByRole("button", { name: "api", exact: true }).click();
    const copies = page.getByRole("list", { name: "Copies" }).getByRole("listitem");
    await expect.poll(() => copies.count()).toBe(2);
    const [first] = (await on.program.ask("resources/service/api")).result.replicas;
    await copies.first().getByText(`PORT ${first.ports.PORT}`).waitFor();
    await copies.first().getByText("http /rates.csv").waitFor();
    await copies.first().getByText("passes", { exact: true }).waitFor();
    const output = page.getByRole("region", { name: "Lines of output" });
    await output.getByText("GET /rates.csv").first().waitFor();
    await accessible(page);
    await picture(page, "programs");
    // What is held does not move, what came meanwhile is counted, and a search finds what is there.
    await page.getByRole("button", { name: "Hold" }).click();
    const held = await output.locator("li").last().textContent();
    await page.getByText(/held, [1-9]\d* newer lines?/).waitFor();
    expect(await output.locator("li").last().textContent()).toBe(held);
    await page.getByRole("searchbox", { name: "Search the output" }).fill("no such words");
    await output.getByText(/No line has these letters/).waitFor();
    await page.getByRole("searchbox", { name: "Search the output" }).fill("rates.CSV");
    await output.locator("li").first().waitFor();
    await page.getByRole("combobox", { name: "Copy" }).selectOption("copy 1");
    await expect.poll(async () => new Set(await output.locator(".by").allTextContents())).toEqual(new Set(["api.1"]));
    // The number of copies, said before it is changed.
    await page.getByRole("button", { name: "Scale…" }).click();
    const dialog = page.getByRole("dialog", { name: "Scale api?" });
    await dialog.getByRole("spinbutton").fill("3");
    await dialog.getByText("Starts 1 copy: 3 in the place of 2.").waitFor();
    await accessible(page);
    await picture(page, "programs scale");
    await dialog.getByRole("button", { name: "Scale", exact: true }).click();
    await told(page, "Scale service/api scaled");
    await page.getByText("3 of 3 copies ready").waitFor();
    await page.getByRole("button", { name: "Scale…" }).click();
    await dialog.getByRole("checkbox").check();
    await dialog.getByText("Ends 1 copy: 2 in the place of 3, the number of the file.").waitFor();
    await dialog.getByRole("button", { name: "Scale", exact: true }).click();
    await page.getByText("2 of 2 copies ready").waitFor();
    const before = (await on.program.ask("resources/service/api")).result.replicas.map((one: any) => one.process);
    await page.getByRole("button", { name: "Restart…" }).click();
    await page.getByText("Starts 2 new copies, each before the old one that it replaces ends.").waitFor();
    await page.getByRole("dialog", { name: "Restart api?" }).getByRole("button", { name: "Restart", exact: true }).click();
    await until(() => on.program.ask("resources/service/api"), ({ result }) => result.replicas_ready === 2 && result.replicas.length === 2 && result.replicas.every((one: any) => !before.includes(one.process)), page);
    await leave();
  });

  test("show a crash loop with its last output, and go back to the release before by keyboard alone, also after a restart", async () => {
    const { page, leave } = await visit(`${home(on.program.home, "services")}/programs?of=service/ticker`, { colorScheme: "dark", viewport: { width: 390, height: 900 } });
    await page.getByText("all is well").waitFor();
    write(on.program.project, { "programs/ticker.yaml": ticker("printf '\\033[31mboom\\033[0m at the end\\n'; exit 9") });
    const copy = page.getByRole("list", { name: "Copies" }).getByRole("listitem").first();
    await copy.getByText(/3 failures in a row of 3, after which a person must look; it is not started again by itself/).waitFor();
    await copy.getByText(/last end: code 9 after/).waitFor();
    await page.getByText("1 copy fails again and again").waitFor();
    const output = page.getByRole("region", { name: "Lines of output" });
    // Colours are left out: what is read is the text.
    await output.getByText("boom at the end", { exact: true }).last().waitFor();
    await accessible(page);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await picture(page, "programs dark 390");
    await on.program.stop();
    await page.locator("[data-line='old']").waitFor();
    await on.program.start();
    await page.locator("[data-line='live']").waitFor();
    await tabTo(page, "Roll back…");
    await page.keyboard.press("Enter");
    await page.getByText("by the release before that came up, until the file changes.").waitFor();
    await tabTo(page, "Roll back");
    await page.keyboard.press("Enter");
    await told(page, "Roll back service/ticker rolled back");
    await page.locator(rows).getByText("1 of 1 ready").waitFor();
    await leave(/Failed to load resource|ERR_/);
  });

  test("are found by name, and one that is gone says so", async () => {
    const { page, leave } = await visit(home(on.program.home, "services"), { viewport: { width: 320, height: 800 } });
    await page.getByText("latest_rates").first().waitFor();
    await find(page, "programs");
    await page.getByRole("heading", { level: 1, name: "Programs" }).waitFor();
    await tabTo(page, "rates");
    await page.keyboard.press("Enter");
    await page.getByText(/last end: code 0 after/).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(320);
    await page.goto(`${home(on.program.home, "services")}/programs?of=service/nobody`);
    await page.getByText("service/nobody is gone, or there never was one.").waitFor();
    await leave();
  });
});
