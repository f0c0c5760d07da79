//! Models whose rows are written to a store of objects: whole, only when they changed, and never over what is somebody's.

use watershed_tests::s3::Store;

use crate::sandbox::{Sandbox, crash_points};

const SECRET: &str = "hush-hush-4721";

const CONNECTOR: &str = r#"type: connector
driver: s3
aws_access_key_id: key-of-a-test
aws_secret_access_key: "{{ .env.lake_secret }}"
endpoint: STORE
path_prefixes: s3://lake/
"#;

const MODEL: &str = "type: model\nsql: SELECT range AS day, 'x' AS name FROM range(2)\n\
                     output: {connector: lake, path: s3://lake/out/days.csv}\n";
const ROWS: &str = "day,name\n0,x\n1,x\n";
const KEY: &str = "out/days.csv";

const PARTS: &str = "type: model\nsql: SELECT x % 2 AS part, x FROM (SELECT range AS x FROM range(4))\n\
                     output: {connector: lake, path: s3://lake/parts, format: csv, partition_by: [part]}\n";

fn project(store: &Store, model: &str) -> Sandbox {
    store.create_bucket("lake");
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (".env", &format!("lake_secret={SECRET}\n")),
        ("connectors/lake.yaml", &CONNECTOR.replace("STORE", &store.url())),
        ("models/days.yaml", model),
    ])
    .extended()
}

fn text(store: &Store, key: &str) -> String {
    let content = store.read("lake", key).unwrap_or_default();
    String::from_utf8(content).expect("a text")
}

#[test]
fn rows_are_written_when_they_changed_and_the_object_goes_with_its_model() {
    let Some(store) = Store::start() else { return };
    let project = project(&store, MODEL);
    project.run(0);
    assert_eq!(text(&store, KEY), ROWS);
    let tag = store.tag("lake", KEY);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    let refreshed = project.call(&["refresh", "days", "--json"]);
    assert_eq!(refreshed.code, Some(0), "{}", refreshed.stdout);
    assert_eq!(store.tag("lake", KEY), tag, "the same rows are not written again");
    let status = project.call(&["status", "--json"]).json();
    let all = status["resources"].as_array().expect("a list").clone();
    let days = all.iter().find(|it| it["name"] == "days").expect("the model");
    assert_eq!(days["result"]["file"], "s3://lake/out/days.csv");
    project.assert_nowhere(&[SECRET], "lake");

    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(text(&store, KEY), format!("{ROWS}2,x\n"));
    store.remove("lake", KEY);
    assert!(project.run(0).is_empty(), "a run asks no store by itself");
    project.call(&["refresh", "days"]);
    assert_eq!(text(&store, KEY), format!("{ROWS}2,x\n"));

    project.edit("models/days.yaml", "out/days.csv", "out/other.csv");
    let plan = project.call(&["plan"]).stdout;
    assert!(
        plan.contains("its rows are written to `s3://lake/out/other.csv`"),
        "{plan}"
    );
    project.run(0);
    assert_eq!(store.keys("lake"), ["out/other.csv"], "the object has moved");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(store.keys("lake"), [""; 0]);
    project.assert_nowhere(&[SECRET], "lake");
}

