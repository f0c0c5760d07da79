//! The operator's hands: explain, pause, resume, cancel, retry, logs, stats; against a running `start` and alone.

use serde_json::{Value, json};

use crate::going::Going;
use crate::sandbox::{Said, Sandbox};
use crate::serving::Serving;

const TABLE: &str = "-- @materialize: true\n";
/// Longer than any test waits.
const ENDLESS: &str =
    "-- @materialize: true\nSELECT sum(a.range * b.range) AS s FROM range(10000000) a, range(90000) b\n";

/// A root, and a chain of so many that read it.
fn chain(length: usize) -> Sandbox {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/root.sql", "SELECT 1 AS n\n")]);
    let mut above = "root".to_owned();
    for number in 0..length {
        let name = format!("m{number:03}");
        project.write(&format!("models/{name}.sql"), &format!("SELECT n FROM {above}\n"));
        above = name;
    }
    project
}

#[track_caller]
fn ends(said: &Said, code: i32) {
    assert_eq!(said.code, Some(code), "{}\n{}", said.stdout, said.stderr);
}

/// Codes and resources of the causes that are told: `code name`.
fn causes(document: &Value) -> Vec<String> {
    let causes = document["causes"].as_array().expect("causes are listed").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes
        .map(|cause| format!("{} {}", text(&cause["code"]), text(&cause["resource"]["name"])))
        .collect()
}

#[test]
fn one_failure_with_many_that_are_skipped_is_explained_by_one_cause() {
    let project = chain(40);
    project.write(
        "models/root.sql",
        "SELECT nothing AS n FROM (SELECT 1 AS something)\n",
    );
    project.run(1);
    for arguments in [&["explain", "m039"][..], &["explain", "model/M000"], &["explain"]] {
        let said = project.call(arguments);
        ends(&said, 0);
        assert_eq!(
            said.stdout.matches("cause").count().min(2),
            1 + usize::from(arguments.len() == 1)
        );
        assert_eq!(said.stdout.matches("model/root").count(), 1, "{}", said.stdout);
        assert!(said.stdout.contains("models/root.sql:1:8"), "{}", said.stdout);
        assert!(said.stdout.contains("40 resources"), "{}", said.stdout);
        let document = project.call(&[arguments, &["--json"]].concat()).json();
        assert_eq!(document["schema"], "watershed.explain/1");
        assert_eq!(causes(&document), ["failed root"]);
        assert_eq!(document["causes"][0]["keeps_back"], 40);
        assert_eq!(document["live"], false);
    }
    project.write("models/root.sql", "SELECT 1 AS n\n");
    project.run(0);
    assert_eq!(causes(&project.call(&["explain", "--json"]).json()), [""; 0]);
    assert_eq!(
        causes(&project.call(&["explain", "m039", "--json"]).json()),
        ["idle m039"]
    );
}

#[test]
fn a_pause_outlives_its_process_and_holds_the_next_runs_back() {
    let project = chain(1);
    let said = project.call(&["pause", "root"]);
    ends(&said, 3);
    assert!(
        said.stderr.contains("nothing was run here yet"),
        "{}",
        said.stderr
    );
    let state = project.path().join(".watershed/dev");
    assert!(!state.exists(), "a refusal makes no folder");
    project.run(0);
    let document = project.call(&["pause", "root", "m000", "--json"]).json();
    assert_eq!(document["schema"], "watershed.operate/1");
    let changed = |document: &Value| document["resources"][0]["changed"].clone();
    assert_eq!(
        (changed(&document), &document["live"]),
        (json!(true), &json!(false))
    );
    assert_eq!(
        changed(&project.call(&["pause", "root", "--json"]).json()),
        json!(false)
    );
    assert_eq!(
        causes(&project.call(&["explain", "root", "--json"]).json()),
        ["paused root"]
    );
    project.write("models/root.sql", "SELECT 2 AS n\n");
    assert_eq!(project.done(0), "", "what is paused is not built");
    assert_eq!(project.query("SELECT n FROM m000")["rows"], json!([[1]]));
    ends(&project.call(&["resume", "root", "m000"]), 0);
    project.run(0);
    assert_eq!(project.query("SELECT n FROM m000")["rows"], json!([[2]]));
}

