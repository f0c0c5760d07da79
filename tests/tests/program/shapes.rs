//! Projects in the shapes in which those of the format are published: data over HTTPS and from public buckets, at the
//! providers' own addresses. They run as they are, through a proxy; what a person adds is whom to trust.

use serde_json::json;
use watershed_drivers::duckdb::ByHand;
use watershed_tests::s3::Store;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;
use crate::stand_in::StandIn;

/// The rows of a query as a file of Parquet.
fn parquet(sql: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rows.parquet");
    ByHand::in_memory().run(&format!("COPY ({sql}) TO '{}' (FORMAT parquet)", file.display()));
    std::fs::read(file).expect("the file is there")
}

/// A project behind a proxy, with a connector of each driver that reads, which names whom to trust.
fn project(stand_in: &StandIn, drivers: &[&str], files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::with(files).extended().through(stand_in.url());
    for driver in drivers {
        sandbox.write(
            &format!("connectors/{driver}.yaml"),
            &format!("type: connector\ndriver: {driver}\nca_cert_file: proxy.pem\n"),
        );
    }
    sandbox.write("proxy.pem", stand_in.certificate());
    sandbox
}

#[test]
fn parquet_of_a_public_bucket_is_read_over_https() {
    if !has_extension("httpfs") {
        return;
    }
    let Some(store) = Store::start() else { return };
    let stand_in = StandIn::start(&store);
    store.create_bucket("harbour-public");
    let calls = "SELECT TIMESTAMP '2026-03-01' + INTERVAL (n) HOUR AS __time, n % 3 AS berth, \
                 CASE n % 2 WHEN 0 THEN 'NO/Bergen' ELSE 'unknown' END AS flag, n AS tons FROM range(24) AS t(n)";
    store.write("harbour-public", "calls.parquet", &parquet(calls));
    let berths = "SELECT n AS berth, 'Quay ' || n AS name FROM range(3) AS t(n)";
    store.write("harbour-public", "berths.parquet", &parquet(berths));
    let sandbox = project(
        &stand_in,
        &["https"],
        &[
            (
                "rill.yaml",
                "compiler: rillv1\n\ndisplay_name: Harbour\ndescription: Calls of ships\n\nolap_connector: duckdb\n\n\
                 mock_users:\n- email: pilot@example.com\n  name: Ada\n  admin: true\n- email: guest@example.org\n  groups:\n    - guests\n\n\
                 models:\n  refresh:\n    every: 24h\n\nfeatures:\n  chat_charts: true\n",
            ),
            (
                "connectors/duckdb.yaml",
                "type: connector\ndriver: duckdb\n\nmanaged: true\n",
            ),
            (
                "sources/calls_raw.yaml",
                "# Source YAML\ntype: source\nconnector: \"https\"\n\
                 uri: \"https://storage.googleapis.com/harbour-public/calls.parquet\"\n",
            ),
            (
                "sources/calls_again.yaml",
                "# Model YAML\n\ntype: model\nmaterialize: true\n\nconnector: https\n\
                 uri: https://storage.googleapis.com/harbour-public/calls.parquet\n",
            ),
            (
                "sources/berths_raw.yaml",
                "# Model YAML\n\ntype: model\nmaterialize: true\n\nconnector: duckdb\n# create_secrets_from_connectors: gcs\n\n\
                 sql: |\n  select * from read_parquet('https://storage.googleapis.com/harbour-public/berths.parquet')\n",
            ),
            (
                "models/calls_model.sql",
                "-- Model SQL\n-- @materialize: true\n\n\
                 SELECT c.* EXCLUDE (flag), b.name,\n\
                 CASE WHEN flag ILIKE '%/%' THEN SPLIT(flag, '/')[1] ELSE 'Unknown' END AS country\n\
                 FROM calls_raw c LEFT JOIN berths_raw b ON c.berth = b.berth\n",
            ),
            (
                "metrics/calls_metrics.yaml",
                "version: 1\ntype: metrics_view\n\ndisplay_name: Calls\nmodel: calls_model\ntimeseries: __time\n\n\
                 dimensions:\n  - name: country\n    display_name: Country\n    column: country\n\
                 measures:\n  - name: tons\n    display_name: Tons\n    expression: SUM(tons)\n    format_preset: humanize\n",
            ),
            (
                "dashboards/calls_explore.yaml",
                "type: explore\n\ndisplay_name: \"Calls\"\nmetrics_view: calls_metrics\n\ndimensions: '*'\nmeasures: '*'\n",
            ),
        ],
    );
    let done = sandbox.run(0);
    assert_eq!(done["calls_model"], "built", "{done:?}");
    let asked = stand_in.requests();
    let file = "https://storage.googleapis.com/harbour-public/calls.parquet";
    assert!(
        asked.contains(&format!("HEAD {file}")) && asked.contains(&format!("GET {file}")),
        "{asked:?}"
    );
    let tons = "SELECT country, sum(tons)::INTEGER FROM calls_model GROUP BY 1 ORDER BY 1";
    assert_eq!(sandbox.rows(tons), json!([["NO", 132], ["Unknown", 144]]));
    assert_eq!(
        sandbox.rows("SELECT count(DISTINCT name) FROM calls_model"),
        json!([[3]])
    );
    assert_eq!(sandbox.rows("SELECT count(*) FROM calls_again"), json!([[24]]));
}

