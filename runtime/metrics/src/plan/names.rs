//! Inner names of a statement, which differ from all names of the view.

use crate::view::{Source, View};

/// A generator of inner names: a word and a number, prefixed with more underscores than similar names of the view have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    /// Creates a generator whose names differ from all names of the view.
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

    /// Returns the inner name of a level's dimension, by its index.
    pub(super) fn dimension(&self, place: usize) -> String {
        self.name("d", place)
    }

    /// Returns the inner name of a view's measure on a side.
    pub(super) fn measure(&self, side: super::side::Side, index: usize) -> String {
        match side {
            super::side::Side::Base => self.name("m", index),
            super::side::Side::Comparison => self.name("c", index),
        }
    }

    /// Returns the inner name of a measure that the query computes, by its index in the query.
    pub(super) fn computed(&self, place: usize) -> String {
        self.name("x", place)
    }

    /// Returns the inner name of a measure's total on a side.
    pub(super) fn total(&self, side: super::side::Side, index: usize) -> String {
        match side {
            super::side::Side::Base => self.name("total", index),
            super::side::Side::Comparison => self.name("compared_total", index),
        }
    }

    /// Returns the inner name of a subquery or relation.
    pub(super) fn relation(&self, word: &str, number: usize) -> String {
        self.name(word, number)
    }
}

/// Returns the number of leading underscores of a name that resembles an inner name; none for other names.
fn underscores(name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let rest = name.trim_start_matches('_');
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_lowercase() || c == '_');
    let ours = digits.len() < rest.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    ours.then_some(name.len() - rest.len())
}

/// Returns the name of an additional column beside those of the table, in scope of authors' expressions.
pub(super) fn beside(word: &str, dimension: usize) -> String {
    format!("_watershed {word}{dimension}")
}
