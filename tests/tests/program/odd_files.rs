//! Irregular files are reported and never opened; two signals end a read that never returns.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Said, Sandbox};

fn pipe(sandbox: &Sandbox, file: &str) {
    let path = sandbox.path().join(file);
    fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("a folder can be made");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe can be made");
}

fn codes(said: &Said) -> Vec<String> {
    let document = said.json();
    let found = document["diagnostics"].as_array().cloned().unwrap_or_default();
    let mut codes: Vec<String> = found
        .iter()
        .map(|found| format!("{} {}", found["path"], found["code"]).replace('"', ""))
        .collect();
    codes.sort();
    codes
}

#[test]
fn pipes_and_devices_among_project_files_are_errors_and_the_rest_is_built() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/good.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ]);
    pipe(&sandbox, "models/a.sql");
    pipe(&sandbox, ".env");
    symlink("/dev/zero", sandbox.path().join("models/zero.sql")).expect("a link can be made");
    let expected = [
        ".env not-a-file",
        "models/a.sql not-a-file",
        "models/zero.sql not-a-file",
    ];
    let validated = sandbox.call(&["validate", "--json"]);
    assert_eq!(
        (validated.code, codes(&validated)),
        (Some(1), expected.map(String::from).to_vec())
    );
    let run = sandbox.call(&["run", "--json"]);
    assert_eq!(
        (run.code, codes(&run)),
        (Some(1), expected.map(String::from).to_vec())
    );
    assert_eq!(sandbox.tables(), ["good: {'x': 1}"]);
    sandbox.remove(".env");
    sandbox.remove("models/a.sql");
    sandbox.remove("models/zero.sql");
    assert_eq!(sandbox.run(0).len(), 0);
}

/// A file of a gigabyte that takes no room on the disk.
fn sparse(sandbox: &Sandbox, file: &str) {
    let file = fs::File::create(sandbox.path().join(file)).expect("a file can be made");
    file.set_len(1 << 30).expect("it can grow");
}

#[test]
fn files_that_are_huge_links_in_circles_and_names_of_all_sorts_cost_no_time_and_hide_nothing() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/good.sql", "-- @materialize: true\nSELECT 1 AS x"),
        ("models/.. .sql", "SELECT 1 AS a"),
        ("models/\u{202e}lqs.sql", "SELECT 2 AS a"),
        ("models/a\tb.sql", "SELECT 3 AS a"),
    ]);
    for file in ["models/huge.sql", "models/huge.yaml", ".env"] {
        sparse(&sandbox, file);
    }
    symlink("..", sandbox.path().join("models/up")).expect("a link can be made");
    symlink("here.sql", sandbox.path().join("models/here.sql")).expect("a link can be made");
    let begun = std::time::Instant::now();
    let said = sandbox.call(&["validate", "--json"]);
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        (said.code, codes(&said)),
        (
            Some(1),
            [
                ".env file-too-large",
                "models/a\\tb.sql invalid-name",
                "models/here.sql unreadable",
                "models/huge.sql file-too-large",
                "models/huge.yaml file-too-large",
            ]
            .map(String::from)
            .to_vec()
        )
    );
}

#[test]
fn a_manifest_that_is_a_pipe_is_told_and_deletes_nothing() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/good.sql", "-- @materialize: true\nSELECT 1 AS x"),
    ]);
    sandbox.run(0);
    sandbox.remove("watershed.yaml");
    pipe(&sandbox, "watershed.yaml");
    let run = sandbox.call(&["run", "--json", "-C", "."]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert_eq!(codes(&run), ["watershed.yaml not-a-file"]);
    assert_eq!(sandbox.tables(), ["good: {'x': 1}"]);
}