#[test]
fn hands_that_are_laid_on_what_is_not_there_say_so() {
    let project = chain(0);
    project.run(0);
    for command in ["explain", "pause", "resume", "cancel", "retry"] {
        let said = project.call(&[command, "rott"]);
        ends(&said, 2);
        assert!(said.stderr.contains("`root`"), "{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
    let said = project.call(&["cancel", "root"]);
    ends(&said, 0);
    assert!(
        said.stdout.contains("no process runs the project"),
        "{}",
        said.stdout
    );
    ends(&project.call(&["status", "--format", "prometheus"]), 2);
}

#[test]
fn a_running_start_is_paused_cancelled_resumed_and_asked_why() {
    let project = chain(1);
    let mut start = Going::settled(&project);
    project.write("models/long.sql", ENDLESS);
    start.until(&[("resource_started", "long")]);
    let document = project.call(&["explain", "long", "--json"]).json();
    assert_eq!(causes(&document), ["runs long"]);
    assert_eq!(
        (&document["live"], &document["resource"]["reason"]),
        (&json!(true), &json!("created"))
    );
    let text = project.call(&["explain"]).stdout;
    assert!(text.contains("1 resource runs"), "{text}");
    let running = project.call(&["stats", "--json"]).json();
    assert_eq!(running["running"], 1);
    assert_eq!(running["process"], start.process());
    let document = project.call(&["cancel", "long", "--json"]).json();
    assert_eq!(document["resources"][0]["changed"], true);
    assert_eq!(document["resources"][0]["phase"], "idle");
    start.round();
    assert_eq!(
        causes(&project.call(&["explain", "long", "--json"]).json()),
        ["cancelled long"]
    );

    ends(&project.call(&["pause", "root"]), 0);
    project.write("models/root.sql", "SELECT 2 AS n\n");
    start.round();
    let document = project.call(&["explain", "root", "--json"]).json();
    assert_eq!(causes(&document), ["paused root"]);
    ends(&project.call(&["resume", "root"]), 0);
    start.until_done(&["root:built"]);
    assert_eq!(project.query("SELECT n FROM m000")["rows"], json!([[2]]));
}

#[test]
fn what_has_failed_is_tried_again_by_hand() {
    let project = chain(0);
    let file = project
        .path()
        .parent()
        .expect("it stands in a folder")
        .join("late.csv");
    let sql = format!("{TABLE}SELECT * FROM read_csv('{}')\n", file.display());
    project.write("models/late.sql", &sql);
    let mut start = Going::start(&project);
    assert_eq!(start.round().exit_code(), Some(1));
    let document = project.call(&["explain", "late", "--json"]).json();
    assert_eq!(causes(&document), ["failed late"]);
    ends(&project.call(&["retry", "late"]), 1);
    std::fs::write(&file, "n\n7\n").expect("a file can be written");
    let said = project.call(&["retry", "late", "--json"]);
    ends(&said, 0);
    assert_eq!(said.json()["command"], "retry");
    assert_eq!(project.query("SELECT n::INTEGER FROM late")["rows"], json!([[7]]));
    start.stop();
    std::fs::remove_file(&file).expect("a file can be removed");
    ends(&project.call(&["refresh", "late"]), 1);
    std::fs::write(&file, "n\n8\n").expect("a file can be written");
    ends(&project.call(&["retry", "late"]), 0);
    assert_eq!(project.query("SELECT n::INTEGER FROM late")["rows"], json!([[8]]));
}

#[test]
fn numbers_come_for_people_for_programs_and_for_prometheus() {
    let project = chain(1);
    project.write("models/bad.sql", "SELECT nothing FROM root\n");
    project.write("models/below.sql", "SELECT * FROM bad\n");
    let start = Going::settled(&project);
    let live = project.call(&["stats", "--json"]).json();
    assert_eq!(live["schema"], "watershed.stats/1");
    assert_eq!(
        (&live["failed"], &live["blocked"], &live["pending"]),
        (&json!(1), &json!(1), &json!({}))
    );
    assert!(live["process_stats"]["commits"].as_u64() > Some(0), "{live}");
    assert!(live["process_stats"]["last_convergence_at"].is_string(), "{live}");
    let page = project.call(&["stats", "--format", "prometheus"]).stdout;
    assert!(
        page.contains("watershed_failed{project=\"project\",environment=\"dev\"} 1\n"),
        "{page}"
    );
    assert!(
        page.contains("watershed_up{project=\"project\",environment=\"dev\"} 1\n"),
        "{page}"
    );
    let text = project.call(&["stats"]).stdout;
    assert!(text.contains("run by process"), "{text}");
    start.stop();
    let rest = project.call(&["stats", "--json"]).json();
    assert_eq!((&rest["failed"], &rest["blocked"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&rest["process"], &rest["process_stats"]),
        (&Value::Null, &Value::Null)
    );
    let page = project.call(&["stats", "--format", "prometheus"]).stdout;
    assert!(
        page.contains("watershed_up{project=\"project\",environment=\"dev\"} 0\n"),
        "{page}"
    );
}

/// Returns the printed messages, line by line.
fn messages(said: &Said) -> Vec<String> {
    let line = |line: &str| serde_json::from_str::<Value>(line).expect("each line is an object");
    let lines = said.stdout.lines().map(line);
    lines
        .map(|line| line["message"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn what_runs_say_is_kept_for_each_resource_through_renames_and_torn_lines() {
    let project = chain(1);
    project.run(0);
    let lines = |name: &str| messages(&project.call(&["logs", name, "--format", "jsonl"]));
    let built = lines("root");
    assert!(
        built.contains(&"building, because it was never built".to_owned()),
        "{built:?}"
    );
    assert_eq!(built.last().map(String::as_str), Some("done"));
    project.run(0);
    assert_eq!(
        lines("root"),
        built,
        "a run that finds nothing to do says nothing"
    );

    let folder = project.path().join(".watershed/dev/logs");
    for file in std::fs::read_dir(&folder).expect("there are logs") {
        let path = file.expect("a folder's entry can be read").path();
        let mut text = std::fs::read_to_string(&path).expect("it can be read");
        text.push_str("{\"id\":12,\"at\"");
        std::fs::write(&path, text).expect("it can be written");
    }
    project.rename("models/m000.sql", "models/other.sql");
    project.run(0);
    assert_eq!(
        lines("other")[..built.len()],
        built,
        "lines stay with the resource"
    );
    assert!(lines("other").len() > built.len(), "{:?}", lines("other"));
    project.remove("models/other.sql");
    project.run(0);
    assert!(lines("other").len() > built.len(), "also of one that is gone");
    assert_eq!(project.call(&["logs", "nothing"]).code, Some(2));
}

#[test]
fn what_a_run_says_is_followed_while_it_is_said() {
    let project = chain(0);
    let mut start = Going::settled(&project);
    let mut follow = Going::with_arguments(
        &project,
        &["logs", "root", "-f", "--format", "jsonl", "--limit", "1"],
    );
    follow.next(); // of the run before: from here on it follows
    project.write(
        "models/root.sql",
        "SELECT nothing AS n FROM (SELECT 1 AS something)\n",
    );
    let failed = loop {
        let line = follow.next();
        if line["level"] == "warn" {
            break line;
        }
    };
    assert_eq!(failed["resource"], json!({"kind": "model", "name": "root"}));
    assert_eq!(failed["fields"]["code"], "unknown-column", "{failed}");
    let runs = project.call(&["history", "root", "--json"]).json();
    assert_eq!(
        runs["runs"][0]["id"], failed["run"],
        "runs are named as in the history"
    );
    start.round();
    start.stop();
    assert_eq!(follow.code(), Some(0), "it ends with whoever runs the project");
}

#[test]
fn a_sound_catalog_passes_the_check_and_a_damaged_one_does_not() {
    let project = chain(2);
    ends(&project.call(&["debug", "check"]), 0);
    let start = Going::settled(&project);
    let live = project.call(&["debug", "check", "--json"]);
    ends(&live, 0);
    let document = live.json();
    assert_eq!(document["schema"], "watershed.check/1");
    assert_eq!(
        (&document["live"], &document["compared"]),
        (&json!(true), &json!("whole"))
    );
    assert_eq!(document["findings"], json!([]));
    start.stop();
    let rest = project.call(&["debug", "check", "--json"]);
    ends(&rest, 0);
    assert_eq!(rest.json()["rules"], document["rules"]);

    // The last page is not the first to be read, so only a look at all of them finds it.
    let catalog = project.path().join(".watershed/dev/catalog.db");
    let mut bytes = std::fs::read(&catalog).expect("the catalog can be read");
    let at = bytes.len() - 4_096;
    bytes[at..].fill(0xff);
    std::fs::write(&catalog, &bytes).expect("the catalog can be written");
    let said = project.call(&["debug", "check"]);
    ends(&said, 4);
    assert_eq!(
        std::fs::read(&catalog).expect("it is there"),
        bytes,
        "nothing was touched"
    );
}

/// The value of a metric with such labels on a page.
fn metric(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&str| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'))
            && labels.iter().all(|label| line.contains(label))
    };
    page.lines().find(is_it)?.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_run_by_cron_leaves_its_numbers_for_prometheus() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS n\n"),
        ("models/b.sql", "SELECT n FROM a\n"),
    ]);
    let file = project.path().join("shop.prom");
    let run = || {
        let said = project.call(&["run", "-q", "--metrics-file", "shop.prom"]);
        (
            said.code,
            std::fs::read_to_string(&file).expect("the file is written"),
        )
    };
    let (code, first) = run();
    assert_eq!(
        (code, metric(&first, "watershed_run_exit_code", &[])),
        (Some(0), Some(0.0)),
        "{first}"
    );
    let success = |page: &str| metric(page, "watershed_last_success_timestamp_seconds", &[]);
    assert!(success(&first).is_some_and(|at| at > 1e9), "{first}");
    let ok = ["kind=\"model\"", "health=\"ok\""];
    assert_eq!(
        metric(&first, "watershed_kind_resources", &ok),
        Some(2.0),
        "{first}"
    );
    // A run that finds nothing to do is a success too.
    let (_, second) = run();
    assert!(success(&second) > success(&first), "{second}");
    project.edit("models/a.sql", "1 AS n", "nope AS n");
    let (code, third) = run();
    assert_eq!(
        (code, metric(&third, "watershed_run_exit_code", &[])),
        (Some(1), Some(1.0)),
        "{third}"
    );
    assert_eq!(success(&third), success(&second), "a failure is no success");
    assert_eq!(
        metric(&third, "watershed_resource_failed", &["name=\"a\""]),
        Some(1.0),
        "{third}"
    );
    assert_eq!(
        metric(&third, "watershed_resource_failed", &["name=\"b\""]),
        Some(0.0),
        "{third}"
    );
    assert_eq!(
        metric(&third, "watershed_retries", &[]),
        metric(&third, "watershed_failed", &[]),
        "{third}"
    );
    assert!(!third.contains("_ms{") && !third.contains("_us{"), "{third}");
    let heads = third
        .lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect::<Vec<_>>();
    let mut unique = heads.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(heads.len(), unique.len(), "each name is declared once: {third}");
    let names = std::fs::read_dir(project.path())
        .expect("it can be listed")
        .count();
    assert_eq!(names, 4, "no other file is left");
    let said = project.call(&["run", "-q", "--metrics-file", "nowhere/shop.prom"]);
    assert!(
        said.stderr.contains("can't write `nowhere/shop.prom`"),
        "{}",
        said.stderr
    );
}

#[test]
fn the_time_of_the_last_success_goes_on_while_all_is_well_and_stands_while_something_fails() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.sql", "-- @materialize: true\nSELECT 1 AS n\n"),
    ]);
    let service = Serving::begin(&project, &["start", "--listen=127.0.0.1:0"]);
    let success = |page: &str| metric(page, "watershed_last_success_timestamp_seconds", &[]);
    // The first page on which as many have failed, and nothing waits or runs.
    let page = |failed: f64| {
        loop {
            let (_, _, page) = service.ask("GET", "/metrics", "");
            let rests = metric(&page, "watershed_running", &[]) == Some(0.0);
            if rests && metric(&page, "watershed_failed", &[]) == Some(failed) && success(&page).is_some() {
                return page;
            }
            std::thread::yield_now();
        }
    };
    let first = success(&page(0.0));
    let later = loop {
        let later = success(&page(0.0));
        if later > first {
            break later;
        }
    };
    project.edit("models/a.sql", "1 AS n", "nope AS n");
    let failed = success(&page(1.0));
    // While all is well the time is stored once a minute.
    let soon = failed.map(|at| at + 60.0);
    assert!(soon >= later, "{later:?} {failed:?}");
    assert_eq!(success(&page(1.0)), failed, "the time stands");
    project.edit("models/a.sql", "nope AS n", "2 AS n");
    assert!(success(&page(0.0)) > failed);
}
