//! The program as a person or a script meets it: commands, exit codes, forms of output, habits.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sandbox::{Said, Sandbox, chain_of};

/// Two good models and what goes wrong with a third is up to the test.
const PROJECT: &[(&str, &str)] = &[
    ("watershed.yaml", ""),
    (
        "models/numbers.sql",
        "-- @materialize: true\nSELECT * FROM range(3) AS numbers(number)\n",
    ),
    (
        "models/total.sql",
        "SELECT sum(number)::INTEGER AS total FROM numbers\n",
    ),
];

fn project() -> Sandbox {
    Sandbox::with(PROJECT)
}

#[track_caller]
fn assert_hint(said: &Said, message: &str, hint: &str) {
    assert_eq!(said.code, Some(2), "{}", said.stderr);
    assert_eq!(said.stdout, "");
    assert!(said.stderr.contains(message), "{}", said.stderr);
    assert!(said.stderr.contains(hint), "{}", said.stderr);
}

#[test]
fn words_of_other_programs_are_answered_with_ours() {
    let project = project();
    assert_hint(
        &project.call(&["build"]),
        "there is no command `build`",
        "`watershed run`",
    );
    assert_hint(
        &project.call(&["run", "--target", "prod"]),
        "`--target`",
        "`--environment NAME`",
    );
    assert_hint(
        &project.call(&["run", "--vars", "{}"]),
        "`--vars`",
        "`--env KEY=VALUE`",
    );
    assert_hint(
        &project.call(&["run", "--threads=4"]),
        "`--threads`",
        "`--jobs N`",
    );
    assert_hint(
        &project.call(&["run", "-e", "prod"]),
        "prod",
        "`--environment prod`",
    );
    assert_hint(&project.call(&["runn"]), "runn", "'run'");
}

#[test]
fn usage_mistakes_end_with_2_and_say_what_to_do() {
    let project = project();
    let empty = Sandbox::with(&[]);
    assert_hint(&empty.call(&["run"]), "no project here", "`watershed init`");
    assert_hint(
        &empty.call(&["-C", "nowhere", "run"]),
        "`nowhere`",
        "No such file",
    );
    assert_hint(
        &project.call(&["status", "--format", "csv"]),
        "--format csv",
        "`json`",
    );
    assert_hint(
        &project.call(&["run", "--wait", "30"]),
        "the unit is missing",
        "`30s`",
    );
    assert_hint(
        &project.call(&["status", "totl"]),
        "no resource `totl`",
        "`total`",
    );
    assert_hint(
        &project.call(&["--environment", "../x", "run"]),
        "../x",
        "environment",
    );
}

#[test]
fn a_project_is_found_from_below_and_by_name() {
    let project = project();
    project.run(0);
    let below = project
        .command(&["status", "--json"])
        .current_dir(project.path().join("models"))
        .output();
    let below = Said::from(below.expect("the program can be started"));
    assert_eq!(below.code, Some(0), "{}", below.stderr);
    let elsewhere = Sandbox::with(&[]);
    let path = project.path().display().to_string();
    for call in [&["run", &path, "--json"][..], &["-C", &path, "status", "--json"]] {
        let said = elsewhere.call(call);
        assert_eq!(said.json()["summary"]["resources"], 2, "{}", said.stderr);
    }
}

