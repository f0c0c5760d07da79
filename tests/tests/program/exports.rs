//! Answers written into files: `query --out` and `show --out`.

use std::fs;

use watershed_drivers::duckdb::ByHand;

use crate::going::Going;
use crate::sandbox::Sandbox;

fn project() -> Sandbox {
    Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "models/days.sql",
            "-- @materialize: true\nSELECT i AS n, date '2024-01-01' + i::INTEGER AS day FROM range(2000) t(i)",
        ),
    ])
}

/// As a notebook reads a file.
fn read(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let path = sandbox.path().join(file);
    ByHand::in_memory().lines(&format!(
        "SELECT count(*), min(n), max(day)::DATE FROM '{}'",
        path.display()
    ))
}

#[test]
fn rows_are_written_whole_whether_or_not_a_process_owns_the_folder() {
    let sandbox = project();
    sandbox.run(0);
    let mut start = None;
    for turn in ["alone", "owned"] {
        for form in ["csv", "parquet"] {
            let file = format!("{turn}.{form}");
            let said = sandbox.call(&["show", "days", "--out", &file, "--json"]);
            assert_eq!(said.code, Some(0), "{file}: {}", said.stderr);
            let document = said.json();
            assert_eq!(document["schema"], "watershed.export/1");
            assert_eq!(document["rows"], 2000, "all rows, unless a limit is asked for");
            let path = sandbox.path().join(&file).canonicalize().expect("it is there");
            let told = document["file"].as_str().map(std::path::Path::new);
            assert_eq!(
                told.and_then(|told| told.canonicalize().ok()).as_ref(),
                Some(&path)
            );
            assert_eq!(read(&sandbox, &file), ["2000|0|2029-06-22"], "{file}");
        }
        let file = format!("some-{turn}.csv");
        let sql = "SELECT n FROM days ORDER BY n DESC";
        let said = sandbox.call(&["query", sql, "--out", &file, "--limit", "2"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        assert!(said.stdout.starts_with("2 rows written to "), "{}", said.stdout);
        let text = fs::read_to_string(sandbox.path().join(&file)).expect("it is there");
        assert_eq!(text, "n\n1999\n1998\n");
        start = Some(start.unwrap_or_else(|| Going::settled(&sandbox)));
    }
    start.map(Going::stop);
}

#[test]
fn a_csv_file_has_the_rows_that_are_printed_as_csv() {
    let sandbox = project();
    sandbox.run(0);
    let sql = "SELECT 1.50 AS price, 'a,\"b\"' AS text, NULL AS nothing, true AS yes, TIMESTAMP '2024-01-02 03:04:05' AS at";
    let printed = sandbox.call(&["query", sql, "--format", "csv"]).stdout;
    let said = sandbox.call(&["query", sql, "--out", "a.csv"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let written = fs::read_to_string(sandbox.path().join("a.csv")).expect("it is there");
    assert_eq!(written, printed);
}

#[test]
fn a_file_that_is_there_is_replaced_only_by_force() {
    let sandbox = project();
    sandbox.run(0);
    sandbox.write("mine.csv", "mine");
    let said = sandbox.call(&["show", "days", "--out", "mine.csv"]);
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    assert!(said.stderr.contains("--force"), "{}", said.stderr);
    let kept = fs::read_to_string(sandbox.path().join("mine.csv")).expect("it is there");
    assert_eq!(kept, "mine");
    let said = sandbox.call(&["show", "days", "--out", "mine.csv", "--force"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(read(&sandbox, "mine.csv"), ["2000|0|2029-06-22"]);
}

#[test]
fn what_can_t_be_written_is_said_with_the_right_code_and_leaves_nothing() {
    let sandbox = project();
    sandbox.run(0);
    for (arguments, code, says) in [
        (["show", "days", "--out", "a.txt"], 2, ".parquet"),
        (["show", "days", "--out", "-"], 2, ".parquet"),
        (["show", "nothing", "--out", "a.csv"], 2, "nothing"),
        (["query", "SELECT x FROM days", "--out", "a.csv"], 1, "\"x\""),
        (["query", "DROP TABLE days", "--out", "a.csv"], 1, "read"),
        (["show", "days", "--out", "none/a.csv"], 3, "none/a.csv"),
    ] {
        let said = sandbox.call(&arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.stderr);
        assert!(said.stderr.contains(says), "{arguments:?}: {}", said.stderr);
    }
    for (format, hint) in [
        ("csv", "`--out a.csv` alone writes CSV"),
        ("jsonl", "`--format jsonl > FILE`"),
    ] {
        let said = sandbox.call(&["show", "days", "--out", "a.parquet", "--format", format]);
        let refusal = format!("`--format {format}` does not fit `--out`: the end of the file's name says");
        assert_eq!(said.code, Some(2), "{}", said.stderr);
        assert!(
            said.stderr.contains(&refusal) && said.stderr.contains(hint),
            "{}",
            said.stderr
        );
    }
    let left = fs::read_dir(sandbox.path()).expect("the folder can be listed");
    let names = left.map(|entry| entry.expect("an entry").file_name().into_string());
    let is_new = |name: &String| name.ends_with(".csv") || name.ends_with(".part");
    let new: Vec<String> = names.map(|name| name.expect("UTF-8")).filter(is_new).collect();
    assert!(new.is_empty(), "{new:?}");
}