#[test]
fn data_that_is_no_regular_file_fails_its_source_and_keeps_the_last_rows() {
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/one.yaml",
            "type: source\nconnector: local_file\npath: data/one.csv\n",
        ),
        (
            "sources/all.yaml",
            "type: source\nconnector: local_file\npath: data/all/*.csv\n",
        ),
        ("data/one.csv", "x\n1\n"),
        ("data/all/a.csv", "x\n1\n"),
    ]);
    sandbox.run(0);
    let before = sandbox.tables();
    sandbox.remove("data/one.csv");
    pipe(&sandbox, "data/one.csv");
    pipe(&sandbox, "data/all/b.csv");
    let run = sandbox.call(&["run", "--json"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let document = run.json();
    for resource in document["resources"].as_array().expect("resources are listed") {
        assert_eq!(resource["error"]["code"], "not-a-file", "{resource}");
    }
    assert_eq!(sandbox.tables(), before);
}

#[test]
fn a_query_refuses_a_pipe_as_models_do() {
    let sandbox = Sandbox::with(&[("watershed.yaml", ""), ("models/good.sql", "SELECT 1 AS x")]);
    sandbox.run(0);
    pipe(&sandbox, "data/f.csv");
    for sql in ["FROM read_csv('data/f.csv')", "SELECT count(*) FROM 'data/*.csv'"] {
        let said = sandbox.call(&["query", sql]);
        assert_eq!(said.code, Some(1), "{}", said.stderr);
        assert!(said.stderr.contains("is a named pipe"), "{}", said.stderr);
    }
    let said = sandbox.call(&["query", "--timeout", "1s", "FROM read_csv('data/' || 'f.csv')"]);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
}

#[test]
fn a_model_that_waits_for_a_pipe_is_ended_by_its_time_limit_and_by_one_signal() {
    let sql = "SELECT * FROM read_csv('data/' || 'f.csv')";
    let sandbox = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/m.yaml",
            &format!("type: model\nmaterialize: true\ntimeout: 1s\nsql: {sql}\n"),
        ),
    ]);
    pipe(&sandbox, "data/f.csv");
    let run = sandbox.call(&["run", "--json"]);
    assert_eq!(
        run.json()["resources"][0]["error"]["code"],
        "timeout",
        "{}",
        run.stdout
    );
    sandbox.remove("models/m.yaml");
    sandbox.write("models/m.sql", &format!("-- @materialize: true\n{sql}"));
    let mut child = sandbox.start(&["run"]);
    // Opens once the engine has it open; with nothing written, its read never returns.
    let writer = open_for_writing(&sandbox.path().join("data/f.csv"));
    terminate(&child);
    let status = child.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(143));
    drop(writer);
}

#[test]
fn a_second_signal_ends_at_once_what_never_returns() {
    for command in ["run", "start"] {
        let sandbox = Sandbox::with(&[
            ("watershed.yaml", ""),
            (
                "init.sql",
                "CREATE OR REPLACE TABLE t AS SELECT * FROM read_csv('stuck.pipe')",
            ),
        ]);
        pipe(&sandbox, "stuck.pipe");
        let mut child = sandbox.start(&[command]);
        // Opens once the engine has it open; with nothing written, its read never returns.
        let writer = open_for_writing(&sandbox.path().join("stuck.pipe"));
        let begun = Instant::now();
        terminate(&child);
        terminate_until_gone(&mut child);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(5), "{command}: {took:?}");
        drop(writer);
    }
}

fn open_for_writing(path: &Path) -> fs::File {
    fs::File::options()
        .write(true)
        .open(path)
        .expect("the pipe can be opened")
}

fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let _ = kill_process(pid.expect("a child has a process id"), Signal::TERM);
}

/// Two signals that come at once may count as one, so the second is sent until it has worked.
fn terminate_until_gone(child: &mut Child) {
    loop {
        terminate(child);
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return assert_eq!(status.code(), Some(143));
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_source_is_shown_with_what_was_guessed_of_its_file() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/days.csv", "id;day\n1;02/06/2024\n2;03/06/2024\n"),
        (
            "sources/days.yaml",
            "type: source\nconnector: local_file\npath: data/days.csv\n",
        ),
        ("data/texts.csv", "a,'b'\nc,'d'\n"),
        (
            "sources/texts.yaml",
            "type: source\nconnector: local_file\npath: data/texts.csv\nheader: false\n",
        ),
        ("models/reader.sql", "SELECT * FROM days"),
    ]);
    project.expect_run(0, "the first run");
    let guessed = |name: &str| project.call(&["show", name, "--json"]).json()["guessed"].clone();
    assert_eq!(
        guessed("days"),
        serde_json::json!({
            "file": "data/days.csv",
            "options": {"delim": ";", "quote": "\"", "header": "true", "dateformat": "%d/%m/%Y"},
        })
    );
    assert_eq!(
        guessed("texts")["options"],
        serde_json::json!({"delim": ",", "quote": "'"}),
        "what is said is not guessed"
    );
    assert_eq!(guessed("reader"), serde_json::Value::Null);
    let said = project.call(&["show", "days"]);
    let line = "guessed of data/days.csv: dateformat \"%d/%m/%Y\", delim \";\", header true, quote \"\\\"\"";
    assert!(said.stderr.contains(line), "{said:?}");
    project.write("data/days.csv", "id,day\n1,2024-06-02\n");
    assert_eq!(
        guessed("days"),
        serde_json::Value::Null,
        "the rows are not of this file"
    );
}
