//! Checks of the core's effects, each as it comes.

use std::collections::BTreeMap;
use std::sync::Arc;

use watershed_core::{
    Answer, CHAIN_MAX, CallId, Commit, InvocationId, Phase, Publish, Revision, Row, RunOutcome, Settled,
    Settlement, Stage, Start, Trigger, Uid,
};

use crate::model::Item;
use crate::store::overlay;
use crate::world::{Check, Expected, Run, Simulation, ensure};

impl Simulation {
    pub(crate) fn take_start(&mut self, start: &Start) -> Check {
        let uid = start.resource.uid;
        let key = start.resource.key();
        self.trace.push(format!(
            "    start {:?} {key} {:?} {:?}",
            start.phase, start.invocation, start.reason.trigger
        ));
        ensure(start.invocation.0 > self.last_invocation, "numbers", || {
            format!("{:?}", start.invocation)
        })?;
        self.last_invocation = start.invocation.0;
        let item = self
            .catalog
            .items
            .get(&uid)
            .ok_or_else(|| format!("{key} started and is removed"))?
            .clone();
        let durable = self
            .store
            .rows
            .get(&uid)
            .ok_or_else(|| format!("{key} started before it was committed"))?;
        let committed = durable.spec_version == item.spec_version && durable.name.same_case(&item.key.name);
        ensure(committed, "commit order", || {
            format!("{key} started on an uncommitted spec")
        })?;
        ensure(
            start.resource.spec_version == item.spec_version,
            "snapshot",
            || format!("{key} sees an old spec"),
        )?;
        let hold = self.past(uid).hold;
        ensure(hold <= self.store.revision, "commit order", || {
            format!("{key} started before {hold:?}")
        })?;
        self.check_views(start, &item)?;
        if start.phase == Phase::Reconcile {
            self.check_owned(start)?;
        }
        check_chain(start)?;
        let run = Run {
            uid,
            phase: start.phase,
            cancelled: false,
            stopped: false,
            names: item.names(),
            started: self.step,
            begun: self.now.mono,
            begun_wall: self.now.wall,
            deadline: self
                .options(uid)
                .and_then(|options| options.deadline)
                .map(|wait| self.now.mono.after(wait)),
            overdue: false,
            abandon_at: None,
            abandoned: false,
            sees_refs_of: self.step,
            spec_version: item.spec_version,
        };
        self.check_c1(&run, &key)?;
        if start.phase == Phase::Reconcile {
            self.take_what_is_owed(uid)?;
        }
        self.running.insert(start.invocation, run);
        ensure(self.active().count() <= self.limits.concurrency, "C12", || {
            "too many invocations".into()
        })?;
        let options = self
            .options(uid)
            .ok_or_else(|| format!("{key} has no reconciler"))?;
        let of_kind = self.active().filter(|run| {
            self.catalog
                .items
                .get(&run.uid)
                .is_some_and(|item| item.key.kind == options.kind)
        });
        let room = options.concurrency.is_none_or(|limit| of_kind.count() <= limit);
        let pool = options.pool.as_ref();
        let room = room && pool.is_none_or(|pool| self.places_taken(pool) <= pool.limit);
        ensure(room, "C12", || format!("too many invocations of {}", key.kind))
    }

    /// Snapshots of refs: what is live under each name, with committed spec and name.
    fn check_views(&self, start: &Start, item: &Item) -> Check {
        if start.phase != Phase::Reconcile {
            return Ok(());
        }
        let refs: Vec<_> = start.refs.iter().map(|view| view.reference.clone()).collect();
        ensure(refs == item.refs, "snapshot", || {
            format!("{} sees other refs", item.key)
        })?;
        for view in &start.refs {
            let expected = self.catalog.live(&view.reference.key());
            let seen = view.target.as_ref().map(|row| row.uid);
            ensure(seen == expected, "snapshot", || {
                format!("{} sees {seen:?}, not {expected:?}", item.key)
            })?;
            let Some(row) = &view.target else { continue };
            let durable = self.store.rows.get(&row.uid);
            let committed = durable.is_some_and(|durable| durable.spec_version == row.spec_version);
            ensure(committed, "commit order", || {
                format!("{} sees the uncommitted {}", item.key, row.key())
            })?;
            let present = &self.catalog.items[&row.uid];
            let fresh =
                row.state_version == present.state_version && row.spec_version == present.spec_version;
            ensure(fresh, "snapshot", || {
                format!("{} sees an old {}", item.key, row.key())
            })?;
            let failed = row.error.is_some();
            ensure(!failed || view.failed, "snapshot", || {
                format!("{} takes {} for sound", item.key, row.key())
            })?;
        }
        Ok(())
    }

