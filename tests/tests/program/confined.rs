//! `--sandbox`: a project reaches its own folder and its state alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::going::Going;
use crate::sandbox::{Said, Sandbox};

const WORD: &str = "outside-42";

/// A project with one model, and beside its folder a file that it has no business with.
fn project(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/in.csv", "a\n1\n2\n"),
        (
            "models/inside.sql",
            "-- @materialize: true\nSELECT sum(a) AS total FROM read_csv('data/in.csv')",
        ),
    ]);
    for (file, text) in files {
        sandbox.write(file, text);
    }
    fs::write(outside(&sandbox), format!("a\n{WORD}\n")).expect("the file can be written");
    sandbox
}

fn outside(sandbox: &Sandbox) -> PathBuf {
    sandbox.path().with_file_name("outside.csv")
}

fn run(sandbox: &Sandbox) -> Said {
    sandbox.call(&["run", "--sandbox", "--json"])
}

/// The code and hint of the failure of a resource; empty if it has none.
fn error_of(said: &Said, name: &str) -> (String, String) {
    let document = said.json();
    let resources = document["resources"].as_array().expect("a list of resources");
    let resource = resources.iter().find(|resource| resource["name"] == name);
    let error = &resource.unwrap_or_else(|| panic!("{name} is listed"))["error"];
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (text("code"), text("hint"))
}

fn assert_refused(said: &Said, name: &str) {
    let (code, hint) = error_of(said, name);
    assert_eq!(code, "outside-sandbox", "{name}: {}", said.stdout);
    assert!(hint.contains("--sandbox"), "{name}: {hint}");
    assert_eq!(said.code, Some(1));
    assert!(
        !said.stdout.contains(WORD) && !said.stderr.contains(WORD),
        "{name}"
    );
}

#[test]
fn a_model_reads_inside_and_nowhere_else() {
    let reads = [
        "read_text('../outside.csv')",
        "read_text('data/../../outside.csv')",
        "read_csv('/etc/passwd')",
        "glob('/etc/*')",
        "read_text('/etc/' || 'passwd')",
        "read_text('nothing/../../outside.csv')",
        "query('FROM read_text(''../outside.csv'')')",
        "read_text('data/link.csv')",
        "read_text('data/*.txt')",
        "read_text('/nowhere/at/all')",
    ];
    let sandbox = project(&[]);
    symlink(outside(&sandbox), sandbox.path().join("data/link.csv")).unwrap();
    symlink(outside(&sandbox), sandbox.path().join("data/link.txt")).unwrap();
    for (index, read) in reads.iter().enumerate() {
        let file = format!("models/read_{index}.sql");
        sandbox.write(&file, &format!("-- @materialize: true\nSELECT * FROM {read}"));
    }
    let said = run(&sandbox);
    for index in 0..reads.len() {
        assert_refused(&said, &format!("read_{index}"));
    }
    assert_eq!(error_of(&said, "inside").0, "");
    let asked = sandbox.call(&["query", "--sandbox", "--format", "csv", "FROM inside"]);
    assert_eq!((asked.stdout.as_str(), asked.code), ("total\n3\n", Some(0)));
}

#[test]
fn without_the_switch_a_model_reads_what_its_author_may() {
    let sandbox = project(&[("models/read.sql", "SELECT * FROM read_text('../outside.csv')")]);
    assert_eq!(sandbox.call(&["run"]).code, Some(0));
    let shown = sandbox.call(&["query", "SELECT content FROM read"]);
    assert!(shown.stdout.contains(WORD), "{}", shown.stdout);
    // A view that was made without it is no way out.
    let asked = sandbox.call(&["query", "--sandbox", "SELECT content FROM read"]);
    assert_eq!(asked.code, Some(1), "{}", asked.stdout);
    assert!(asked.stderr.contains("outside the sandbox"), "{}", asked.stderr);
    assert!(!asked.stdout.contains(WORD) && !asked.stderr.contains(WORD));
}

