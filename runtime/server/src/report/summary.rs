//! Counts of a command's work and outcomes.

use std::collections::HashMap;

use watershed_api::documents::{Health, Outcome, Outcomes, Work};
use watershed_core::{Error, Row, RunResult, Uid};

use super::resource;

/// The work and outcome of a command's runs, by resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Done {
    by_uid: HashMap<Uid, (Work, Outcome)>,
}

impl Done {
    /// Adds the last run of a row.
    pub(crate) fn add(&mut self, row: &Row) {
        if let Some(run) = &row.last_run {
            self.add_run(row.uid, run.result, row.error.as_deref());
        }
    }

    /// Adds a run with its result.
    pub(crate) fn add_run(&mut self, uid: Uid, result: RunResult, error: Option<&Error>) {
        let work = resource::work(result, error);
        let outcome = resource::outcome(result, error);
        let entry = self.by_uid.entry(uid).or_insert((work, outcome));
        // A look after a build does not undo the build; a failure after one is what counts now.
        let strength = |work| match work {
            Work::None => 0,
            Work::Checked => 1,
            Work::Renamed | Work::Dropped => 2,
            Work::Restored => 3,
            Work::Built => 4,
        };
        if strength(work) > strength(entry.0) {
            entry.0 = work;
        }
        if !(outcome == Outcome::Unchanged && entry.1 == Outcome::Done) {
            entry.1 = outcome;
        }
    }

    /// Returns the work done for a resource; none without a run.
    pub(crate) fn work(&self, uid: Uid) -> Work {
        self.by_uid.get(&uid).map_or(Work::None, |(work, _)| *work)
    }

    /// Returns the outcome of a resource's runs, or the outcome that its health gives without a run.
    pub(crate) fn outcome(&self, uid: Uid, health: Health) -> Outcome {
        match self.by_uid.get(&uid) {
            Some((_, outcome)) => *outcome,
            None => without_run(health),
        }
    }
}

/// Returns the outcome of a resource that this command did not run.
pub(crate) fn without_run(health: Health) -> Outcome {
    match health {
        Health::Failed => Outcome::Failed,
        Health::Blocked => Outcome::Skipped,
        _ => Outcome::Unchanged,
    }
}

/// Counts outcomes by their kind.
pub(crate) fn outcomes(all: impl Iterator<Item = Outcome>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    all.for_each(|outcome| outcomes.add(outcome));
    outcomes
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{failed, model, run};
    use super::*;
    use std::sync::Arc;
    use watershed_core::RunResult;

    fn ran(result: RunResult) -> Row {
        Row {
            last_run: Some(Arc::new(run(1, result))),
            ..model("a", &[])
        }
    }

    #[test]
    fn a_look_after_a_build_leaves_it_built() {
        let mut done = Done::default();
        let row = ran(RunResult::Done(watershed_core::Work::Built));
        done.add(&row);
        done.add(&ran(RunResult::Done(watershed_core::Work::Checked)));
        assert_eq!(
            (done.work(row.uid), done.outcome(row.uid, Health::Ok)),
            (Work::Built, Outcome::Done)
        );
        done.add(&failed(model("a", &[])));
        assert_eq!(
            (done.work(row.uid), done.outcome(row.uid, Health::Failed)),
            (Work::Built, Outcome::Failed)
        );
    }

    #[test]
    fn what_was_not_run_counts_by_its_health() {
        let done = Done::default();
        let uid = model("a", &[]).uid;
        assert_eq!(done.outcome(uid, Health::Ok), Outcome::Unchanged);
        assert_eq!(done.outcome(uid, Health::Failed), Outcome::Failed);
        assert_eq!(done.outcome(uid, Health::Blocked), Outcome::Skipped);
    }
}
