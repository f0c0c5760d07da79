//! Projects with their expected resources and findings: `testdata/compilers/{ok,err}/NAME.txt` with `NAME.expected`
//! beside it. `WATERSHED_BLESS=1` writes the expected files anew; their difference is to be reviewed like code.

use std::{fs, path::PathBuf};

use crate::{case::Case, engine::Engine, report::report};
use watershed_compilers::{Project, Severity};

fn cases(folder: &str) -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata/compilers")
        .join(folder);
    let mut paths: Vec<_> = fs::read_dir(root)
        .expect("the folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    paths.sort();
    paths
}

/// Compares each case with what is expected; answers each one's name and whether it has an error.
fn check(folder: &str) -> Vec<(String, bool)> {
    let bless = std::env::var_os("WATERSHED_BLESS").is_some();
    let engine = Engine::new();
    let mut wrong = Vec::new();
    let mut seen = Vec::new();
    for path in cases(folder) {
        let case = Case::read(&fs::read_to_string(&path).expect("a case"));
        let mut project = Project::new(case.options.clone());
        project.apply(case.events(), &engine);
        let found = report(&project);
        let expected_path = path.with_extension("expected");
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if bless {
            fs::write(&expected_path, &found).expect("writes");
        } else if fs::read_to_string(&expected_path).ok().as_deref() != Some(&*found) {
            wrong.push(format!("== {name}\n{found}"));
        }
        seen.push((
            name,
            project
                .diagnostics()
                .iter()
                .any(|one| one.severity == Severity::Error),
        ));
    }
    assert!(
        wrong.is_empty(),
        "{} cases differ; WATERSHED_BLESS=1 rewrites them\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    seen
}

#[test]
fn projects_without_mistakes_compile_to_what_is_expected() {
    for (name, has_error) in check("ok") {
        assert!(!has_error, "{name} has an error");
    }
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (name, has_error) in check("err") {
        assert!(has_error, "{name} has no error");
    }
}