    fn check_c1(&self, run: &Run, key: &watershed_core::Key) -> Check {
        for other in self.running.values() {
            ensure(other.uid != run.uid, "C1", || format!("{key} runs already"))?;
            let shared = other.names.intersection(&run.names).next();
            ensure(shared.is_none(), "C1", || {
                format!("{key} starts while another runs under {shared:?}")
            })?;
        }
        Ok(())
    }

    pub(crate) fn take_cancel(&mut self, invocation: InvocationId) -> Check {
        self.trace.push(format!("    cancel {invocation:?}"));
        let run = self.running.get_mut(&invocation).ok_or("a cancel of nothing")?;
        ensure(!run.cancelled, "C4", || {
            format!("{invocation:?} was cancelled twice")
        })?;
        run.cancelled = true;
        let kind = run.names.first().map(|name| &name.kind);
        let options = self.kinds.iter().find(|options| Some(&options.kind) == kind);
        let wait = options.map(|options| options.cancel_deadline);
        let at = self.now.mono.after(wait.unwrap_or_default());
        run.abandon_at = Some(at);
        let uid = run.uid;
        ensure(self.may_cancel.contains(&uid) || self.stopping, "C4", || {
            format!(
                "{invocation:?} was cancelled for nothing: {:?}",
                self.past.get(&uid)
            )
        })
    }

    /// Checks that a commit makes the catalog of the edits so far, whole.
    pub(crate) fn take_commit(&mut self, commit: Commit) -> Check {
        let retried = self.store.failures > 0;
        let mut shadow: BTreeMap<Uid, Arc<Row>> = self.store.rows.clone();
        overlay(&mut shadow, &commit.writes);
        ensure(
            commit.revision > self.store.revision || commit.writes.is_empty() || retried,
            "revision",
            || "it did not rise".into(),
        )?;
        self.store.accept(commit)?;
        if retried {
            return Ok(());
        }
        let uids: Vec<&Uid> = shadow.keys().collect();
        let expected: Vec<&Uid> = self.catalog.items.keys().collect();
        ensure(uids == expected, "catalog", || {
            format!("rows {uids:?}, not {expected:?}")
        })?;
        for (uid, row) in &shadow {
            let mut stored = Item::from_row(row);
            stored.deleted_at = self.catalog.items[uid].deleted_at;
            let expected = &self.catalog.items[uid];
            let same_name = stored.key.name.same_case(&expected.key.name);
            ensure(stored == *expected && same_name, "catalog", || {
                format!("{stored:?}\nnot\n{expected:?}")
            })?;
        }
        self.deletes_are_in_order(&shadow)
    }

    /// Checks that the stored revisions of deletes have the order in which the deletes were asked for
    /// (those of one batch have one revision, and names of their own).
    fn deletes_are_in_order(&self, stored: &BTreeMap<Uid, Arc<Row>>) -> Check {
        let mut deletes: Vec<(Revision, u64)> = stored
            .iter()
            .filter_map(|(uid, row)| {
                Some((row.intents.deletion?.revision, self.catalog.items[uid].deleted_at))
            })
            .collect();
        deletes.sort_unstable();
        ensure(deletes.is_sorted_by_key(|delete| delete.1), "catalog", || {
            format!("deletes by revision: {deletes:?}")
        })
    }

    pub(crate) fn take_publish(&mut self, publish: Publish) -> Check {
        ensure(publish.revision <= self.store.revision, "release", || {
            "published before it is durable".into()
        })?;
        for row in publish.rows {
            let durable = self.store.rows.get(&row.uid);
            let same = durable.is_some_and(|durable| **durable == *row);
            ensure(same, "release", || {
                format!("{} was shown before it is durable", row.key())
            })?;
            self.published.insert(row.uid, row);
        }
        for removed in &publish.removed {
            ensure(!self.store.rows.contains_key(&removed.uid), "release", || {
                format!("{} is still there", removed.key)
            })?;
            self.published.remove(&removed.uid);
            self.stages.remove(&removed.uid);
        }
        for update in publish.statuses {
            ensure(self.published.contains_key(&update.uid), "release", || {
                "a status of nothing known".into()
            })?;
            self.trace.push(format!(
                "    {} {:?}",
                self.published[&update.uid].key(),
                update.status.stage
            ));
            if update.status.stage == Stage::Settled(Settled::Paused) {
                self.past(update.uid).missed = true;
            }
            self.note_stage(update.uid, &update.status.stage);
            self.stages.insert(update.uid, update.status.stage);
        }
        if self.store.in_flight.is_none() {
            ensure(self.published == self.store.rows, "watch", || {
                "readers see something else".into()
            })?;
            self.check_cycle_errors()?;
        }
        Ok(())
    }

