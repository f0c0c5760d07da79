//! Names that a statement uses inside: ours, so that no name of a person's meets them.

use crate::view::{Source, View};

/// The maker of inner names: a word and a number, behind as many underscores as no name of the view has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    /// Finds names that none of the view's names is.
    pub(super) fn of(view: &View) -> Self {
        let lookups = view
            .dimensions
            .iter()
            .filter_map(|dimension| dimension.lookup.as_ref());
        let sources = view
            .dimensions
            .iter()
            .filter_map(|dimension| match &dimension.source {
                Source::Column(name) => Some(name.as_str()),
                Source::Expression(_) => None,
            });
        let foreign = view
            .field_names()
            .chain(sources)
            .chain(view.table.iter().map(String::as_str))
            .chain(view.columns.iter().map(String::as_str))
            .chain(
                lookups
                    .flat_map(|lookup| lookup.table.iter().chain([&lookup.key, &lookup.value]))
                    .map(String::as_str),
            );
        let longest = foreign.filter_map(underscores).max();
        Self {
            prefix: "_".repeat(longest.map_or(0, |longest| longest + 1)),
        }
    }

    fn name(&self, word: &str, number: usize) -> String {
        format!("{}{word}{number}", self.prefix)
    }

    /// A dimension of a level, by its place in it.
    pub(super) fn dimension(&self, place: usize) -> String {
        self.name("d", place)
    }

    /// A measure of the view on a side.
    pub(super) fn measure(&self, side: super::side::Side, index: usize) -> String {
        match side {
            super::side::Side::Base => self.name("m", index),
            super::side::Side::Comparison => self.name("c", index),
        }
    }

    /// A measure that the query computes, by its place in the query.
    pub(super) fn computed(&self, place: usize) -> String {
        self.name("x", place)
    }

    /// A total of a measure on a side.
    pub(super) fn total(&self, side: super::side::Side, index: usize) -> String {
        match side {
            super::side::Side::Base => self.name("total", index),
            super::side::Side::Comparison => self.name("compared_total", index),
        }
    }

    /// A statement or a relation.
    pub(super) fn relation(&self, word: &str, number: usize) -> String {
        self.name(word, number)
    }
}

/// Returns the number of underscores before what looks like one of our names.
fn underscores(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let rest = name.trim_start_matches('_');
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
    let ours = digits.len() < rest.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    ours.then_some(name.len() - rest.len())
}

/// Names a column beside those of the table, while authors' expressions see it.
pub(super) fn beside(word: &str, dimension: usize) -> String {
    format!("_watershed {word}{dimension}")
}
