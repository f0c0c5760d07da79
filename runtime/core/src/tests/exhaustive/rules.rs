//! Rules of the naive reference, computed from scratch after each input.

use super::model::{Item, NODES_MAX, bits};
use super::world::{Check, Run, Stands, World, ensure, mask_of, number};
use crate::Phase;

impl World {
    pub(super) fn check(&self) -> Check {
        let findings = self.core.check_consistency();
        ensure(findings.is_empty(), || {
            findings
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        })?;
        self.check_catalog()?;
        let above = self.model.ancestors();
        self.check_closure(&above)?;
        for run in &self.running {
            self.check_run(run, &above)?;
        }
        if self.running.is_empty() {
            self.check_rest()?;
        }
        Ok(())
    }

    /// Checks that the core's rows are those that the edits make in the reference.
    fn check_catalog(&self) -> Check {
        for (index, item) in self.model.items.iter().enumerate() {
            let slot = self.uids[index].and_then(|uid| self.core.graph().find(uid));
            let row = slot.map(|slot| self.core.graph()[slot].row());
            let (Some(item), Some(row)) = (item, row) else {
                ensure(item.is_none() && row.is_none(), || {
                    format!("catalog: {index}: {item:?}, not {row:?}")
                })?;
                continue;
            };
            let former = row
                .intents
                .former_names
                .iter()
                .fold(0, |all, it| all | 1 << number(it));
            let found = (
                number(&row.name),
                mask_of(&row.refs),
                former,
                row.intents.is_deleted(),
            );
            let expected = (item.name, item.refs, item.former, item.deleted);
            ensure(found == expected, || {
                format!("catalog: {index}: {found:?}, not {expected:?}")
            })?;
        }
        Ok(())
    }

    fn is_unsettled(&self, index: usize) -> bool {
        self.stands[index] == Stands::Unsettled
    }

    /// Checks C4: every resource below an unsettled one is unsettled.
    fn check_closure(&self, above: &[u8; NODES_MAX]) -> Check {
        for (index, _) in self.model.live().filter(|(index, _)| !self.is_unsettled(*index)) {
            let waits = bits(above[index]).find(|parent| self.is_unsettled(*parent));
            ensure(waits.is_none(), || {
                format!("C4: {index} is settled below {waits:?}")
            })?;
        }
        Ok(())
    }

    fn check_run(&self, run: &Run, above: &[u8; NODES_MAX]) -> Check {
        let must = self.must_cancel & (1 << run.index) != 0 && run.began < self.clock;
        let regular = run.phase == Phase::Reconcile;
        ensure(!(must && regular) || run.cancelled, || {
            format!("C4: {run:?} was not cancelled")
        })?;
        if regular && !run.cancelled {
            let other = self.running.iter().find(|other| {
                other.phase == Phase::Reconcile
                    && !other.cancelled
                    && above[run.index] & (1 << other.index) != 0
            });
            ensure(other.is_none(), || {
                format!("C2, C7: {run:?} runs below {other:?}")
            })?;
        }
        if run.began == self.clock {
            self.check_start(run, above)?;
        }
        Ok(())
    }

    fn check_start(&self, run: &Run, above: &[u8; NODES_MAX]) -> Check {
        let index = run.index;
        let item = self.model.items[index].ok_or("what is gone runs")?;
        let counts = |deleted: bool| {
            let mut items = self.model.items.iter().flatten();
            items.any(|item| item.is_marked() && item.deleted == deleted && !item.failed)
        };
        match run.phase {
            Phase::Delete => {
                let first = bits(item.waits).find(|other| {
                    self.model.items[*other].is_some_and(|other| other.deleted && !other.failed)
                });
                ensure(item.deleted && first.is_none(), || {
                    format!("C6: {index} is deleted before {first:?}")
                })
            }
            Phase::Rename => ensure(item.former != 0 && !item.deleted && !counts(true), || {
                format!("C6: {index} is renamed too early")
            }),
            Phase::Reconcile => {
                ensure(!item.is_marked() && !counts(true) && !counts(false), || {
                    format!("C6: {index} starts before deletes and renames")
                })?;
                let waits = bits(above[index]).find(|parent| self.is_unsettled(*parent));
                ensure(waits.is_none(), || format!("C3: {index} starts below {waits:?}"))?;
                // A rename reads no refs, and may start below it by the same input, once its own edit is committed.
                let below = self.running.iter().find(|other| {
                    other.invocation < run.invocation && above[other.index] & (1 << index) != 0
                });
                ensure(below.is_none(), || format!("C3: {index} starts above {below:?}"))?;
                let holder = self.claimant(index, &item);
                ensure(holder.is_none(), || {
                    format!("C6: {index} starts on a name of {holder:?}")
                })
            }
        }
    }

    /// Returns another resource that claims the item's name for an unfinished delete or rename.
    fn claimant(&self, index: usize, item: &Item) -> Option<usize> {
        let claims = |other: &Item| other.is_marked() && other.names() & (1 << item.name) != 0;
        let others = (0..NODES_MAX).filter(|other| *other != index);
        others
            .into_iter()
            .find(|other| self.model.items[*other].as_ref().is_some_and(claims))
    }

    /// Checks a state in which nothing runs: no resource is pending, and no request was forgotten (C11).
    fn check_rest(&self) -> Check {
        ensure(self.core.is_idle(), || {
            "deadlock: nothing runs and it is not idle".into()
        })?;
        let cycles = self.model.on_cycles();
        for (index, item) in self.model.items.iter().enumerate() {
            let Some(item) = item else { continue };
            let (stands, past) = (self.stands[index], &self.past[index]);
            let expected = if item.deleted || (item.is_marked() && cycles & (1 << index) == 0) {
                ensure(item.failed, || format!("C6: the mark of {index} was forgotten"))?;
                Stands::Retrying
            } else if cycles & (1 << index) != 0 {
                Stands::OnCycle
            } else if (past.stopped && stands == Stands::Cancelled)
                || (self.claimant(index, item).is_some() && stands == Stands::WaitingForName)
            {
                continue;
            } else {
                Stands::Resting
            };
            ensure(stands == expected, || {
                format!("{index} {item:?} rests as {stands:?}, not {expected:?}")
            })?;
            if expected == Stands::Resting {
                self.check_c11(index)?;
            }
        }
        Ok(())
    }

    fn check_c11(&self, index: usize) -> Check {
        let past = &self.past[index];
        ensure(past.began >= past.asked, || {
            format!(
                "C11: {index} was asked for at {} and last began at {}",
                past.asked, past.began
            )
        })?;
        for parent in bits(self.model.direct_parents(index)) {
            let ended = self.past[parent].ended;
            ensure(past.began >= ended, || {
                format!("C11: {index} did not run after {parent}")
            })?;
        }
        Ok(())
    }
}
