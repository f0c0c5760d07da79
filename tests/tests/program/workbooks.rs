//! Workbooks as sources: all that a pattern matches, and all of a sheet.

use serde_json::json;

use crate::connected::has_extension;
use crate::sandbox::Sandbox;

#[test]
fn all_workbooks_of_a_pattern_are_read_with_the_rows_after_an_empty_one() {
    if !has_extension("excel") {
        return;
    }
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "sources/months.yaml",
            "type: source\nconnector: local_file\npath: data/m_*.xlsx\n",
        ),
        (
            "sources/part.yaml",
            "type: source\nconnector: local_file\npath: data/m_1.xlsx\nstop_at_empty: true\n",
        ),
    ])
    .extended();
    std::fs::create_dir_all(project.path().join("data")).expect("a folder");
    let write = |file: &str, rows: &str| {
        let sql = format!("SELECT * FROM (VALUES {rows}) AS t(id, name)");
        let said = project.call(&["query", &sql, "--out", &format!("data/{file}")]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    };
    project.call(&["run"]);
    // The engine's message does not say which one it can't read.
    project.write("data/m_1.xlsx", "no workbook");
    let refused = project.call(&["run"]);
    assert_eq!(refused.code, Some(1));
    let said = "Failed to open zip for reading (in \"data/m_1.xlsx\")";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    project.remove("data/m_1.xlsx");
    write("m_1.xlsx", "(1, 'a'), (NULL, NULL), (2, 'b')");
    write("m_2.xlsx", "(3, 'c'), (NULL, 'd')");
    project.run(0);
    let rows = "SELECT id, name FROM months ORDER BY name";
    let all = json!([[1.0, "a"], [2.0, "b"], [3.0, "c"], [null, "d"]]);
    assert_eq!(project.query(rows)["rows"], all);
    let said = "SELECT name FROM part";
    assert_eq!(project.query(said)["rows"], json!([["a"]]));
    write("m_[3].xlsx", "(4, 'e')");
    project.run(0);
    let last = "SELECT id, name FROM months WHERE name = 'e'";
    assert_eq!(project.query(last)["rows"], json!([[4.0, "e"]]));
    // SQL means what the engine makes of it, so several are refused, and the good table stays.
    project.write(
        "models/own.sql",
        "-- @materialize: true\nSELECT * FROM read_xlsx('data/m_1*.xlsx')",
    );
    project.run(0);
    project.edit("models/own.sql", "m_1*", "m_*");
    let refused = project.call(&["run"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("3 workbooks"), "{}", refused.stderr);
    assert_eq!(project.query("SELECT count(*) FROM own")["rows"], json!([[1]]));
}
