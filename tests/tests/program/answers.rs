//! Answers of single commands: places of mistakes, forms of lines, tables of what has no rows.

use std::path::Path;
use std::process::Command;

use crate::sandbox::{Said, Sandbox};

fn project() -> Sandbox {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/a.sql",
            "-- @materialize: true\nSELECT 1 AS x, DATE '2024-01-01' AS day",
        ),
        ("models/b.sql", "-- @materialize: true\nSELECT x, day FROM a"),
        (
            "metrics/sales.yaml",
            "type: metrics_view\nmodel: b\ntimeseries: day\ndimensions:\n  - name: which\n    column: x\n\
             measures:\n  - name: total\n    display_name: All of it\n    expression: sum(x)\n",
        ),
    ]);
    sandbox.run(0);
    sandbox
}

#[test]
fn a_second_statement_is_shown_where_it_begins() {
    let sandbox = project();
    let said = sandbox.call(&["query", "SELECT 1;\nSELECT 2"]);
    assert_eq!(said.code, Some(1));
    assert!(
        said.stderr.contains("error[several-statements]"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("query:2:1"), "{}", said.stderr);
    let error = &sandbox.call(&["query", "--json", "SELECT 1; SELECT 2"]).json()["error"];
    assert_eq!(
        (&error["code"], &error["at"]["column"]),
        (&"several-statements".into(), &11.into())
    );
}

#[test]
fn a_metrics_view_is_shown_by_its_fields() {
    let sandbox = project();
    let said = sandbox.call(&["show", "metrics_view/sales"]);
    let row = |name: &str| {
        let rows: Vec<&str> = said.stdout.lines().filter(|line| line.contains(name)).collect();
        assert_eq!(rows.len(), 1, "{name}: {}", said.stdout);
        rows[0]
            .split(['│', '┆'])
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        row("total")[1..6],
        ["measure", "total", "sum(x)", "All of it", "HUGEINT"]
    );
    assert_eq!(row("which")[1..4], ["dimension", "which", "x"]);
    let document = sandbox.call(&["show", "metrics_view/sales", "--json"]).json();
    assert_eq!(document["schema"], "watershed.show/1");
}

#[test]
fn logs_say_their_zone_and_details_only_when_asked_for() {
    let sandbox = project();
    sandbox.write(
        "models/a.sql",
        "-- @materialize: true\nSELECT 2 AS x, DATE '2024-01-01' AS day",
    );
    sandbox.run(0);
    let said = sandbox.call(&["logs", "b"]);
    assert!(
        said.stdout
            .contains("building, because its input \"a\" was built again"),
        "{}",
        said.stdout
    );
    assert!(!said.stdout.contains("debug"), "{}", said.stdout);
    for line in said.stdout.lines() {
        let time = line.split_whitespace().nth(1).unwrap_or_default();
        assert!(time.ends_with('Z'), "{line}");
    }
    assert!(sandbox.call(&["logs", "b", "-v"]).stdout.contains("debug"));
}

#[test]
fn each_line_of_history_and_logs_names_its_schema() {
    let sandbox = project();
    for (command, schema) in [
        (&["history"][..], "watershed.history/1"),
        (&["logs", "b"], "watershed.logs/1"),
    ] {
        let said = sandbox.call(&[command, &["--format", "jsonl"]].concat());
        assert!(said.stdout.lines().count() > 1, "{}", said.stdout);
        for line in said.stdout.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("a line is JSON");
            assert_eq!(line["schema"], schema);
        }
    }
}

#[test]
fn the_short_help_has_a_commands_own_options_alone() {
    let sandbox = Sandbox::with(&[]);
    let (short, long) = (
        sandbox.call(&["query", "-h"]).stdout,
        sandbox.call(&["query", "--help"]).stdout,
    );
    assert!(short.lines().count() < 25, "{short}");
    assert!(
        short.contains("--timeout") && !short.contains("--memory-limit"),
        "{short}"
    );
    assert!(
        long.contains("--timeout") && long.contains("--memory-limit"),
        "{long}"
    );
}

#[test]
fn odd_files_are_named_in_one_line_with_what_helps() {
    let sandbox = project();
    sandbox.write("models/odd\nname.sql", "SELECT 1");
    sandbox.write("models/zero.sql", "-- one\nSELECT 1\0 AS x");
    sandbox.write("models/turned.sql", "PIVOT a ON x USING count(*)");
    sandbox.write("inner/watershed.yaml", "");
    let said = sandbox.call(&["run"]);
    assert_eq!(said.code, Some(1));
    for expected in [
        "models/odd␣name.sql",
        "a zero byte stands in the SQL",
        "models/zero.sql:2:9",
        "`-- @materialize: true`",
        "a project stands inside this project",
        "`ignore_paths`",
    ] {
        assert!(said.stderr.contains(expected), "{expected}: {}", said.stderr);
    }
}

/// A folder seen at another place where nothing can be written; none where mounting is not allowed.
struct ReadOnly<'a>(&'a Path);

impl<'a> ReadOnly<'a> {
    fn mount(folder: &Path, at: &'a Path) -> Option<Self> {
        let call = |arguments: &[&std::ffi::OsStr]| {
            let output = Command::new("mount").args(arguments).output();
            output.is_ok_and(|output| output.status.success())
        };
        if !call(&["--bind".as_ref(), folder.as_os_str(), at.as_os_str()]) {
            return None;
        }
        let mounted = Self(at);
        call(&["-o".as_ref(), "remount,ro,bind".as_ref(), at.as_os_str()]).then_some(mounted)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[test]
fn a_project_on_a_read_only_volume_can_be_looked_at_and_not_run() {
    let sandbox = project();
    let place = tempfile::tempdir().expect("a folder can be made");
    let Some(volume) = ReadOnly::mount(sandbox.path(), place.path()) else {
        println!("mounting is not allowed here");
        return;
    };
    let call = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        Said::from(
            command
                .current_dir(volume.0)
                .output()
                .expect("the program can be started"),
        )
    };
    for command in [
        &["status"][..],
        &["show", "b"],
        &["query", "FROM b"],
        &["graph"],
        &["compile", "b"],
        &["logs", "b"],
        &["history"],
        &["explain"],
        &["stats"],
        &["validate"],
        &["test"],
        &["doctor"],
        &["debug", "check"],
    ] {
        let said = call(command);
        assert_eq!(said.code, Some(0), "{command:?}: {}", said.stderr);
    }
    for command in [&["run"][..], &["start"], &["refresh", "b"], &["gc"]] {
        let said = call(command);
        assert_eq!(said.code, Some(3), "{command:?}: {}", said.stderr);
        assert!(
            said.stderr.contains("can't be written"),
            "{command:?}: {}",
            said.stderr
        );
        assert!(
            said.stderr.contains("--state-dir"),
            "{command:?}: {}",
            said.stderr
        );
    }
}

#[test]
fn a_plan_of_the_engine_is_drawn_over_its_lines() {
    let said = project().call(&["query", "EXPLAIN SELECT 1 AS one"]);
    assert!(
        said.stdout.lines().count() > 5 && !said.stdout.contains("explain_value"),
        "{}",
        said.stdout
    );
}
