// The partitions of a model: which failed, why, and built again when what they lacked is there.

import { expect, test } from "vitest";
import { accessible, picture, visit } from "./lib/browser.ts";
import { pageOf, shows, tabTo, told } from "./lib/journey.ts";
import { project, write } from "./lib/projects.ts";
import { served } from "./lib/served.ts";

/** A model of sixty partitions, three of which lack a file. */
function months(): string {
  return project("months", {
    "models/months.yaml":
      "type: model\nmaterialize: true\nincremental: true\npartitions: {sql: \"SELECT 100 + m AS month FROM range(60) t(m)\"}\n" +
      "sql: SELECT {{ .partition.month }} AS month, * FROM read_csv('data/{{ .partition.month }}.csv')\n" +
      "output: {incremental_strategy: partition_overwrite, partition_by: month}\n",
    ...Object.fromEntries(Array.from({ length: 57 }, (_, at) => [`data/${100 + at}.csv`, "value\n1\n"])),
  });
}

served("the partitions of a model", months, (on) => {
  test("are counted and shown by the page, and those that failed are built again, by mouse and by keyboard", async () => {
    const { page, leave } = await visit(pageOf(on.program.home, "months", "model", "months"));
    await shows(page, "failed");
    const part = page.getByRole("region", { name: "Partitions 60" });
    const rows = part.getByRole("list", { name: "Partitions" }).getByRole("listitem");
    await expect.poll(() => rows.count()).toBe(50);
    await part.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => rows.count()).toBe(60);
    await part.getByRole("button", { name: "failed 3" }).click();
    await expect.poll(() => rows.count()).toBe(3);
    await rows.filter({ hasText: "month 158" }).getByText(/158\.csv.* does not exist|No files found.*158/).waitFor();
    await accessible(page);
    await picture(page, "partitions");
    // One of them alone, by keyboard.
    write(on.program.project, { "data/158.csv": "value\n1\n" });
    await tabTo(page, "Refresh month 158");
    await page.keyboard.press("Enter");
    await part.getByRole("button", { name: "failed 2" }).waitFor();
    write(on.program.project, { "data/157.csv": "value\n1\n", "data/159.csv": "value\n1\n" });
    await part.getByRole("button", { name: "Refresh 2 failed ones" }).click();
    await told(page, "Refresh model/months built, 60 rows");
    await shows(page, "ok");
    await part.getByRole("button", { name: "done 60" }).waitFor();
    await leave();
  });
});