    /// C7: in every committed catalog, exactly the members of cycles carry an error that spells one out.
    fn check_cycle_errors(&self) -> Check {
        let items = self
            .published
            .iter()
            .map(|(uid, row)| (*uid, Item::from_row(row)));
        let committed = crate::model::Catalog {
            items: items.collect(),
            ..crate::model::Catalog::default()
        };
        for (uid, row) in self.published.iter().filter(|(_, row)| !row.intents.is_deleted()) {
            let spelled = row.error.as_ref().is_some_and(|error| &*error.code == "cycle");
            let on_cycle = committed.on_cycle(*uid);
            ensure(spelled == on_cycle, "C7", || {
                format!("{} on a cycle: {on_cycle}, says {spelled}", row.key())
            })?;
            let names_it = row
                .error
                .as_ref()
                .is_none_or(|error| error.message.contains(row.name.as_str()));
            ensure(!spelled || names_it, "C7", || {
                format!("{} is not in {:?}", row.key(), row.error)
            })?;
        }
        Ok(())
    }

    pub(crate) fn take_answer(&mut self, call: CallId, answer: &Answer) -> Check {
        self.trace.push(format!("    answer {call:?} {answer:?}"));
        if self.take_end(call, answer)? {
            return Ok(());
        }
        match answer {
            Answer::Outcome(outcome) => return self.take_outcome(call, outcome),
            Answer::Settled(Settlement::Settled) => return self.take_settled(call),
            Answer::Settled(_) if self.stopping => {
                let handle = self.handles.get_mut(&call).ok_or("no handle was told")?;
                handle.settled = true;
                return Ok(());
            }
            _ => {}
        }
        if let (Answer::Refused(_), Some(handle), true) = (answer, self.handles.get_mut(&call), self.stopping)
        {
            (handle.outcome, handle.settled) = (true, true);
            self.calls.remove(&call);
            return Ok(());
        }
        let expected = self
            .calls
            .remove(&call)
            .ok_or_else(|| format!("{call:?} was answered twice"))?;
        match (expected, answer) {
            (Expected::Applied, Answer::Applied(applied)) => {
                ensure(applied.revision <= self.store.revision, "release", || {
                    "acknowledged before durable".into()
                })
            }
            (Expected::Refused, Answer::Refused(_)) => Ok(()),
            (Expected::Handle, Answer::Recorded(_)) => Ok(()),
            (Expected::Done, Answer::Done | Answer::StateWritten(_)) => Ok(()),
            (Expected::Idle, Answer::Done) => Ok(()),
            (_, Answer::Refused(_)) if self.stopping => Ok(()),
            (expected, answer) => Err(format!("{call:?}: {answer:?} instead of {expected:?}")),
        }
    }

    fn take_outcome(&mut self, call: CallId, outcome: &RunOutcome) -> Check {
        let Some(handle) = self.handles.get_mut(&call) else {
            return Err(format!("{call:?} is no handle"));
        };
        ensure(!std::mem::replace(&mut handle.outcome, true), "handles", || {
            "two outcomes".into()
        })?;
        let invocation = match outcome {
            RunOutcome::Done { invocation, .. } | RunOutcome::Failed { invocation, .. } => invocation,
            _ => return Ok(()),
        };
        ensure(invocation.0 >= handle.since, "handles", || {
            format!("{invocation:?} started before {call:?}")
        })
    }

    fn take_settled(&mut self, call: CallId) -> Check {
        let Some(handle) = self.handles.get_mut(&call) else {
            return Err(format!("{call:?} is no handle"));
        };
        ensure(!std::mem::replace(&mut handle.settled, true), "handles", || {
            "settled twice".into()
        })?;
        let handle = handle.clone();
        for uid in &handle.members {
            let live = self.catalog.is_live(*uid);
            let now = matches!(self.stages.get(uid), Some(Stage::Settled(_)));
            let since = self
                .past
                .get(uid)
                .is_some_and(|past| past.settled.max(past.completed_end) >= handle.asked);
            ensure(!live || now || since, "handles", || {
                format!("{call:?} settled before {uid}")
            })?;
        }
        Ok(())
    }
}

/// Checks that the causal chain of a start begins with something that is no consequence, in few links.
fn check_chain(start: &Start) -> Check {
    let key = start.resource.key();
    let chain = start.reason.chain(&key);
    let first = chain.first().map(|link| link.reason.trigger);
    ensure(first.is_some_and(|why| why != Trigger::Parent), "chain", || {
        format!("{key} runs because of {first:?} in the first place: {chain:?}")
    })?;
    ensure(chain.len() <= CHAIN_MAX, "chain", || {
        format!("{key} tells {} links", chain.len())
    })
}
