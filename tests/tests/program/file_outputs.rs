//! Models whose rows are written to files: whole or not at all, only when they changed, and never over what is somebody's.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::sandbox::Sandbox;

const MODEL: &str = "type: model\nsql: SELECT range AS day, 'x' AS name FROM range(2)\n\
                     output: {connector: local_file, path: exports/days.csv}\n";
const ROWS: &str = "day,name\n0,x\n1,x\n";
const FILE: &str = "exports/days.csv";

fn project(model: &str) -> Sandbox {
    Sandbox::with(&[("watershed.yaml", ""), ("models/days.yaml", model)])
}

impl Sandbox {
    fn file(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap_or_default()
    }

    fn time(&self, path: &str) -> SystemTime {
        let found = fs::metadata(self.file(path)).expect("the file is there");
        found.modified().expect("the file has a time")
    }

    /// All that stands in a folder.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.file(folder)).expect("the folder can be listed");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry.expect("a folder's entry can be read");
            entry.file_name().to_string_lossy().into_owned()
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }
}

#[test]
fn rows_are_written_when_they_changed_and_the_file_goes_with_its_model() {
    let project = project(MODEL);
    project.run(0);
    assert_eq!(project.text(FILE), ROWS);
    let time = project.time(FILE);
    assert!(project.run(0).is_empty(), "nothing is left to do");
    assert_eq!(project.time(FILE), time, "nothing was written");
    let status = project.call(&["status", "--json"]).json();
    assert_eq!(status["resources"][0]["result"]["file"], FILE);
    let rows = project
        .call(&["query", "SELECT count(*) AS n FROM days", "--json"])
        .json();
    assert_eq!(rows["rows"][0][0], 2, "its table can be read too");

    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(project.text(FILE), format!("{ROWS}2,x\n"));
    project.edit(
        "models/days.yaml",
        "sql:",
        "tests: [{name: early, assert: day < 2}]\nsql:",
    );
    project.edit("models/days.yaml", "range(3)", "range(4)");
    project.run(1);
    assert_eq!(
        project.text(FILE),
        format!("{ROWS}2,x\n"),
        "a failing test keeps the file"
    );
    project.edit("models/days.yaml", "range(4)", "range(2)");
    project.run(0);
    assert_eq!(project.text(FILE), ROWS);

    assert_eq!(project.call(&["doctor"]).code, Some(0));
    project.remove(FILE);
    let doctor = project.call(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    let missing = "\"exports/days.csv\" of model/days is missing";
    assert!(doctor.stdout.contains(missing), "{}", doctor.stdout);
    assert!(
        doctor.stdout.contains("`watershed run` writes missing files"),
        "{}",
        doctor.stdout
    );
    let plan = project.call(&["plan"]).stdout;
    assert!(
        plan.contains("its rows are written to `exports/days.csv`"),
        "{plan}"
    );
    project.run(0);
    assert_eq!(project.text(FILE), ROWS, "a file that was lost is written again");
    project.edit("models/days.yaml", FILE, "exports/other.csv");
    project.run(0);
    assert_eq!(project.names("exports"), ["other.csv"], "the file has moved");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(project.names("exports"), [""; 0]);
}

#[test]
fn a_plan_knows_the_path_that_a_template_makes() {
    let model = MODEL.replace(FILE, "'exports/{{ .env.part }}.csv'");
    let project = project(&model);
    project.write("watershed.yaml", "env: {part: one}\n");
    project.run(0);
    assert_eq!(project.text("exports/one.csv"), ROWS);
    let plan = project.call(&["plan"]).stdout;
    assert!(!plan.contains("are written to"), "it stands there: {plan}");
    project.remove("exports/one.csv");
    let plan = project.call(&["plan"]).stdout;
    assert!(
        plan.contains("its rows are written to `exports/one.csv`"),
        "{plan}"
    );
    project.write("watershed.yaml", "env: {part: two}\n");
    project.run(0);
    assert_eq!(project.names("exports"), ["two.csv"]);
}

#[test]
fn a_file_that_a_person_made_or_changed_is_never_written_over() {
    let project = project(MODEL);
    project.write(FILE, "mine\n");
    let said = project.call(&["run"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("error[export-taken]"), "{}", said.stderr);
    assert!(said.stderr.contains("models/days.yaml:3:"), "{}", said.stderr);
    assert_eq!(project.text(FILE), "mine\n");
    assert_eq!(
        project.names("exports"),
        ["days.csv"],
        "nothing is left beside it"
    );

    project.remove(FILE);
    project.run(0);
    project.write(FILE, "day,name\nedited\n");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(1);
    assert_eq!(project.text(FILE), "day,name\nedited\n");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    project.run(0);
    assert_eq!(
        project.text(FILE),
        "day,name\nedited\n",
        "it is not removed either"
    );
}

#[test]
fn a_file_with_the_very_rows_is_known_again_after_the_loss_of_the_catalog() {
    let project = project(MODEL);
    project.run(0);
    let time = project.time(FILE);
    project.forget();
    project.run(0);
    assert_eq!(project.time(FILE), time, "nothing was written");
    project.edit("models/days.yaml", "range(2)", "range(3)");
    project.run(0);
    assert_eq!(
        project.text(FILE),
        format!("{ROWS}2,x\n"),
        "it is the model's own"
    );
}

#[test]
fn a_folder_of_partitions_changes_as_one() {
    let model = "type: model\nsql: SELECT range % 2 AS part, range AS x FROM range(4)\n\
                 output: {connector: local_file, path: exports/parts, format: parquet, partition_by: part}\n";
    let project = project(model);
    project.run(0);
    assert_eq!(project.names("exports"), ["parts"]);
    assert_eq!(project.names("exports/parts"), ["part=0", "part=1"]);
    let sum = "SELECT sum(x)::INTEGER AS x FROM read_parquet('exports/parts/*/*.parquet')";
    let rows = |project: &Sandbox| project.call(&["query", sum, "--json"]).json()["rows"][0][0].clone();
    assert_eq!(rows(&project), 6);
    project.edit("models/days.yaml", "range % 2", "range % 3");
    project.run(0);
    assert_eq!(project.names("exports/parts"), ["part=0", "part=1", "part=2"]);
    assert_eq!(
        (rows(&project), project.names("exports")),
        (6.into(), vec!["parts".into()])
    );
    assert!(project.run(0).is_empty());
    project.write("exports/parts/notes.txt", "mine");
    project.edit("models/days.yaml", "range % 3", "range % 2");
    project.run(1);
    assert_eq!(project.text("exports/parts/notes.txt"), "mine");
    project.remove("exports/parts/notes.txt");
    project.run(0);
    assert_eq!(project.names("exports/parts"), ["part=0", "part=1"]);
}

#[test]
fn lines_of_json_and_other_forms_are_written_as_asked_for() {
    let project = project(&MODEL.replace("days.csv", "days.jsonl"));
    project.run(0);
    assert_eq!(
        project.text("exports/days.jsonl"),
        "{\"day\":0,\"name\":\"x\"}\n{\"day\":1,\"name\":\"x\"}\n"
    );
    let header = MODEL.replace("days.csv", "days.csv, header: false, delimiter: ';'");
    project.write("models/days.yaml", &header);
    project.run(0);
    assert_eq!(project.text(FILE), "0;x\n1;x\n");
    assert_eq!(project.names("exports"), ["days.csv"]);
}

#[test]
fn a_confined_project_writes_nothing_outside_of_its_folder() {
    let outside = tempfile::tempdir().expect("a folder can be made");
    let file = outside.path().join("days.csv");
    let project = project(&MODEL.replace(FILE, &file.display().to_string()));
    let said = project.call(&["run", "--sandbox"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("error[outside-sandbox]"), "{}", said.stderr);
    assert!(!file.exists());
    project.run(0);
    assert!(file.exists(), "without a sandbox it may");
    project.remove("models/days.yaml");
    project.write("models/else.sql", "SELECT 1 AS x");
    let said = project.call(&["run", "--sandbox"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(file.exists(), "a confined run removes nothing out there");
}

#[test]
fn dead_at_any_point_a_file_is_that_of_before_or_the_new_one() {
    let project = project(MODEL);
    project.write(
        "models/parts.yaml",
        "type: model\nsql: SELECT x % 2 AS part, x FROM (SELECT range AS x FROM range(4))\n\
         output: {connector: local_file, path: exports/parts, format: csv, partition_by: [part]}\n",
    );
    let points: Vec<&str> = watershed_controller::store::CRASH_POINTS
        .iter()
        .chain(watershed_drivers::CRASH_POINTS)
        .copied()
        .filter(|point| {
            ["catalog", "build", "place"]
                .iter()
                .any(|part| point.contains(part))
        })
        .collect();
    let mut died = Vec::new();
    for edit in [false, true] {
        if edit {
            project.run(0);
            project.edit("models/days.yaml", "range(2)", "range(3)");
            project.edit("models/parts.yaml", "x % 2", "x % 3");
        }
        let (before, after) = match edit {
            false => (String::new(), ROWS.to_owned()),
            true => (ROWS.to_owned(), format!("{ROWS}2,x\n")),
        };
        let parts: [&[&str]; 2] = [&["part=0", "part=1"], &["part=0", "part=1", "part=2"]];
        for point in &points {
            for visit in 0..3 {
                let copy = project.copied();
                if !copy.dies_at(point, visit) {
                    break;
                }
                died.push(*point);
                let story = format!("{point}, visit {visit}, edit {edit}");
                let text = copy.text(FILE);
                assert!(text == before || text == after, "{story}: {text}");
                if copy.file("exports/parts").exists() {
                    let names = copy.names("exports/parts");
                    assert!(parts.iter().any(|parts| names == *parts), "{story}: {names:?}");
                }
                copy.expect_run(0, &story);
                assert_eq!(copy.text(FILE), after, "{story}");
                assert_eq!(copy.names("exports/parts"), parts[usize::from(edit)], "{story}");
                assert_eq!(copy.names("exports"), ["days.csv", "parts"], "{story}");
                assert!(
                    copy.expect_run(0, &story).is_empty(),
                    "{story}: something is left to do"
                );
            }
        }
    }
    for point in ["drivers::place::before", "drivers::place::after"] {
        let deaths = died.iter().filter(|died| **died == point).count();
        assert!(deaths >= 4, "{point} was passed {deaths} times");
    }
}