#[test]
fn a_state_that_is_a_link_is_refused_before_anything_is_made_where_it_leads() {
    for link in [".watershed", ".watershed/dev"] {
        let sandbox = project(&[]);
        let elsewhere = tempfile::tempdir().unwrap();
        if link.contains('/') {
            fs::create_dir(sandbox.path().join(".watershed")).unwrap();
        }
        symlink(elsewhere.path(), sandbox.path().join(link)).unwrap();
        for arguments in [
            &["run"][..],
            &["status"],
            &["query", "SELECT 1"],
            &["validate"],
            &["doctor"],
        ] {
            let said = sandbox.call(&[arguments, &["--sandbox"]].concat());
            assert_ne!(said.code, Some(0), "{link} {arguments:?}: {}", said.stdout);
            assert!(
                said.stderr.contains("link"),
                "{link} {arguments:?}: {}",
                said.stderr
            );
            let made: Vec<_> = fs::read_dir(elsewhere.path()).unwrap().collect();
            assert!(made.is_empty(), "{link} {arguments:?}: {made:?}");
        }
    }
}

#[test]
fn statements_of_migrations_and_connectors_do_not_leave_it() {
    let statements = [
        "COPY (SELECT 1) TO '../written.csv'",
        "COPY (SELECT 1) TO '/tmp/watershed-written.csv'",
        "EXPORT DATABASE '../exported'",
        "ATTACH '../other.db' AS other",
        "COPY (SELECT 1) TO 'data/own.csv'",
        "COPY (SELECT repeat('x', 100000)) TO '.watershed/dev/catalog.db-shm'",
        "ATTACH 'data/own.db' AS own",
        "CREATE TABLE stolen AS FROM read_text('../outside.csv')",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SET allowed_directories = ['/']",
        "SET lock_configuration = false",
        "SET allowed_configs = ['threads']",
        "SET file_search_path = '/etc'",
        "SET temp_directory = '/tmp'",
        "SET profiling_output = '/tmp/watershed-profile.json'",
        "LOAD httpfs",
        "INSTALL httpfs",
    ];
    let sandbox = project(&[]);
    for statement in statements {
        sandbox.write("init.sql", statement);
        assert_refused(&run(&sandbox), "init");
    }
    let beside = fs::read_dir(sandbox.path().parent().unwrap()).unwrap();
    let beside: Vec<_> = beside.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside.len(), 2, "the project and the file beside it: {beside:?}");
    sandbox.remove("init.sql");
    sandbox.write(
        "connectors/duckdb.yaml",
        "type: connector\ndriver: duckdb\ninit_sql: ATTACH '../other.db' AS other\n",
    );
    let said = run(&sandbox);
    assert_eq!(said.code, Some(1));
    assert!(said.stdout.contains("runs no ATTACH"), "{}", said.stdout);
    sandbox.remove("connectors/duckdb.yaml");
    sandbox.write(
        "connectors/other.yaml",
        "type: connector\ndriver: duckdb\npath: ../other.db\n",
    );
    assert_refused(&run(&sandbox), "other");
}

