//! The selection of a project's resources: `--select` and `--exclude`.
//!
//! | module | holds |
//! |---|---|
//! | [`expression`] | what was typed, read |
//! | [`listing`] | the resources to choose from, and what reads what |
//! | [`evaluate`] | the resources that an expression stands for |
//!
//! Every command reads and evaluates a choice here, each over its own listing: the catalog, the files, or what a run
//! would leave.

mod evaluate;
mod expression;
mod listing;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use watershed_core::Uid;
use watershed_locks::Unpoisoned;
use watershed_outputs::selection::{Candidate, Choose, Chosen};

use crate::report::Entry;
use expression::Expression;
use listing::Listing;
use watershed_api::request::Selection;
use watershed_api::{Code, Problem};

/// The availability of the resources' states to a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum States {
    /// States were read from a catalog.
    Known,
    /// States are unknown, since no catalog was opened.
    Unknown,
}

/// The evaluation of a selection: parses it and finds the resources that it matches.
pub(crate) trait Evaluate {
    /// Checks that the selection can be parsed.
    ///
    /// # Errors
    /// When an option can't be read; the place is named.
    fn check(&self) -> Result<(), Problem>;

    /// Returns the selected resources among `entries`; none if the selection is empty and so everything is selected.
    ///
    /// # Errors
    /// When an option can't be read, or nothing matches it.
    fn among(&self, entries: &[Entry], states: States) -> Result<Option<BTreeSet<Uid>>, Problem>;

    /// Returns the selection in a form that reconcilers evaluate once the files are parsed.
    fn chosen(&self) -> Choice;
}

impl Evaluate for Selection {
    fn check(&self) -> Result<(), Problem> {
        Expression::read(self).map(drop)
    }

    fn among(&self, entries: &[Entry], states: States) -> Result<Option<BTreeSet<Uid>>, Problem> {
        if self.is_empty() {
            return Ok(None);
        }
        let listed = entries.iter().map(|entry| &*entry.row);
        let listed = listed.filter(|row| !row.hidden && !row.intents.is_deleted());
        let candidates: Vec<Candidate<'_>> = listed.map(Candidate::from).collect();
        let expression = Expression::read(self)?;
        if states == States::Unknown && expression.asks_for_states() {
            let refusal = Problem::new(
                Code::BadArgument,
                "`state:` can't be known without a look at the catalog",
            );
            return Err(refusal.hint("`plan` and `status` look at it"));
        }
        evaluate::evaluate(&expression, &Listing::new(&candidates)).map(Some)
    }

    fn chosen(&self) -> Choice {
        if self.is_empty() {
            return Choice::default();
        }
        let made: Arc<Mutex<Option<Made>>> = Arc::default();
        let selection = self.clone();
        let choose: Arc<Choose> = Arc::new({
            let made = Arc::clone(&made);
            move |candidates: &[Candidate<'_>]| {
                let result = Expression::read(&selection)
                    .and_then(|expression| evaluate::evaluate(&expression, &Listing::new(candidates)));
                let uids = result.as_ref().cloned().unwrap_or_default();
                *made.lock().unpoisoned() = Some(result);
                uids
            }
        });
        Choice {
            chosen: Chosen::by(choose),
            made: Some(made),
        }
    }
}

type Made = Result<BTreeSet<Uid>, Problem>;

/// A selection that is evaluated once the files are parsed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    /// The selection as reconcilers ask it.
    pub(crate) chosen: Chosen,
    /// The evaluated selection, once known; none if everything is selected.
    made: Option<Arc<Mutex<Option<Made>>>>,
}

impl Choice {
    /// Returns the selected resources; none if everything is selected. Until the files are parsed, nothing is selected.
    ///
    /// # Errors
    /// When nothing matched.
    pub(crate) fn made(&self) -> Result<Option<BTreeSet<Uid>>, Problem> {
        match &self.made {
            None => Ok(None),
            Some(made) => made
                .lock()
                .unpoisoned()
                .clone()
                .unwrap_or_else(|| Ok(BTreeSet::new()))
                .map(Some),
        }
    }
}

#[cfg(test)]
mod tests;
