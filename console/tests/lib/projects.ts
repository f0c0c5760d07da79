// Projects that tests break and mend. Each is a folder of its own.

import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { folder, ROOT } from "./program.ts";

/** Files by path. */
export type Files = Record<string, string>;

/** Writes files into a project. */
export function write(project: string, files: Files) {
  for (const [path, text] of Object.entries(files)) {
    const at = join(project, path);
    mkdirSync(dirname(at), { recursive: true });
    writeFileSync(at, text);
  }
}

/** A project of some files, in a folder of a name of its own. */
export function project(name: string, files: Files): string {
  const at = join(folder(), name);
  write(at, { "watershed.yaml": "olap_connector: duckdb\n", ...files });
  return at;
}

/** A copy of one of the projects of the repository. */
export function copied(name: string): string {
  const at = join(folder(), name);
  cpSync(join(ROOT, "testdata/projects", name), at, { recursive: true });
  return at;
}

/** Orders, what they add up to, and a report on that: three models in a row, one beside them, and a metrics view. */
export function shop(): string {
  return project("shop", {
    "models/orders.sql":
      "-- @materialize: true\nSELECT i AS id, i % 7 AS shop, i * 1.5 AS amount\nFROM range(100) t(i)\n",
    "models/daily.sql":
      "-- What each shop takes.\n-- @materialize: true\nSELECT shop, sum(amount) AS taken, count(*) AS orders\nFROM orders\nGROUP BY shop\n",
    "models/best.sql": "SELECT shop, taken\nFROM daily\nORDER BY taken DESC\nLIMIT 3\n",
    "models/prices.sql": "-- @materialize: true\nSELECT 1 AS price\n",
    "metrics/orders.yaml":
      "type: metrics_view\nmodel: orders\ndimensions:\n  - {name: shop, column: shop, display_name: Shop}\nmeasures:\n  - {name: orders, expression: count(*), display_name: Number of orders}\n",
  });
}

/** A query that runs until somebody cancels it, over a range that no machine gets to the end of. */
export const ENDLESS = "-- @materialize: true\nSELECT sum(sqrt(i)) AS total\nFROM range(4000000000000) t(i)\n";

/** Models that all lack the same file of data, and one that is well. */
export function forty(): string {
  const files: Files = { "models/well.sql": "SELECT 1 AS id\n" };
  for (let number = 1; number <= 40; number++) {
    const name = `reading_${String(number).padStart(2, "0")}`;
    files[`models/${name}.sql`] = `-- @materialize: true\nSELECT *, ${number} AS reading FROM read_csv('data/meter.csv')\n`;
  }
  return project("forty", files);
}

/** Text that does harm where a page takes it for markup, an address, or something to obey. */
export const ATTACK =
  `<img src=x onerror=alert(1)><script>alert(2)</script>" onmouseover="alert(3)" x="` +
  `javascript:alert(4) \u202Eevil\u202C \u001b[31mred\u001b[0m`;

/** A project whose names, values and messages all attack. */
export function attack(): string {
  const quoted = (text: string) => JSON.stringify(text);
  const sql = (text: string) => text.replaceAll("'", "''");
  return project("attack", {
    "models/<img src=x onerror=alert(1)>.sql": "-- @materialize: true\nSELECT 1 AS id\n",
    "models/javascript:alert(1).sql": `SELECT * FROM "<img src=x onerror=alert(1)>"\n`,
    "models/\u202Egnirts.sql": "SELECT 1 AS id\n",
    "models/words.sql": `-- ${ATTACK.replaceAll("\n", " ")}\n-- @materialize: true\nSELECT error('${sql(ATTACK)}') AS id\n`,
    "models/long.sql": "-- @materialize: true\nSELECT error(repeat('All work and no play. ', 50000)) AS id\n",
    "models/reads.sql": "SELECT * FROM words\n",
    "models/tested.yaml":
      `type: model\nsql: ${quoted(`SELECT '${sql(ATTACK)}' AS word`)}\nmaterialize: true\ntests:\n` +
      `  - name: ${quoted("<b onclick=alert(5)>bold</b>")}\n    assert: "word = 'calm'"\n`,
    "metrics/words.yaml":
      `type: metrics_view\nmodel: tested\ndisplay_name: ${quoted(ATTACK)}\ndimensions:\n` +
      `  - {name: word, column: word, display_name: ${quoted(ATTACK)}, description: ${quoted("[link](javascript:alert(6))")}}\n` +
      `measures:\n  - {name: n, expression: count(*), display_name: ${quoted(ATTACK)}}\n`,
  });
}
