//! `--sample`: a run over a part of every source, with a state of its own.

use crate::sandbox::Sandbox;

/// Ten days of a source, a model over it, and a file that its rows are written to.
fn project() -> Sandbox {
    let rows: String = (1..=10).map(|day| format!("2026-01-{day:02},{day}\n")).collect();
    Sandbox::with(&[
        ("watershed.yaml", ""),
        ("data/days.csv", &format!("day,n\n{rows}")),
        (
            "sources/days.yaml",
            "connector: local_file\npath: data/days.csv\n",
        ),
        (
            "models/total.yaml",
            "type: model\nsql: SELECT count(*) AS rows, max(n) AS last FROM days\n\
             output: {connector: local_file, path: exports/total.csv}\n",
        ),
    ])
}

fn total(project: &Sandbox, arguments: &[&str]) -> serde_json::Value {
    let mut all = vec!["query", "SELECT rows, last FROM total", "--json"];
    all.extend(arguments);
    project.call(&all).json()["rows"][0].clone()
}

#[test]
fn a_sample_has_few_rows_and_touches_neither_outputs_nor_files() {
    let project = project();
    let said = project.call(&["run", "--sample", "3"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(total(&project, &["--sample", "3"])[0], 3);
    assert!(
        !project.path().join("exports").exists(),
        "a sample writes no files"
    );
    assert!(
        !project.engine_file().exists(),
        "the outputs themselves are not built"
    );

    project.run(0);
    assert_eq!(total(&project, &[]), serde_json::json!([10, 10]));
    let again = project.call(&["run", "--sample", "3"]);
    assert!(again.stdout.contains("nothing to do"), "{}", again.stdout);
    assert_eq!(total(&project, &["--sample", "3"])[0], 3);
}

#[test]
fn a_sample_by_time_has_the_last_days_of_the_data() {
    let project = project();
    let said = project.call(&["run", "--sample", "P3D"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(total(&project, &["--sample", "P3D"]), serde_json::json!([3, 10]));
    let refused = project.call(&["run", "--sample", "few"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}
