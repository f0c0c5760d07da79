//! The sample projects of this repository.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use watershed_compilers::{
    FileEvent, Health, Options, Project, Severity, Trust,
    diagnostics::{Colour, draw},
    is_relevant,
};

use crate::engine::Engine;

/// Compiles a folder as it is on disk.
fn compiled(folder: &str) -> Project {
    let projects = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/projects");
    compiled_at(&projects.join(folder))
}

fn compiled_at(root: &Path) -> Project {
    let mut events = Vec::new();
    collect(root, root, &mut events);
    let mut project = Project::new(Options::default());
    project.apply(events, &Engine::new());
    project
}

fn collect(root: &Path, folder: &Path, events: &mut Vec<FileEvent>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let relative = path
            .strip_prefix(root)
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && !relative.starts_with('.') {
            collect(root, &path, events);
        } else if path.is_file() && is_relevant(&relative) {
            let content = Arc::from(fs::read(&path).expect("a file"));
            events.push(FileEvent::Written {
                path: relative,
                content,
            });
        }
    }
}

#[test]
fn the_gallery_of_boards_compiles() {
    let project = compiled("gallery");
    // Its older theme has the older form, which is told.
    let worst = |found: &watershed_compilers::Diagnostic| found.severity == Severity::Error;
    assert!(
        !project.diagnostics().iter().any(worst),
        "{:?}",
        project.diagnostics()
    );
    assert!(project.resources().all(|resource| resource.health == Health::Ok));
}

#[test]
fn the_flights_project_compiles_without_findings() {
    let project = compiled("flights");
    assert_eq!(project.trust(), Trust::Whole);
    assert_eq!(project.diagnostics(), []);
    assert!(project.resources().count() >= 17);
    assert!(project.resources().all(|resource| resource.health == Health::Ok));
    let readers = project
        .resources()
        .filter(|resource| !resource.refs.is_empty())
        .count();
    assert!(readers >= 12, "{readers} models read others");
}

#[test]
fn each_mistake_of_the_broken_project_is_found_in_its_own_file() {
    let project = compiled("broken");
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for diagnostic in project.diagnostics() {
        found
            .entry(&diagnostic.path)
            .or_default()
            .push(diagnostic.code.as_str());
    }
    assert!(found.len() >= 25, "{found:?}");
    let good = project.paths().filter(|path| path.starts_with("models/good/"));
    assert!(good.into_iter().all(|path| !found.contains_key(path)));
}

/// Projects of other people: `WATERSHED_PROJECTS=FOLDER` names a folder whose subfolders are projects.
#[test]
#[ignore = "needs projects that are not part of the repository"]
#[allow(clippy::print_stdout, reason = "the findings are what the test is run for")]
fn projects_of_other_people_compile_without_errors() {
    let folder = std::env::var("WATERSHED_PROJECTS").expect("WATERSHED_PROJECTS");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let root = entry.expect("an entry").path();
        if !root.join("rill.yaml").is_file() {
            continue;
        }
        let project = compiled_at(&root);
        let count = project.resources().count();
        let told = project.diagnostics().iter().map(|one| {
            let source = project.source(&one.path);
            draw(one, source.as_deref(), Colour::Never)
        });
        let told = told.collect::<Vec<_>>();
        println!("== {}: {count} resources\n{}", root.display(), told.join("\n"));
        if project
            .diagnostics()
            .iter()
            .any(|one| one.severity == Severity::Error)
        {
            wrong.push(root);
        }
    }
    assert!(wrong.is_empty(), "errors in {wrong:?}");
}