#[test]
fn an_object_that_a_person_wrote_is_never_written_over() {
    let Some(store) = Store::start() else { return };
    let project = project(&store, MODEL);
    store.write("lake", KEY, b"mine\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1), "{}", said.stdout);
    assert!(said.stderr.contains("error[export-taken]"), "{}", said.stderr);
    assert!(said.stderr.contains("models/days.yaml:3:"), "{}", said.stderr);
    assert_eq!(text(&store, KEY), "mine\n");

    store.remove("lake", KEY);
    project.run(0);
    store.write("lake", KEY, b"edited\n");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(1);
    assert_eq!(text(&store, KEY), "edited\n");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(text(&store, KEY), "edited\n", "it is not removed either");
}

#[test]
fn an_object_of_the_very_rows_is_known_again_after_the_loss_of_the_catalog() {
    let Some(store) = Store::start() else { return };
    let project = project(&store, MODEL);
    project.run(0);
    let tag = store.tag("lake", KEY);
    project.forget();
    project.run(0);
    assert_eq!(store.tag("lake", KEY), tag, "nothing was written");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(text(&store, KEY), format!("{ROWS}2,x\n"));
}

#[test]
fn of_a_folder_of_partitions_only_those_that_changed_are_written() {
    let Some(store) = Store::start() else { return };
    let project = project(&store, PARTS);
    store.write("lake", "parts/notes.txt", b"mine");
    project.run(0);
    let keys = [
        "parts/notes.txt",
        "parts/part=0/data_0.csv",
        "parts/part=1/data_0.csv",
    ];
    assert_eq!(store.keys("lake"), keys, "what else is there stays");
    let tags = || keys.map(|key| store.tag("lake", key));
    let before = tags();
    project.edit("models/days.yaml", "range(4)", "range(5)");
    project.run(0);
    assert_eq!(text(&store, keys[1]), "x\n0\n2\n4\n");
    let after = tags();
    assert_eq!((&before[0], &before[2]), (&after[0], &after[2]));
    assert_ne!(before[1], after[1]);

    project.edit("models/days.yaml", "x % 2", "x % 3");
    project.run(0);
    assert_eq!(store.keys("lake").len(), 4);
    project.edit("models/days.yaml", "x % 3", "0");
    project.run(0);
    assert_eq!(store.keys("lake"), &keys[..2], "partitions that are gone go");
    assert!(project.run(0).is_empty());
    project.remove("models/days.yaml");
    project.remove("connectors/lake.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(
        store.keys("lake"),
        keys[..1],
        "the connector goes after the model"
    );
}

#[test]
fn a_large_object_is_sent_by_pieces_and_read_back() {
    let Some(store) = Store::start() else { return };
    let rows = 400_000;
    let project = project(
        &store,
        &format!(
            "type: model\nsql: SELECT range AS x, md5(range::VARCHAR) AS digest FROM range({rows})\n\
             output: {{connector: lake, path: s3://lake/out/large.parquet, compression: uncompressed}}\n"
        ),
    );
    project.run(0);
    let content = store.read("lake", "out/large.parquet").expect("the object");
    assert!(
        content.len() > 9_000_000,
        "{} bytes are several pieces",
        content.len()
    );
    std::fs::write(project.path().join("back.parquet"), content).expect("a file is written");
    let sum = "SELECT count(*), sum(x)::BIGINT FROM read_parquet('back.parquet')";
    let expected = serde_json::json!([[rows, i64::from(rows) * (i64::from(rows) - 1) / 2]]);
    assert_eq!(project.rows(sum), expected);
}

#[test]
fn what_a_store_refuses_is_said_and_nothing_is_left_beside_it() {
    let Some(mut store) = Store::start() else { return };
    let project = project(&store, &MODEL.replace("s3://lake/out", "s3://pond/out"));
    assert_eq!(project.outcome(&["run", "--json"], "days"), "bucket-missing");
    project.edit("models/days.yaml", "s3://pond", "s3://lake");
    assert_eq!(
        project.outcome(&["run", "--sandbox", "--json"], "days"),
        "outside-sandbox"
    );
    project.run(0);
    store.stop();
    project.edit("models/days.yaml", "range(2)", "range(3)");
    assert_eq!(project.outcome(&["run", "--json"], "days"), "connection-refused");
    assert_eq!(
        project.rows("SELECT count(*) FROM days"),
        serde_json::json!([[3]])
    );
    let left = crate::sandbox::files_below(&project.path().join(".watershed"));
    let left: Vec<_> = left
        .iter()
        .filter(|file| file.extension().is_some_and(|end| end == "part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn dead_at_any_point_each_object_is_that_of_before_or_the_new_one() {
    let Some(store) = Store::start() else { return };
    let project = project(&store, MODEL);
    project.write("models/parts.yaml", PARTS);
    project.run(0);
    let points: Vec<&str> = crash_points(&["catalog", "build", "put"]).collect();
    let (mut deaths, mut rows) = (0, 2);
    for point in points {
        for visit in 0..3 {
            let before = text(&store, KEY);
            let old = format!("range({rows})");
            rows = if rows == 2 { 3 } else { 2 };
            project.edit("models/days.yaml", &old, &format!("range({rows})"));
            project.edit(
                "models/parts.yaml",
                if rows == 2 { "x % 3" } else { "x % 2" },
                if rows == 2 { "x % 2" } else { "x % 3" },
            );
            let after = (0..rows).fold("day,name\n".to_owned(), |all, day| format!("{all}{day},x\n"));
            let story = format!("{point}, visit {visit}");
            let died = project.dies_at(point, visit);
            deaths += u32::from(died);
            let now = text(&store, KEY);
            assert!(now == before || now == after, "{story}: {now}");
            project.expect_run(0, &story);
            assert_eq!(text(&store, KEY), after, "{story}");
            assert_eq!(
                store.keys("lake").len(),
                rows + 1,
                "{story}: {:?}",
                store.keys("lake")
            );
            assert!(
                project.expect_run(0, &story).is_empty(),
                "{story}: something is left to do"
            );
            if !died {
                break;
            }
        }
    }
    assert!(deaths >= 10, "{deaths} deaths");
}
