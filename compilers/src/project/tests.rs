use std::{cell::Cell, sync::Arc};

use super::*;
use crate::{
    file::FileEvent,
    resource::Kind,
    sql::{SqlError, SqlParser, Tree},
};

/// A parser without trees, which counts what it is asked.
#[derive(Default)]
struct Counting(Cell<usize>);

impl SqlParser for Counting {
    fn version(&self) -> &str {
        "counting 1"
    }

    fn parse(&self, statements: &[&str]) -> Vec<Result<Tree, SqlError>> {
        self.0.set(self.0.get() + statements.len());
        let none = |_: &&str| {
            Err(SqlError::NotSerialisable {
                message: "no trees here".into(),
            })
        };
        statements.iter().map(none).collect()
    }
}

fn written(path: &str, text: &str) -> FileEvent {
    FileEvent::Written {
        path: path.into(),
        content: Arc::from(text.as_bytes()),
    }
}

fn model(name: &str) -> ResourceKey {
    ResourceKey::new(Kind::Model, name)
}

fn chain(length: usize) -> Vec<FileEvent> {
    let mut events = vec![written("rill.yaml", "")];
    events.extend((0..length).map(|at| {
        let from = if at == 0 {
            "SELECT 1".to_owned()
        } else {
            format!("SELECT * FROM m{}", at - 1)
        };
        written(&format!("models/m{at}.sql"), &from)
    }));
    events
}

#[test]
fn only_texts_that_were_not_seen_are_parsed() {
    let parser = Counting::default();
    let mut project = Project::default();
    project.apply(chain(20), &parser);
    assert_eq!(parser.0.get(), 20);
    project.apply([written("models/m3.sql", "SELECT 3 AS x")], &parser);
    assert_eq!(parser.0.get(), 21);
    project.apply(chain(20), &parser);
    assert_eq!(parser.0.get(), 21, "an undone edit is known");

    let mut next = Project::default();
    next.import_cache(&project.export_cache().expect("something was learned"));
    next.apply(chain(20), &parser);
    assert_eq!(parser.0.get(), 21, "nor does the next process ask again");
    assert_eq!(next.export_cache(), None);
}

#[test]
fn an_edit_changes_itself_and_a_rename_its_readers() {
    let parser = Counting::default();
    let mut project = Project::default();
    project.apply(chain(20), &parser);
    let changes = project.apply([written("models/m3.sql", "SELECT 3 AS x")], &parser);
    assert_eq!(
        changes,
        Changes {
            changed: vec![model("m3")],
            ..Changes::default()
        }
    );

    let renamed = [
        FileEvent::Removed {
            path: "models/m3.sql".into(),
        },
        written("models/new.sql", "SELECT 3 AS x"),
    ];
    let changes = project.apply(renamed, &parser);
    assert_eq!(
        (changes.added, changes.removed),
        (vec![model("new")], vec![model("m3")])
    );
    assert_eq!(changes.changed, [model("m4")], "it no longer reads a model");
}

#[test]
fn a_variable_touches_those_that_read_it() {
    let parser = Counting::default();
    let mut project = Project::default();
    project.apply(
        [
            written("rill.yaml", "env: {x: 1}"),
            written("models/a.sql", "SELECT {{ .env.x }} AS x"),
            written("models/b.sql", "SELECT {{ .env.y }} AS y"),
            written("models/c.sql", "SELECT 1"),
        ],
        &parser,
    );
    let changes = project.apply([written(".env", "x=2\n")], &parser);
    assert_eq!(changes.changed, [model("a")]);
    let changes = project.apply([written("rill.yaml", "# moved\nenv: {x: 3, y: 4}")], &parser);
    assert_eq!(changes.changed, [model("b")], "`.env` wins over the manifest");
}

#[test]
fn a_comment_in_the_manifest_touches_nothing() {
    let parser = Counting::default();
    let mut project = Project::default();
    project.apply(chain(5), &parser);
    assert!(
        project
            .apply([written("rill.yaml", "# a comment\n")], &parser)
            .is_empty()
    );
    assert!(
        project
            .apply([written("README.txt", "no part of it")], &parser)
            .is_empty()
    );
}

#[test]
fn long_chains_and_large_rings_take_no_stack_and_little_time() {
    const LENGTH: usize = 3_000;
    let parser = Counting::default();
    let mut project = Project::default();
    project.apply(chain(LENGTH), &parser);
    assert_eq!(project.diagnostics(), []);
    let close = format!("SELECT * FROM m{}", LENGTH - 1);
    project.apply([written("models/m0.sql", &close)], &parser);
    assert_eq!(project.diagnostics().len(), LENGTH, "each member is told");
    project.apply([written("models/m0.sql", "SELECT 1")], &parser);
    assert_eq!(project.diagnostics(), []);
}

#[test]
fn a_project_without_files_is_not_to_be_trusted() {
    let mut project = Project::default();
    let changes = project.apply([], &Counting::default());
    assert!(changes.diagnostics);
    assert_eq!(project.trust(), Trust::NoFiles);
    project.apply([written("models/a.sql", "SELECT 1")], &Counting::default());
    assert_eq!(project.trust(), Trust::ManifestMissing);
}

#[test]
fn which_variables_are_not_set_is_told_when_the_manifest_was_read() {
    let codes = |project: &Project| -> Vec<&str> {
        let found = project.diagnostics();
        found.iter().map(|found| found.code.as_str()).collect()
    };
    let parser = Counting::default();
    let mut project = Project::default();
    let model = written(
        "models/a.sql",
        "SELECT {{ .env.late }} AS a, {{ .env.early }} AS b",
    );
    project.apply(
        [written("watershed.yaml", "env: {late: 1}\na: ["), model],
        &parser,
    );
    assert_eq!(codes(&project), ["yaml-syntax"]);
    project.apply([written("watershed.yaml", "env: {late: 1}\n")], &parser);
    assert_eq!(codes(&project), ["unknown-variable"]);
    project.apply([written("watershed.yaml", "env: {late: 1}\na: [")], &parser);
    assert_eq!(codes(&project), ["yaml-syntax"]);
}

#[test]
fn findings_about_defaults_stand_in_the_manifest_of_today() {
    const MANIFEST: &str = "models: {connector: nowhere}";
    let mut project = Project::default();
    project.apply(
        [
            written("watershed.yaml", MANIFEST),
            written("models/a.sql", "SELECT 1"),
        ],
        &Counting::default(),
    );
    let gone = FileEvent::Removed {
        path: "watershed.yaml".into(),
    };
    project.apply([written("rill.yaml", MANIFEST), gone], &Counting::default());
    let paths: Vec<String> = project.diagnostics().iter().map(|one| one.path.clone()).collect();
    assert_eq!(paths, ["rill.yaml"]);
}

#[test]
fn a_manifest_is_missed_unless_not_all_files_were_listed() {
    let missed = |count: usize| {
        let mut project = Project::default();
        let files = (0..count).map(|at| written(&format!("models/m{at}.sql"), ""));
        project.apply(files, &Counting::default());
        let codes = project.diagnostics().iter().map(|one| one.code);
        codes.filter(|code| *code == crate::Code::ManifestMissing).count()
    };
    assert_eq!((missed(1), missed(Project::MAX_FILES + 1)), (1, 0));
}
