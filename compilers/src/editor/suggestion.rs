//! Proposals for a place in a file.

use std::collections::BTreeMap;

use super::outline::Cursor;
use crate::{project::Project, resource::Kind};

/// The proposals for a place in a file, and the column at which they replace text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The 1-based column at which the typed word begins.
    pub from: u32,
    /// The proposals, ordered by label.
    pub items: Vec<Suggestion>,
    /// True if some proposals were left out.
    pub is_incomplete: bool,
    /// Tables whose columns may also be proposed, if the caller knows them.
    pub columns_of: Vec<String>,
}

/// A proposed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The text to show, and to insert unless `insert` is set.
    pub label: String,
    /// The sort of the proposal.
    pub what: Suggested,
    /// The meaning of the proposed text, in a sentence.
    pub meaning: Option<String>,
    /// The text to insert instead of the label.
    pub insert: Option<String>,
}

/// The sort of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suggested {
    /// A key that a mapping accepts.
    Key,
    /// A value that a key accepts.
    Value,
    /// The name of an existing resource of a kind.
    Resource(Kind),
    /// A dimension or measure of a metrics view.
    Field,
    /// A variable that a template can read.
    Variable,
    /// A function that templates can call.
    Function,
}

/// The proposals collected so far.
#[derive(Debug, Default)]
pub(super) struct Suggestions {
    items: BTreeMap<String, Suggestion>,
    pub(super) columns_of: Vec<String>,
}

/// The largest number of proposals returned at once.
const MOST_ITEMS: usize = 500;

impl Suggestions {
    pub(super) fn add(&mut self, label: &str, what: Suggested, meaning: Option<&str>) {
        self.insert(label, what, meaning, None);
    }

    pub(super) fn insert(
        &mut self,
        label: &str,
        what: Suggested,
        meaning: Option<&str>,
        insert: Option<String>,
    ) {
        let suggestion = Suggestion {
            label: label.to_owned(),
            what,
            meaning: meaning.map(str::to_owned),
            insert,
        };
        self.items.entry(label.to_owned()).or_insert(suggestion);
    }

    /// Adds the names of the resources of a kind.
    pub(super) fn resources(&mut self, project: &Project, kind: Kind) {
        for resource in project.resources().filter(|resource| resource.kind == kind) {
            self.add(&resource.name, Suggested::Resource(kind), None);
        }
    }

    /// Returns the proposals that match the typed word.
    pub(super) fn finish(self, cursor: &Cursor<'_>) -> Completion {
        let typed = cursor.word().to_lowercase();
        let mut items: Vec<Suggestion> = self.items.into_values().collect();
        let inner = format!("_{typed}");
        items.retain(|item| {
            let label = item.label.to_lowercase();
            label.starts_with(&typed) || label.contains(&inner)
        });
        let is_incomplete = items.len() > MOST_ITEMS;
        items.truncate(MOST_ITEMS);
        Completion {
            from: cursor.word_column(),
            items,
            is_incomplete,
            columns_of: self.columns_of,
        }
    }
}
