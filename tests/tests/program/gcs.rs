//! Google's store by its keys of the S3 form: read, asked for changes, written to; at a store that speaks S3, and at one that
//! speaks Google's own protocol.

use serde_json::json;
use watershed_tests::{gcs, s3};

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

const SECRET: &str = "hush-hush-4741";

const CONNECTOR: &str = "type: connector\ndriver: gcs\nkey_id: GOOG-of-a-test\nsecret: \"{{ .env.archive_secret }}\"\n\
                         endpoint: STORE\npath_prefixes: gs://archive/\n";

/// Partitions by the folders of a pattern.
const BY_DAY: &str = "type: model\nincremental: true\n\
                      partitions:\n  glob: {connector: archive, path: 'gs://archive/days/*/*.csv', partition: hive}\n\
                      output: {incremental_strategy: partition_overwrite}\n\
                      sql: SELECT n, '{{ .partition.day }}' AS day FROM read_csv('{{ .partition.uri }}/*.csv')\n";

const TOTAL: &str = "type: model\nsql: SELECT sum(n)::INTEGER AS total FROM days\n\
                     output: {connector: archive, path: gs://archive/out/total.csv}\n";

/// A project that reads all days of a bucket, whole and by partitions.
fn project(endpoint: &str) -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("archive_secret={SECRET}\n")),
        ("connectors/archive.yaml", &CONNECTOR.replace("STORE", endpoint)),
        (
            "sources/days.yaml",
            "connector: archive\npath: gs://archive/days/*/*.csv\n",
        ),
        ("models/by_day.yaml", BY_DAY),
    ])
    .extended()
}

/// Reads, and asks for changes, at a store to which a person writes objects.
fn reads(sandbox: &Sandbox, write: &dyn Fn(&str, &[u8])) {
    const BY_DAY: &str = "SELECT string_agg(day || ':' || n, ' ' ORDER BY day) FROM by_day";
    const REFRESH: [&str; 4] = ["refresh", "days", "by_day", "--json"];
    write("days/day=1/a.csv", b"n\n1\n");
    write("days/day=2/a.csv", b"n\n2\n");
    write("other/c.csv", b"n\n100\n");
    sandbox.run(0);
    assert_eq!(sandbox.rows("SELECT sum(n)::INTEGER FROM days"), json!([[3]]));
    assert_eq!(sandbox.rows(BY_DAY), json!([["1:1 2:2"]]));
    assert!(sandbox.run(0).is_empty(), "nothing is left to do");
    assert_eq!(sandbox.outcome(&REFRESH, "days"), "checked");
    assert_eq!(sandbox.outcome(&REFRESH, "by_day"), "checked");

    write("days/day=2/a.csv", b"n\n7\n");
    write("days/day=3/a.csv", b"n\n3\n");
    assert_eq!(sandbox.outcome(&REFRESH, "days"), "built");
    assert_eq!(sandbox.rows("SELECT sum(n)::INTEGER FROM days"), json!([[11]]));
    assert_eq!(sandbox.rows(BY_DAY), json!([["1:1 2:7 3:3"]]));
}

#[test]
fn a_bucket_is_read_and_written_by_the_s3_form() {
    let Some(mut store) = s3::Store::start() else {
        return;
    };
    store.create_bucket("archive");
    let sandbox = project(&store.url());
    sandbox.write("models/total.yaml", TOTAL);
    reads(&sandbox, &|key, content| store.write("archive", key, content));
    let written = || {
        let content = store.read("archive", "out/total.csv").unwrap_or_default();
        String::from_utf8(content).expect("a text")
    };
    assert_eq!(written(), "total\n11\n");
    let tag = store.tag("archive", "out/total.csv");
    sandbox.call(&["refresh", "total"]);
    assert_eq!(store.tag("archive", "out/total.csv"), tag, "the same rows");
    sandbox.assert_nowhere(&[SECRET], "archive");

    store.write("archive", "out/total.csv", b"mine\n");
    store.write("archive", "days/day=3/a.csv", b"n\n4\n");
    assert_eq!(
        sandbox.outcome(&["refresh", "days", "--json"], "total"),
        "export-taken"
    );
    assert_eq!(written(), "mine\n", "it is somebody's");
    store.remove("archive", "out/total.csv");
    assert_eq!(sandbox.outcome(&["refresh", "total", "--json"], "total"), "built");
    assert_eq!(written(), "total\n12\n");

    store.know_no_key(true);
    assert_eq!(
        sandbox.outcome(&["refresh", "archive", "--json"], "archive"),
        "credentials-refused"
    );
    assert_eq!(
        sandbox.outcome(&["refresh", "days", "--json"], "days"),
        "none",
        "it waits for its connector"
    );
    assert_eq!(sandbox.rows("SELECT total FROM total"), json!([[12]]));
    sandbox.assert_nowhere(&[SECRET], "archive");
    store.know_no_key(false);
    assert_eq!(
        sandbox.outcome(&["refresh", "archive", "--json"], "archive"),
        "checked"
    );
    store.stop();
    assert_eq!(
        sandbox.outcome(&["refresh", "archive", "--json"], "archive"),
        "connection-refused"
    );
    sandbox.assert_nowhere(&[SECRET], "archive");
}

#[test]
fn a_bucket_of_a_store_that_speaks_googles_protocol_is_read() {
    if !has_extension("httpfs") {
        return;
    }
    let Some(mut store) = gcs::Store::start() else {
        return;
    };
    store.create_bucket("archive");
    let sandbox = project(&store.url());
    reads(&sandbox, &|key, content| store.write("archive", key, content));
    sandbox.edit("sources/days.yaml", "days/*/*.csv", "none/*.csv");
    assert_eq!(sandbox.outcome(&["run", "--json"], "days"), "object-missing");
    sandbox.edit("sources/days.yaml", "none/*.csv", "days/*/*.csv");
    store.stop();
    assert_eq!(
        sandbox.outcome(&["refresh", "archive", "--json"], "archive"),
        "connection-refused"
    );
    assert_eq!(sandbox.rows("SELECT sum(n)::INTEGER FROM days"), json!([[11]]));
    sandbox.assert_nowhere(&[SECRET], "archive");
}
