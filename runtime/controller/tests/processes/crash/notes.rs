//! Notes of writers, and their comparison with a catalog.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use watershed_controller::Resource;

use crate::task::Task;

/// Resources by name, each with the text that it was declared with.
pub(super) type Model = BTreeMap<String, String>;

/// A part of one edit or batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    /// Creates or updates the named resource with a text.
    Put(String, String),
    /// Renames a resource from the first name to the second.
    Move(String, String),
    /// Deletes the named resource.
    Remove(String),
}

/// A line of a writer's notes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    /// The writer is about to make these changes, as one edit or batch.
    Begin(Vec<Step>),
    /// The changes were acknowledged.
    Acknowledged,
    /// The changes were refused, and nothing has changed.
    Refused,
}

/// Notes of one writer, as a file.
#[derive(Debug)]
pub(super) struct Notebook(File);

impl Notebook {
    pub(super) fn open(folder: &Path, writer: &str) -> Self {
        let path = folder.join(format!("{writer}.notes"));
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self(file.expect("the notes can be written"))
    }

    /// Appends a line, which is on disk when this returns.
    pub(super) fn note(&mut self, line: &Line) {
        let mut text = serde_json::to_string(line).expect("lines have a text");
        text.push('\n');
        self.0
            .write_all(text.as_bytes())
            .expect("the notes can be written");
        self.0.sync_data().expect("the notes reach the disk");
    }
}

/// Notes of all writers, by writer. Each writer uses resource names of its own.
#[derive(Debug)]
pub(super) struct Notes {
    writers: BTreeMap<String, Vec<Line>>,
}

impl Notes {
    pub(super) fn read(folder: &Path) -> Self {
        let mut writers = BTreeMap::new();
        for entry in fs::read_dir(folder).expect("the folder of notes") {
            let path = entry.expect("an entry of the folder").path();
            if path.extension().is_none_or(|extension| extension != "notes") {
                continue;
            }
            let text = fs::read_to_string(&path).expect("the notes can be read");
            // A line that was cut short belongs to what was never begun.
            let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
            let lines = lines.map(|line| serde_json::from_str(line).expect("a line of notes"));
            let writer = path.file_stem().expect("a name").to_string_lossy().into_owned();
            writers.insert(writer, lines.collect());
        }
        Self { writers }
    }

    pub(super) fn acknowledged(&self) -> usize {
        let lines = self.writers.values().flatten();
        lines.filter(|line| matches!(line, Line::Acknowledged)).count()
    }

    /// Checks that the catalog holds the previous resources with all acknowledged changes, and unacknowledged batches
    /// whole or not at all. Returns the resources found.
    pub(super) fn compare(&self, before: &Model, found: &Model, story: &str) -> Model {
        let mut checked = 0;
        let mut all: std::collections::BTreeSet<&str> = self.writers.keys().map(String::as_str).collect();
        all.extend(before.keys().map(|name| owner(name)));
        for writer in all {
            let (before, found) = (part(before, writer), part(found, writer));
            checked += found.len();
            let (certain, possible) = self.ends(&before, writer);
            let agrees = found == certain || possible.as_ref().is_some_and(|possible| found == *possible);
            assert!(
                agrees,
                "{story}: writer {writer} found {found:?}\nacknowledged {certain:?}\nor {possible:?}"
            );
        }
        assert_eq!(
            checked,
            found.len(),
            "{story}: resources that nobody wrote: {found:?}"
        );
        found.clone()
    }

    /// Returns the resources that a writer must have, and those that it may have instead.
    fn ends(&self, before: &Model, writer: &str) -> (Model, Option<Model>) {
        let (mut certain, mut pending) = (before.clone(), None);
        for line in self.writers.get(writer).into_iter().flatten() {
            match line {
                Line::Begin(steps) => pending = Some(steps),
                Line::Acknowledged => apply(&mut certain, pending.take().expect("it was begun")),
                Line::Refused => pending = None,
            }
        }
        let possible = pending.map(|steps| {
            let mut possible = certain.clone();
            apply(&mut possible, steps);
            possible
        });
        (certain, possible)
    }
}

/// Returns the writer whose resource has this name.
fn owner(name: &str) -> &str {
    name.split_once('-').map_or(name, |(writer, _)| writer)
}

fn part(model: &Model, writer: &str) -> Model {
    let mine = model.iter().filter(|(name, _)| owner(name) == writer);
    mine.map(|(name, text)| (name.clone(), text.clone())).collect()
}

pub(super) fn apply(model: &mut Model, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Put(name, text) => drop(model.insert(name.clone(), text.clone())),
            Step::Move(from, to) => {
                let text = model.remove(from).expect("only what is there is renamed");
                model.insert(to.clone(), text);
            }
            Step::Remove(name) => drop(model.remove(name)),
        }
    }
}

/// Returns the text that a resource is to be built with.
pub(super) fn text(resource: &Resource) -> String {
    match resource.spec::<Task>().expect("its spec can be read") {
        Task::Build(text) => text,
        other => panic!("{} is {other:?}", resource.key()),
    }
}