#[test]
fn init_writes_projects_that_run_and_touches_none_that_is_there() {
    for template in ["empty", "flights"] {
        let folder = Sandbox::with(&[]);
        let said = folder.call(&["init", "new", "--template", template]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.contains("watershed run"), "{}", said.stdout);
        let run = folder.call(&["run", "new", "--json"]);
        assert_eq!(run.code, Some(0), "{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.json()["diagnostics"], json!([]));
        assert_hint(
            &folder.call(&["init", "new"]),
            "holds a project already",
            "`watershed run`",
        );
        assert!(!said.stdout.contains("ignore_paths"), "{}", said.stdout);
    }
    let inner = Sandbox::with(&[("watershed.yaml", "")]).call(&["init", "parts/inner"]);
    let told = "add `/parts/inner` to `ignore_paths` in its manifest";
    assert!(inner.stdout.contains(told), "{}", inner.stdout);
}

#[test]
fn the_template_of_flights_is_the_project_that_the_readme_goes_through() {
    let folder = Sandbox::with(&[]);
    assert_eq!(
        folder.call(&["init", "new", "--template", "flights"]).code,
        Some(0)
    );
    let (new, ours) = (folder.path().join("new"), crate::sandbox::sample("flights"));
    let mut compared = 0;
    for path in crate::sandbox::files_below(&ours) {
        let below = path.strip_prefix(&ours).unwrap();
        if !below.starts_with(".watershed") {
            let written = std::fs::read(new.join(below)).expect("it is written");
            let own = std::fs::read(&path).unwrap();
            // What a repository leaves out is the project's list and that of every project.
            let same = match below.ends_with(".gitignore") {
                true => written.ends_with(&own) && written.starts_with(b"# Secrets"),
                false => written == own,
            };
            assert!(same, "{}", below.display());
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared} files");
    // In the order in which the README shows them.
    folder.call(&["run", "new"]);
    let said = folder.call(&["-C", "new", "show", "best_hours"]);
    assert!(
        said.stdout.contains("│ 05:00      ┆          0.7 ┆"),
        "{}",
        said.stdout
    );
}

#[test]
fn the_exit_code_says_how_the_project_stands() {
    let project = project();
    project.run(0);
    project.write("models/broken.sql", "SELECT nothing FROM numbers");
    project.run(1);
    assert_eq!(project.call(&["status"]).code, Some(1));
    assert_eq!(
        project.call(&["validate"]).code,
        Some(0),
        "the engine alone knows of columns"
    );
    project.write("models/broken.sql", "SELEC 1");
    assert_eq!(project.call(&["validate"]).code, Some(1));
    project.remove("models/broken.sql");
    project.run(0);
    assert_eq!(project.call(&["status"]).code, Some(0));
}

#[test]
fn a_state_folder_that_can_not_be_written_is_for_later_and_a_damaged_one_is_left_alone() {
    let project = project();
    project.write("taken", "");
    let said = project.call(&["run", "--state-dir", "taken"]);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert!(said.stderr.contains("can't be written"), "{}", said.stderr);

    project.run(0);
    let catalog = project.path().join(".watershed/dev/catalog.db");
    for name in ["catalog.db-wal", "catalog.db-shm"] {
        let _ = std::fs::remove_file(catalog.with_file_name(name));
    }
    let rubbish = b"not a database at all, but long enough to be looked at as one".repeat(20);
    std::fs::write(&catalog, &rubbish).expect("the catalog can be overwritten");
    for call in [&["run"][..], &["status"]] {
        let said = project.call(call);
        assert_eq!(said.code, Some(4), "{call:?}: {}", said.stderr);
    }
    assert_eq!(std::fs::read(&catalog).expect("the catalog is there"), rubbish);
}

#[test]
fn events_come_in_order_and_the_last_holds_the_document() {
    let project = project();
    let said = project.call(&["run", "--format", "jsonl"]);
    let events: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an event"))
        .collect();
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(names.first(), Some(&"run_started"));
    assert_eq!(names.last(), Some(&"run_finished"));
    assert_eq!(names.iter().filter(|name| **name == "run_finished").count(), 1);
    let at = |event: &str, resource: &str| {
        let is = |e: &Value| e["event"] == event && e["resource"]["name"] == resource;
        events
            .iter()
            .position(is)
            .unwrap_or_else(|| panic!("no {event} of {resource}: {}", said.stdout))
    };
    assert!(at("resource_started", "numbers") < at("resource_finished", "numbers"));
    assert!(at("resource_finished", "numbers") < at("resource_started", "total"));
    let document = &events[events.len() - 1]["document"];
    assert_eq!(document["schema"], "watershed.run/1");
    assert_eq!(document["summary"]["changes"]["created"], 2);
    assert_eq!(document["exit_code"], 0);
}

#[test]
fn colour_is_for_terminals_unless_it_is_asked_for() {
    let project = project();
    project.write("models/broken.sql", "SELECT nothing FROM numbers");
    let colours = |said: &Said| said.stdout.contains('\u{1b}') || said.stderr.contains('\u{1b}');
    assert!(!colours(&project.call(&["run"])));
    assert!(colours(&project.call(&["run", "--color", "always"])));
    assert!(!colours(&project.call(&["run", "--color", "never"])));
    assert!(!colours(
        &project.call(&["query", "--format", "csv", "--color", "always", "SELECT 1"])
    ));
}

#[test]
fn a_reader_who_has_seen_enough_ends_the_program_quietly() {
    let project = project();
    project.run(0);
    let sql = "SELECT * FROM range(10000000)";
    let mut child = project
        .command(&["query", "--format", "csv", sql])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    assert_eq!(
        lines.next().expect("there is a header").expect("it is text"),
        "range"
    );
    drop(lines);
    let output = child.wait_with_output().expect("the program ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn queries_only_read() {
    let project = project();
    project.run(0);
    for sql in [
        "DROP TABLE numbers",
        "CREATE TABLE x AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "",
    ] {
        let said = project.call(&["query", sql]);
        assert_eq!(said.code, Some(1), "{sql}: {}", said.stderr);
        assert!(said.stderr.starts_with("error"), "{sql}: {}", said.stderr);
    }
    assert_eq!(
        project.query("SELECT count(*)::INTEGER FROM numbers")["rows"],
        json!([[3]])
    );
    assert_eq!(project.done(0), "", "a look leaves nothing to be done");
}

#[test]
fn rows_come_in_the_form_that_was_asked_for() {
    let project = project();
    project.run(0);
    let sql = "SELECT 9007199254740993::BIGINT AS big, 1.50::DECIMAL(4,2) AS price, DATE '2024-02-29' AS day, NULL AS none";
    let document = project.query(sql);
    assert_eq!(
        document["rows"],
        json!([["9007199254740993", "1.50", "2024-02-29", null]])
    );
    assert_eq!(document["columns"][0], json!({"name": "big", "type": "BIGINT"}));
    assert_eq!(
        project.call(&["query", "--format", "csv", sql]).stdout,
        "big,price,day,none\n9007199254740993,1.50,2024-02-29,\n"
    );
    let lines = project
        .call(&[
            "query",
            "--format",
            "jsonl",
            "SELECT number FROM numbers ORDER BY 1",
        ])
        .stdout;
    assert_eq!(lines, "{\"number\":0}\n{\"number\":1}\n{\"number\":2}\n");
    let many = project.call(&["query", "SELECT * FROM range(1500)"]);
    assert!(
        many.stderr.contains("1,000 rows, and there are more"),
        "{}",
        many.stderr
    );
    let all = project.call(&["query", "--format", "csv", "SELECT * FROM range(1500)"]);
    assert_eq!(all.stdout.lines().count(), 1501);
    let few = project.call(&["query", "--limit", "2", "--json", "SELECT * FROM range(1500)"]);
    assert_eq!(few.json()["rows"], json!([[0], [1]]));
    let shown = project.call(&["show", "numbers", "--json", "--limit", "1"]);
    assert_eq!(shown.json()["rows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_reads_what_is_shown_in_three_forms() {
    let project = project();
    let before = project.call(&["graph", "--json"]).json();
    assert_eq!(before["nodes"][0]["health"], "never_built");
    project.run(0);
    let graph = project.call(&["graph", "--json"]).json();
    let edge =
        json!({"from": {"kind": "model", "name": "numbers"}, "to": {"kind": "model", "name": "total"}});
    assert_eq!(graph["edges"], json!([edge]));
    assert_eq!(project.call(&["graph"]).stdout, "numbers\n  total\n");
    assert!(
        project
            .call(&["graph", "--format", "dot"])
            .stdout
            .contains("\"model/numbers\" -> \"model/total\"")
    );
}

#[test]
fn compile_prints_what_the_engine_gets() {
    let project = project();
    project.write(
        "models/limited.sql",
        "SELECT * FROM {{ ref \"numbers\" }} WHERE number < {{ .env.limit }}",
    );
    let said = project.call(&["compile", "limited", "-e", "limit=2"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout.contains("WHERE number < 2") && !said.stdout.contains("{{"),
        "{}",
        said.stdout
    );
    assert!(
        !project.path().join(".watershed/dev").exists(),
        "the files were enough"
    );
}

#[test]
fn history_tells_what_ran_and_why() {
    let project = project();
    project.run(0);
    assert_eq!(project.call(&["refresh", "numbers", "--json"]).code, Some(0));
    let runs = project.call(&["history", "numbers", "--json"]).json()["runs"].clone();
    let reasons: Vec<&str> = runs
        .as_array()
        .expect("runs are listed")
        .iter()
        // The refresh may cancel the look of the start.
        .filter(|run| run["outcome"] != "cancelled")
        .filter_map(|run| run["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["refresh", "created"]);
    let lines = project.call(&["history", "--format", "jsonl"]).stdout;
    assert!(
        lines
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).is_ok()),
        "{lines}"
    );
}

#[test]
fn refresh_does_the_work_again_and_reconcile_only_looks() {
    let project = project();
    project.run(0);
    let work = |said: &Said, name: &str| {
        let document = said.json();
        let resources = document["resources"]
            .as_array()
            .expect("resources are listed")
            .clone();
        let found = resources.into_iter().find(|resource| resource["name"] == name);
        found.expect("the resource is listed")["work"].clone()
    };
    let looked = project.call(&["reconcile", "numbers", "--json"]);
    assert_ne!(work(&looked, "numbers"), "built", "{}", looked.stdout);
    let again = project.call(&["refresh", "model/numbers", "--json"]);
    assert_eq!(work(&again, "numbers"), "built", "{}", again.stdout);
}

#[test]
fn reconcile_waits_for_its_own_and_what_stands_below_alone() {
    let project = project();
    project.run(0);
    // It would take days.
    let slow = "-- @materialize: true\nSELECT count(*) AS n FROM range(1000000000000000) AS t(i) WHERE hash(i) = 1\n";
    project.write("models/slow.sql", slow);
    project.write(
        "models/total.sql",
        "SELECT sum(number)::BIGINT AS total FROM numbers\n",
    );
    let said = project.call(&["reconcile", "numbers", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let document = said.json();
    let resources = document["resources"].as_array().expect("resources are listed");
    let of = |name: &str| {
        let found = resources.iter().find(|resource| resource["name"] == name);
        found.expect("the resource is listed").clone()
    };
    assert_ne!(of("slow")["work"], "built");
    // What stands below is looked at, also where the same look at the files found it edited.
    let rows = project.call(&["query", "--json", "SELECT typeof(total) AS t FROM total"]);
    assert!(rows.stdout.contains("BIGINT"), "{}", rows.stdout);
}

#[test]
fn an_edit_and_a_refresh_of_it_are_one_build() {
    let project = project();
    project.run(0);
    let edit = |number: u32, suffix: &str| {
        let sql = format!("-- @materialize: true\nSELECT {number} AS number{suffix}\n");
        project.write("models/edited.sql", &sql);
        let code = project.call(&["refresh", "edited", "--json"]).code;
        let history = project.call(&["history", "edited", "--json"]).json();
        let runs = history["runs"].as_array().expect("runs are listed");
        // The refresh may cancel the look of the start, which has built nothing by then.
        let ended = runs.iter().filter(|run| run["outcome"] != "cancelled");
        (code, ended.count())
    };
    assert_eq!(edit(1, ""), (Some(0), 1), "it is new");
    assert_eq!(edit(2, ""), (Some(0), 2));
    assert_eq!(edit(3, " / 'x'"), (Some(1), 3), "it fails");
    assert_eq!(edit(4, ""), (Some(0), 4));
    assert_eq!(edit(4, ""), (Some(0), 5), "nothing was edited");
}

#[test]
fn completions_know_the_names_of_resources() {
    let project = project();
    let script = project.call(&["completions", "bash"]);
    assert!(script.stdout.contains("WATERSHED_COMPLETE"), "{}", script.stdout);
    let asked = |shell: &str, typed: &str| {
        let asked = project
            .command(&["--", "watershed", "show", typed])
            .env("WATERSHED_COMPLETE", shell)
            .env("_CLAP_COMPLETE_INDEX", "2")
            .env("_CLAP_IFS", "\n")
            .output()
            .expect("the program can be started");
        String::from_utf8_lossy(&asked.stdout).trim().to_owned()
    };
    assert_eq!(asked("bash", "num"), "numbers");
    project.write("models/my orders.sql", "SELECT 1 AS x");
    for typed in ["my", "my\\ o"] {
        assert_eq!(asked("bash", typed), "my\\ orders", "as bash has to write it");
    }
    assert!(asked("fish", "my").starts_with("my orders"));
}

#[test]
fn every_command_has_a_manual_page() {
    let project = project();
    let said = project.call(&["man", "pages"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let page =
        |name: &str| std::fs::read_to_string(project.path().join("pages").join(name)).unwrap_or_default();
    assert!(
        page("watershed.1").contains("watershed\\-run(1)"),
        "{}",
        page("watershed.1")
    );
    assert!(page("watershed-run.1").contains("Bring the project up to date once"));
    assert!(page("watershed-debug-check.1").contains("watershed"));
}

#[test]
fn a_run_says_which_file_was_behind_it() {
    let project = project();
    project.run(0);
    project.write("models/numbers.sql", "SELECT 41 AS number UNION ALL SELECT 2");
    project.run(0);
    let run = project.call(&["history", "total", "--json"]).json()["runs"][0].clone();
    let chain = [
        "project_parser/parser start ",
        "model/numbers edited models/numbers.sql",
        "model/total parent ",
    ];
    assert_eq!(chain_of(&run), chain);
    let explained = project.call(&["explain", "total", "--json"]).json();
    assert_eq!(chain_of(&explained["resource"]["last_run"]), chain);
    let said = project.call(&["explain", "total"]).stdout;
    assert!(
        said.contains("models/numbers.sql was edited → model/total"),
        "{said}"
    );
    let said = project.call(&["history", "total"]).stdout;
    assert!(
        said.contains("after model/numbers (models/numbers.sql)"),
        "{said}"
    );
}