#[test]
fn tables_of_web_servers_are_read_again_when_they_changed() {
    if !has_extension("httpfs") {
        return;
    }
    let Some(store) = Store::start() else { return };
    let stand_in = StandIn::start(&store);
    store.create_bucket("data.example.org");
    store.write(
        "data.example.org",
        "codes/latest/level_2.csv",
        b"A1,first\nB2,second\n",
    );
    store.write("data.example.org", "rates.csv", b"code,paid\nA1,10\nB2,20\n");
    let sandbox = project(
        &stand_in,
        &["https"],
        &[
            (
                "rill.yaml",
                "compiler: rillv1\n\ndisplay_name: Rates\n\nolap_connector: duckdb\n\nfeatures:\n  cloudDataViewer: true\n",
            ),
            (
                "connectors/duckdb.yaml",
                "type: connector\ndescription: Kept by whoever runs the project\n\ndriver: duckdb\nmanaged: true\n\
                 init_sql: \"SET TimeZone = 'UTC';\"\n",
            ),
            (
                "models/codes.yaml",
                "type: model\ndescription: >\n  Codes, and what they stand for.\nmaterialize: true\ntimeout: 10m\n\nsql: |\n\
                 \x20 SELECT\n    code,\n    long as description\n  FROM read_csv(\n\
                 \x20   'https://data.example.org/codes/latest/level_2.csv',\n    header=false,\n\
                 \x20   columns={\n      'code': 'VARCHAR',\n      'long': 'VARCHAR'\n    }\n  )\n",
            ),
            (
                "sources/rates.yaml",
                "type: source\nconnector: \"https\"\nuri: \"https://data.example.org/rates.csv\"\n\
                 refresh:\n  cron: \"0 8 * * *\"\n",
            ),
            (
                "models/paid.yaml",
                "type: model\nmaterialize: true\n\nsql: |\n  SELECT c.description, sum(r.paid)::INTEGER AS paid\n\
                 \x20 FROM {{ ref \"rates\" }} r\n  LEFT JOIN {{ ref \"codes\" }} c ON r.code = c.code\n  GROUP BY 1\n\
                 \x20 {{ if dev }} LIMIT 500000 {{ end }}\n",
            ),
        ],
    );
    sandbox.run(0);
    let paid = "SELECT description, paid FROM paid ORDER BY 1";
    assert_eq!(sandbox.rows(paid), json!([["first", 10], ["second", 20]]));
    assert_eq!(
        sandbox.outcome(&["refresh", "rates", "--json"], "rates"),
        "checked"
    );
    store.write("data.example.org", "rates.csv", b"code,paid\nA1,11\nB2,20\n");
    assert_eq!(sandbox.outcome(&["refresh", "rates", "--json"], "paid"), "built");
    assert_eq!(sandbox.rows(paid), json!([["first", 11], ["second", 20]]));
}

#[test]
fn folders_of_a_bucket_are_partitions() {
    if !has_extension("httpfs") {
        return;
    }
    let Some(store) = Store::start() else { return };
    let stand_in = StandIn::start(&store);
    store.create_bucket("events-of-sensors");
    let write = |year: u32, day: u32, value: u32| {
        let key = format!("raw/y={year}/m=01/d={day:02}/h=00/part.parquet");
        let sql = format!("SELECT TIMESTAMP '{year}-01-{day:02}' AS event_time, {value} AS value");
        store.write("events-of-sensors", &key, &parquet(&sql));
    };
    write(2024, 1, 1);
    write(2025, 1, 10);
    write(2025, 2, 20);
    write(2025, 12, 1000);
    let sandbox = project(
        &stand_in,
        &[],
        &[
            (
                "rill.yaml",
                "compiler: rillv1\n\ndisplay_name: Sensors\n\nolap_connector: duckdb\n",
            ),
            (
                ".env",
                "aws_access_key_id=AKIA-of-a-test\naws_secret_access_key=hush-hush-5117\n",
            ),
            (
                "connectors/s3.yaml",
                "type: connector\ndriver: s3\n\naws_access_key_id: {{ .env.aws_access_key_id }}\n\
                 aws_secret_access_key: {{ .env.aws_secret_access_key }}\nca_cert_file: proxy.pem\n",
            ),
            (
                "sources/events.yaml",
                "type: model\nmaterialize: true\nincremental: true\n\n# Each hour.\nrefresh:\n  cron: \"0 * * * *\"\n\n\
                 partitions:\n  glob: \n    path: \"s3://events-of-sensors/raw/y=*/m=*/d=*/h=*/*.parquet\"\n    partition: directory\n\
                 \x20   transform_sql: |\n      SELECT * FROM {{ .table }} \n      -- The oldest are of no use.\n\
                 \x20     WHERE uri >= 's3://events-of-sensors/raw/y=2025/m=01/d=01'\n\
                 \x20     {{ if dev }} AND uri < 's3://events-of-sensors/raw/y=2025/m=01/d=11' {{ end }}\n\n\
                 sql: >\n  SELECT\n      '{{ .partition.uri }}' as __partition,\n      now() AS __load_time,\n      *\n\
                 \x20 FROM read_parquet('{{ .partition.uri }}/*.parquet')\n\n\
                 output:\n  incremental_strategy: partition_overwrite\n  partition_by: __partition\n",
            ),
        ],
    );
    sandbox.run(0);
    let all = "SELECT sum(value)::INTEGER, count(DISTINCT __partition) FROM events";
    assert_eq!(sandbox.rows(all), json!([[30, 2]]));
    let asked = stand_in.requests();
    assert!(
        asked
            .iter()
            .any(|url| url.starts_with("GET https://events-of-sensors.s3.us-east-1.amazonaws.com/?")),
        "{asked:?}"
    );
    assert_eq!(
        sandbox.outcome(&["refresh", "events", "--json"], "events"),
        "checked"
    );
    write(2025, 2, 21);
    write(2025, 3, 30);
    assert_eq!(
        sandbox.outcome(&["refresh", "events", "--json"], "events"),
        "built"
    );
    assert_eq!(sandbox.rows(all), json!([[61, 3]]));
    sandbox.assert_nowhere(&["hush-hush-5117"], "s3");
}

