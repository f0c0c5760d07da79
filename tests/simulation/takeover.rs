//! Two controllers over one store: another one took the instance, and the one before has yet to find out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use watershed_core::{
    Answer, Commit, CommitError, Core, Effect, Epoch, Input, InvocationId, Now, Outcome, Returned, Revision,
    Row, StopReason, Uid,
};

use crate::world::{Check, Simulation, ensure};

/// A controller that lost its lease.
pub(crate) struct Stale {
    core: Core,
    now: Now,
    epoch: Epoch,
    running: Vec<InvocationId>,
    in_flight: Option<Commit>,
    /// True if the store had what is in flight before it was taken over.
    arrived: bool,
    /// The rows that were durable then: nothing else may be shown.
    durable: BTreeMap<Uid, Arc<Row>>,
    revision: Revision,
    stopped: bool,
}

impl Simulation {
    /// Another controller takes the instance while this one goes on.
    pub(crate) fn take_over(&mut self) -> Check {
        let arrived = self.store.in_flight.is_some() && self.rng.random_bool(0.5);
        if arrived {
            self.store.write();
        }
        let in_flight = self.store.in_flight.clone();
        let (epoch, now) = (self.store.epoch, self.now);
        let running = self.running.keys().copied().collect();
        let core = self.restart_beside()?;
        self.stale = Some(Stale {
            core,
            now,
            epoch,
            running,
            in_flight,
            arrived,
            durable: self.store.rows.clone(),
            revision: self.store.revision,
            stopped: false,
        });
        Ok(())
    }

    /// Something happens to the controller that lost its lease; it can neither write nor acknowledge anything.
    pub(crate) fn advance_stale(&mut self) -> Check {
        let Some(mut stale) = self.stale.take() else {
            return Ok(());
        };
        let input = self.stale_input(&mut stale);
        self.trace.push(format!("{} stale {input:?}", self.step));
        let tells = matches!(input, Input::Committed(_));
        let learns = matches!(input, Input::LeaseLost | Input::CommitFailed { .. });
        let mut effects = Vec::new();
        stale.core.handle(stale.now, input, &mut effects);
        stale.core.flush(stale.now, &mut effects);
        for effect in effects {
            self.check_stale(&mut stale, effect, tells)?;
        }
        ensure(!learns || stale.stopped, "lease", || {
            "it knows that the lease is lost and goes on".into()
        })?;
        if !stale.stopped {
            self.stale = Some(stale);
        }
        Ok(())
    }

    fn stale_input(&mut self, stale: &mut Stale) -> Input {
        match self.rng.random_range(0..8) {
            0 => Input::LeaseLost,
            1..4 if stale.in_flight.is_some() => {
                let commit = stale.in_flight.take().map(|commit| commit.id).unwrap_or_default();
                match std::mem::take(&mut stale.arrived) {
                    true => Input::Committed(commit),
                    false => Input::CommitFailed {
                        commit,
                        error: CommitError::LeaseLost,
                    },
                }
            }
            4 | 5 if !stale.running.is_empty() => Input::Returned {
                invocation: stale.running.swap_remove(0),
                result: Returned::Done(Outcome::default()),
            },
            6 if stale.core.accepts_calls() => Input::Call {
                id: self.next_call(),
                by: None,
                call: watershed_core::Call::Apply(self.taste.clone().batch(&mut self.rng, &self.catalog)),
            },
            _ => {
                let wait = Duration::from_millis(self.rng.random_range(1..3_000));
                stale.now.mono = stale.now.mono.after(wait);
                stale.now.wall = stale.now.wall.after(wait);
                Input::Time
            }
        }
    }

    fn check_stale(&self, stale: &mut Stale, effect: Effect, tells: bool) -> Check {
        match effect {
            Effect::Commit(commit) => {
                ensure(commit.epoch == stale.epoch, "lease", || {
                    "it commits under an epoch that is not its own".into()
                })?;
                ensure(commit.epoch < self.store.epoch, "lease", || {
                    "the store would take what a stale controller writes".into()
                })?;
                stale.in_flight = Some(commit);
                Ok(())
            }
            Effect::Start(start) => {
                stale.running.push(start.invocation);
                ensure(!stale.stopped, "lease", || "it starts what it can't store".into())
            }
            Effect::Answer { answer, .. } => {
                // What changes nothing says only what was durable before. That nobody is told even this once another
                // one holds the instance is the host's part: it stops before its lease has run out.
                let acknowledges = match &answer {
                    Answer::Applied(applied) => applied.revision > stale.revision,
                    _ => false,
                };
                ensure(!acknowledges || tells, "lease", || {
                    format!("a stale controller acknowledged: {answer:?}")
                })
            }
            Effect::Publish(publish) => {
                let shown = publish.rows.iter().find(|row| {
                    let durable = stale.durable.get(&row.uid);
                    durable.is_none_or(|durable| **durable != ***row)
                });
                ensure(shown.is_none(), "lease", || {
                    format!("a stale controller shows what is not stored: {shown:?}")
                })
            }
            Effect::Stopped { reason, .. } => {
                stale.stopped = true;
                ensure(reason == StopReason::LeaseLost, "lease", || {
                    format!("it stopped by {reason:?}")
                })
            }
            Effect::Cancel { .. } | Effect::Timer(_) => Ok(()),
        }
    }
}
