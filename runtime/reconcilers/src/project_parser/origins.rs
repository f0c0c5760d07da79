//! The files behind each edit, shown to people who ask why something was built.
//!
//! A process that has looked at the folder before knows what changed since. The first look of a process takes what
//! was written after the last parse, is new, or is gone. So an origin is what is known, and may be missing.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use watershed_compilers::FileEvent;
use watershed_core::{Batch, Change, Edit, Row, Target, Uid};

/// The largest number of files that an origin names.
const NAMED: usize = 3;

/// The files changed since the last applied parse, each with its author if a caller has written it.
#[derive(Debug, Default)]
pub(super) struct Changed(BTreeMap<String, Option<Arc<str>>>);

impl Changed {
    /// Adds the path of each event to the changed files.
    pub(super) fn add(&mut self, events: &[FileEvent]) {
        for event in events {
            let (FileEvent::Written { path, .. }
            | FileEvent::Removed { path }
            | FileEvent::Unreadable { path, .. }) = event;
            self.0.entry(path.clone()).or_default();
        }
    }

    /// Sets the authors of the changed files, where there are new ones.
    pub(super) fn name_authors(&mut self, mut author: impl FnMut(&str) -> Option<Arc<str>>) {
        for (path, known) in &mut self.0 {
            if let Some(author) = author(path) {
                *known = Some(author);
            }
        }
    }

    /// Drops the files, after a first look that finds everything, which are unchanged since the last parse. `is_newer`
    /// returns true for files written after that.
    pub(super) fn forget_old(&mut self, rows: &[&Row], is_newer: impl Fn(&str) -> bool) {
        let declared: BTreeSet<&str> = rows.iter().flat_map(|row| paths_of(row)).collect();
        let gone = declared.iter().filter(|path| !self.0.contains_key(**path));
        let gone: Vec<String> = gone.map(|path| (*path).to_owned()).collect();
        self.0
            .retain(|path, _| is_newer(path) || !declared.contains(path.as_str()));
        self.0.extend(gone.into_iter().map(|path| (path, None)));
    }

    /// Clears the changes after a parse was applied.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Sets the origin of each edit: the changed files of its resource, or else all changed files.
    pub(super) fn say(&self, batch: Batch, rows: &[&Row]) -> Batch {
        let rows: HashMap<Uid, &Row> = rows.iter().map(|row| (row.uid, *row)).collect();
        let any = self.named(self.0.keys().map(String::as_str));
        let edits = batch.edits.into_iter().map(|edit| {
            let own: BTreeSet<&str> = self.paths(&edit, &rows).collect();
            match self.named(own.into_iter()).or_else(|| any.clone()) {
                Some(origin) => edit.with_origin(origin),
                None => edit,
            }
        });
        Batch {
            edits: edits.collect(),
        }
    }

    /// Returns the changed files that declare an edit's resource, or declared it before.
    fn paths<'a>(
        &'a self,
        edit: &Edit,
        rows: &HashMap<Uid, &'a Row>,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let row = match &edit.target {
            Target::Uid(uid) => rows.get(uid).copied(),
            Target::Key(_) | Target::Name(_) => None,
        };
        let after = match &edit.change {
            Change::Create(new) | Change::Apply(new) => Some(new.paths.clone()),
            Change::Update(update) => update.paths.clone(),
            Change::Rename(_) | Change::Delete | Change::ForceDelete => None,
        };
        let after: Vec<&'a str> = after
            .iter()
            .flat_map(|paths| paths.iter())
            .filter_map(|path| self.0.get_key_value(path.as_ref()))
            .map(|(path, _)| path.as_str())
            .collect();
        let before = row.into_iter().flat_map(paths_of);
        before.filter(|path| self.0.contains_key(*path)).chain(after)
    }

    /// Returns the text that names files and their authors; none if there are no files.
    fn named<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Option<Arc<str>> {
        let paths: Vec<&str> = paths.collect();
        let rest = paths.len().saturating_sub(NAMED);
        let mut shown = paths[..paths.len() - rest].join(", ");
        if rest > 0 {
            shown.push_str(&format!(" and {rest} more"));
        }
        let authors: BTreeSet<&str> = paths
            .iter()
            .filter_map(|path| self.0.get(*path)?.as_deref())
            .collect();
        for author in authors.into_iter().take(NAMED) {
            shown.push_str(&format!(", by {author}"));
        }
        (!paths.is_empty()).then(|| shown.into())
    }
}

fn paths_of(row: &Row) -> impl Iterator<Item = &str> {
    row.paths.iter().map(Arc::as_ref)
}

#[cfg(test)]
mod tests {
    use watershed_core::NewResource;

    use super::*;

    fn written(paths: &[&str]) -> Vec<FileEvent> {
        let event = |path: &&str| FileEvent::Written {
            path: (*path).to_owned(),
            content: Arc::default(),
        };
        paths.iter().map(event).collect()
    }

    fn create(paths: &[&str]) -> Edit {
        let mut new = NewResource::new(Uid(uuid::Uuid::nil()), "model", "m", &b""[..]);
        new.paths = paths.iter().map(|path| Arc::from(*path)).collect();
        Edit::create(new)
    }

    fn origin(changed: &[&str], edit: Edit) -> Option<String> {
        let mut all = Changed::default();
        all.add(&written(changed));
        let said = all.say(Batch { edits: vec![edit] }, &[]);
        said.edits[0].origin.as_deref().map(str::to_owned)
    }

    #[test]
    fn an_edit_names_its_resources_own_files_that_changed() {
        let edit = || create(&["models/m.sql", "models/m.yaml"]);
        let one = origin(&["models/m.sql", "models/other.sql"], edit());
        assert_eq!(one.as_deref(), Some("models/m.sql"));
        let both = origin(&["models/m.yaml", "models/m.sql", "z"], edit());
        assert_eq!(both.as_deref(), Some("models/m.sql, models/m.yaml"));
    }

    #[test]
    fn an_edit_of_a_file_that_a_caller_has_written_names_the_caller() {
        let mut all = Changed::default();
        all.add(&written(&["models/m.sql", "models/n.sql"]));
        all.name_authors(|path| (path == "models/m.sql").then(|| "ann".into()));
        let edits = vec![create(&["models/m.sql"]), create(&["models/n.sql"])];
        let said = all.say(Batch { edits }, &[]);
        let origins: Vec<&str> = said.edits.iter().filter_map(|it| it.origin.as_deref()).collect();
        assert_eq!(origins, ["models/m.sql, by ann", "models/n.sql"]);
    }

    #[test]
    fn an_edit_whose_own_files_are_as_they_were_names_what_changed() {
        let edit = || create(&["models/m.sql"]);
        assert_eq!(origin(&["rill.yaml"], edit()).as_deref(), Some("rill.yaml"));
        let many = origin(&["a", "b", "c", "d", "e"], edit());
        assert_eq!(many.as_deref(), Some("a, b, c and 2 more"));
        assert_eq!(origin(&[], edit()), None);
    }
}
