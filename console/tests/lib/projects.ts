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

/** An explore whose names, values, links, formats and colours all attack. */
export function hostile(): string {
  const quoted = (text: string) => JSON.stringify(text);
  const sql = (text: string) => text.replaceAll("'", "''");
  const text = `'${sql(ATTACK)}'`;
  return project("hostile", {
    "models/words.sql":
      `-- @materialize: true\nSELECT DATE '2024-01-01' + CAST(i AS INTEGER) AS day, i AS n,\n` +
      `CASE i % 6 WHEN 0 THEN ${text} WHEN 1 THEN NULL WHEN 2 THEN '' WHEN 3 THEN repeat('w', 100000) WHEN 4 THEN 'Case' ELSE 'case' END AS word,\n` +
      `CASE i % 3 WHEN 0 THEN '=HYPERLINK("https://example.org")' WHEN 1 THEN '@SUM(A1)' ELSE 'plain' END AS cell,\n` +
      `CASE i % 3 WHEN 0 THEN 'javascript:alert(1)' WHEN 1 THEN 'https://example.org/' || i ELSE 'https://a:b@example.org' END AS address\nFROM range(60) t(i)\n`,
    "metrics/words.yaml":
      `type: metrics_view\nversion: 1\nmodel: words\ntimeseries: day\ndisplay_name: ${quoted(ATTACK)}\ndimensions:\n` +
      `  - {name: word, column: word, display_name: ${quoted(ATTACK)}, description: ${quoted(ATTACK)}}\n` +
      `  - {name: cell, column: cell}\n  - {name: kind, column: address, uri: address}\n` +
      `measures:\n  - {name: n, expression: count(*), display_name: ${quoted(ATTACK)}, valid_percent_of_total: true}\n` +
      `  - {name: wide, expression: sum(n), format_d3: "*^100,.3f"}\n`,
    "explores/words.yaml":
      `type: explore\nmetrics_view: words\ndisplay_name: ${quoted(ATTACK)}\ndescription: ${quoted(ATTACK)}\nbanner: ${quoted(ATTACK)}\ntheme:\n  light: {primary: "#aa0055"}\n`,
  });
}

/** Measures in each format over random numbers of all sizes, of seven digits: those that any reader of JSON reads exactly. */
export function numbers(seed: number, count: number): string {
  const formats = ["format_preset: none", "format_preset: humanize", "format_preset: currency_usd", "format_preset: currency_eur", "format_preset: percentage", "format_preset: interval_ms", ...[",.2f", ".1f", "$,.2f", ".3s", "~s", ".0%", ".2p", ",d", "e", ".3g", "~g", ".4r", "(,.1f", "+.2f", "x"].map((d3) => `format_d3: ${JSON.stringify(d3)}`)];
  return project("numbers", {
    "models/numbers.sql":
      `-- @materialize: true\nSELECT i AS id, CAST((CAST(hash(i + ${seed}) % 2000001 AS BIGINT) - 1000000)::VARCHAR || 'e' || (CAST(hash(i * 7 + ${seed}) % 31 AS BIGINT) - 18)::VARCHAR AS DOUBLE) AS x\nFROM range(${count}) t(i)\n`,
    "metrics/numbers.yaml": `type: metrics_view\nversion: 1\nmodel: numbers\ndimensions:\n  - column: id\nmeasures:\n  - {name: bare, expression: any_value(x)}\n${formats.map((format, place) => `  - {name: m${place}, expression: any_value(x), ${format}}\n`).join("")}`,
    "explores/numbers.yaml": "type: explore\nmetrics_view: numbers\n",
  });
}