#[test]
fn what_stays_inside_works_as_before() {
    let sandbox = project(&[
        (
            "init.sql",
            "SET old_implicit_casting = false; CREATE OR REPLACE MACRO twice(x) AS 2 * x",
        ),
        (
            "connectors/duckdb.yaml",
            "type: connector\ndriver: duckdb\ninit_sql: SET TimeZone = 'Europe/Berlin'\n",
        ),
        (
            "models/turned.sql",
            "-- @materialize: true\nPIVOT (SELECT a, twice(a) AS b FROM read_csv('data/*n.csv')) ON a USING sum(b)",
        ),
        (
            "models/zone.sql",
            "-- @materialize: true\nSELECT strftime('2024-01-01 00:00:00+00'::TIMESTAMPTZ, '%H') AS hour",
        ),
    ]);
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().join("state");
    let options = ["--sandbox", "--state-dir", state.to_str().unwrap()];
    let called = |arguments: &[&str]| {
        let mut command = sandbox.command(&[arguments, &options].concat());
        // From a folder that is not the project's.
        let output = command
            .current_dir(elsewhere.path())
            .arg("-C")
            .arg(sandbox.path())
            .output();
        Said::from(output.unwrap())
    };
    let said = called(&["run", "--metrics-file", "numbers.prom"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(elsewhere.path().join("numbers.prom").is_file());
    let rows = |table: &str| called(&["query", "--format", "csv", &format!("FROM {table}")]).stdout;
    assert_eq!(rows("turned"), "1,2\n2,4\n");
    assert_eq!(rows("zone"), "hour\n01\n");
    fs::write(elsewhere.path().join("ask.sql"), "FROM inside").unwrap();
    assert_eq!(
        called(&["query", "-f", "ask.sql", "--format", "csv"]).stdout,
        "total\n3\n"
    );
    let written = called(&["query", "FROM inside", "--out", "total.csv"]);
    assert_eq!(
        written.code,
        Some(1),
        "the folder is neither the project's nor its state's"
    );
    assert!(
        written.stderr.contains("total.csv\" is outside the sandbox"),
        "{}",
        written.stderr
    );
    assert_eq!(called(&["gc"]).code, Some(0));
    assert_eq!(called(&["doctor"]).code, Some(0));
    assert_eq!(
        called(&["run", "--json"]).json()["summary"]["outcomes"]["done"],
        0
    );
}

#[test]
fn a_setting_that_a_migration_made_before_is_refused_aloud() {
    let sandbox = project(&[("init.sql", "SET GLOBAL preserve_identifier_case = false")]);
    assert_eq!(sandbox.call(&["run"]).code, Some(0));
    sandbox.edit("data/in.csv", "2", "5");
    let said = run(&sandbox);
    assert_refused(&said, "inside");
    assert!(said.stdout.contains("a migration left it"), "{}", said.stdout);
}

#[test]
fn a_project_file_that_links_outside_is_not_read() {
    let sandbox = project(&[]);
    symlink(outside(&sandbox), sandbox.path().join("models/linked.sql")).unwrap();
    for command in [["validate", "--sandbox"], ["run", "--sandbox"]] {
        let said = sandbox.call(&command);
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        assert!(
            said.stderr.contains("a link leads out of the sandbox"),
            "{}",
            said.stderr
        );
        assert!(!said.stderr.contains(WORD), "{}", said.stderr);
    }
}

#[test]
fn the_process_that_works_on_the_project_must_be_confined_too() {
    let sandbox = project(&[]);
    let going = Going::settled(&sandbox);
    let said = sandbox.call(&["query", "--sandbox", "FROM inside"]);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert!(said.stderr.contains("without a sandbox"), "{}", said.stderr);
    drop(going);
    let mut confined = Going::with_arguments(&sandbox, &["start", "--sandbox", "--format", "jsonl"]);
    confined.round();
    for options in [&["--sandbox"][..], &[]] {
        let inside = sandbox.call(&[&["query", "--format", "csv", "FROM inside"], options].concat());
        assert_eq!(inside.stdout, "total\n3\n", "{}", inside.stderr);
        let said = sandbox.call(&[&["query", "FROM read_text('../outside.csv')"], options].concat());
        assert!(said.stderr.contains("outside the sandbox"), "{}", said.stderr);
    }
}

#[test]
fn programs_and_messages_stay_inside() {
    let sandbox = project(&[
        ("jobs/touch.yaml", "type: job\ncommand: [touch, touched.txt]\n"),
        (
            "services/serve.yaml",
            "type: service\ncommand: [sh, -c, 'touch served.txt; sleep 60']\n",
        ),
        (
            "connectors/shell.yaml",
            "type: connector\ndriver: command\ncommand: [touch, told.txt]\n",
        ),
        (
            "alerts/any.yaml",
            "type: alert\ndata: {sql: SELECT 1 AS x}\nrefresh: {every: 24h}\nnotify: {command: shell}\n",
        ),
    ]);
    let said = run(&sandbox);
    for program in ["touch", "serve"] {
        assert_refused(&said, program);
    }
    for file in ["touched.txt", "served.txt", "told.txt"] {
        assert!(!sandbox.path().join(file).exists(), "{file}: {}", said.stdout);
    }
    assert_eq!(
        sandbox.call(&["run"]).code,
        Some(0),
        "the same project with trust"
    );
    assert!(sandbox.path().join("touched.txt").exists());
}
