//! A run over a part of every source: in a state of its own, which touches nothing else.

use crate::sandbox::Sandbox;

#[test]
fn a_sample_of_the_sources_has_tables_of_its_own_and_writes_no_files() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        (
            "data/days.csv",
            "day,n\n2024-01-01,1\n2024-01-02,2\n2024-01-09,3\n",
        ),
        (
            "sources/days.yaml",
            "type: source\nconnector: local_file\npath: data/days.csv\n",
        ),
        (
            "models/counted.yaml",
            "type: model\nsql: SELECT count(*)::INTEGER AS n FROM days\n\
             output: {connector: local_file, path: exports/counted.csv}\n",
        ),
    ]);
    let count = |sample: &[&str]| {
        let run = project.call(&[&["run"], sample].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let asked = project.call(&[&["query", "FROM counted", "--json"], sample].concat());
        asked.json()["rows"][0][0].clone()
    };
    assert_eq!(count(&["--sample", "2"]), 2);
    assert_eq!(count(&["--sample", "P3D"]), 1);
    assert!(
        !project.path().join("exports").exists(),
        "a sample writes no files"
    );
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["--sample", "2"]), 2, "each has a state of its own");
    assert_eq!(project.call(&["run", "--sample", "few"]).code, Some(2));
}
