//! Two models that ask for one table: one has it, in whatever order their files came, and no rows are lost.

use crate::sandbox::Sandbox;

const FIRST: &str = "type: model\nmaterialize: true\nsql: SELECT 1 AS x\noutput: {table: shared}\n";
const SECOND: &str = "type: model\nmaterialize: true\nsql: SELECT 2 AS x\noutput: {table: shared}\n";

/// The findings of a run, each with its place, and the rows of the table.
fn ends_with_the_first(project: &Sandbox, story: &str) {
    let said = project.call(&["run", "--json"]);
    assert_eq!(said.code, Some(1), "{story}: {}", said.stderr);
    let document = said.json();
    let found = &document["diagnostics"][0];
    assert_eq!(
        (&found["code"], &found["path"], &found["line"]),
        (&"output-shared".into(), &"models/b.yaml".into(), &4.into()),
        "{story}: {document}"
    );
    let health = |at: usize| document["resources"][at]["health"].clone();
    assert_eq!((health(0), health(1)), ("ok".into(), "failed".into()), "{story}");
    let rows = project.call(&["query", "FROM shared", "--json"]).json();
    assert_eq!(rows["rows"][0][0], 1, "{story}: {rows}");
}

#[test]
fn the_second_of_two_models_with_one_table_is_refused_in_the_first_run() {
    let project = Sandbox::with(&[
        ("watershed.yaml", ""),
        ("models/a.yaml", FIRST),
        ("models/b.yaml", SECOND),
    ]);
    ends_with_the_first(&project, "both at once");
    ends_with_the_first(&project, "again");
}

#[test]
fn the_table_goes_to_the_first_model_also_when_its_file_comes_later_and_back_when_it_goes() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/b.yaml", SECOND)]);
    project.run(0);
    project.write("models/a.yaml", FIRST);
    ends_with_the_first(&project, "the first came later");
    project.remove("models/a.yaml");
    project.run(0);
    let rows = project.call(&["query", "FROM shared", "--json"]).json();
    assert_eq!(rows["rows"], serde_json::json!([[2]]), "{rows}");
    assert!(project.run(0).is_empty(), "nothing is left to do");
}

#[test]
fn a_model_whose_file_is_broken_keeps_its_table_from_another_one() {
    let project = Sandbox::with(&[("watershed.yaml", ""), ("models/a.yaml", FIRST)]);
    project.run(0);
    project.edit("models/a.yaml", "SELECT 1", "SELEC 1");
    project.write("models/b.yaml", SECOND);
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("error[output-shared]"), "{}", said.stderr);
    let rows = project.call(&["query", "FROM shared", "--json"]).json();
    assert_eq!(rows["rows"][0][0], 1, "{rows}");
}