#[test]
fn patterns_of_public_buckets_are_read_without_a_login() {
    if !has_extension("httpfs") {
        return;
    }
    let Some(store) = Store::start() else { return };
    let stand_in = StandIn::start(&store);
    store.create_bucket("letters-public");
    for (key, sql) in [
        (
            "archive/2024/01/letters_1.parquet",
            "SELECT 'a' AS id, 1 AS pages",
        ),
        (
            "archive/2024/02/letters_2.parquet",
            "SELECT 'b' AS id, 2 AS pages",
        ),
        (
            "archive/2023/02/letters_9.parquet",
            "SELECT 'z' AS id, 100 AS pages",
        ),
    ] {
        store.write("letters-public", key, &parquet(sql));
    }
    for (year, rows) in [
        (2019, "id\tsender\na\tAda\n"),
        (2024, "id\tsender\nb\tBen\n"),
        (1987, "id\tsender\nz\tZoe\n"),
    ] {
        store.write(
            "letters-public",
            &format!("form/{year}Q1/SENDERS.tsv"),
            rows.as_bytes(),
        );
    }
    let sandbox = project(
        &stand_in,
        &["gcs"],
        &[
            (
                "rill.yaml",
                "compiler: rillv1\n\ndisplay_name: Letters\n\nolap_connector: duckdb\n\nfeatures:\n  - cloudDataViewer\n  - rillTime\n",
            ),
            ("connectors/duckdb.yaml", "type: connector\ndriver: duckdb\n"),
            (
                "sources/letters_source.yaml",
                "type: model\nmaterialize: true\n\nconnector: duckdb\n# create_secrets_from_connectors: gcs\n\n\
                 sql: |\n  select * from read_parquet('gs://letters-public/archive/2024/*/letters*.parquet')\n",
            ),
            (
                "sources/SENDERS.yaml",
                "type: model\nmaterialize: true\n\nconnector: duckdb\n\n\
                 sql: |\n  select * from read_csv('gs://letters-public/form/20[12][0-9]*/SENDERS.tsv', delim='\\t')\n",
            ),
            (
                "models/letters_by_file.yaml",
                "type: model\n\npartitions:\n  glob:\n    connector: gcs\n    path: gs://letters-public/archive/2024/*/letters_*.parquet\n\n\
                 sql: SELECT * FROM read_parquet('{{ .partition.uri }}')\n\n\
                 output:\n  connector: duckdb\n  incremental_strategy: append\n",
            ),
            (
                "models/letters_model.sql",
                "-- @materialize: true\n\nSELECT l.id, pages, sender,\nFROM letters_source l\nLEFT JOIN SENDERS ON l.id = SENDERS.id\nORDER BY 1 DESC\n",
            ),
        ],
    );
    sandbox.run(0);
    let letters = "SELECT id, pages, sender FROM letters_model ORDER BY 1";
    assert_eq!(sandbox.rows(letters), json!([["a", 1, "Ada"], ["b", 2, "Ben"]]));
    let pages = "SELECT sum(pages)::INTEGER FROM letters_by_file";
    assert_eq!(sandbox.rows(pages), json!([[3]]));
    let said = sandbox.call(&["refresh", "letters_source", "letters_by_file"]);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    assert_eq!(sandbox.rows(pages), json!([[3]]));
}
