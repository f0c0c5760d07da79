//! Proposals for a place.

use std::collections::BTreeMap;

use super::outline::Cursor;
use crate::{project::Project, resource::Kind};

/// The proposals for a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The 1-based column at which the word begins that is being typed.
    pub from: u32,
    /// Proposals, by their text.
    pub items: Vec<Suggestion>,
    /// Some proposals were left out.
    pub is_incomplete: bool,
    /// Tables whose columns may stand there too, as far as somebody knows them.
    pub columns_of: Vec<String>,
}

/// Something that may stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The text.
    pub label: String,
    /// Its sort.
    pub what: Suggested,
    /// Its meaning, in a sentence.
    pub meaning: Option<String>,
    /// The text that is written instead, if that is more.
    pub insert: Option<String>,
}

/// The sort of a suggestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suggested {
    /// A key.
    Key,
    /// A value that a key takes.
    Value,
    /// The name of a resource.
    Resource(Kind),
    /// A dimension or measure.
    Field,
    /// A variable.
    Variable,
    /// A function of templates.
    Function,
}

/// The proposals so far.
#[derive(Debug, Default)]
pub(super) struct Suggestions {
    items: BTreeMap<String, Suggestion>,
    pub(super) columns_of: Vec<String>,
}

/// Proposals that an editor is sent at once: more than anybody reads, and typing on leaves fewer.
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

    /// Adds the names of a kind.
    pub(super) fn resources(&mut self, project: &Project, kind: Kind) {
        for resource in project.resources().filter(|resource| resource.kind == kind) {
            self.add(&resource.name, Suggested::Resource(kind), None);
        }
    }

    /// Leaves what fits the word that is being typed.
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
