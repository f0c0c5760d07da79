//! The parts in a pass: their search, their effect on the owner, and their edits in one batch.

use std::sync::Arc;

use watershed_controller::message::{DecodeError, Message};
use watershed_controller::reconciler::{ErrorKind, OwnedView};
use watershed_controller::resource::Row;
use watershed_controller::{
    Batch, Edit, EditError, Error, Key, NewResource, Reconciler, Refusal, Resource, RetryPolicy, Update, Work,
};

use super::{Blocked, Halt, PART_FAILED, Pass, failed};
use crate::cascade::{Level, Order, PartState, Seat, Verdict, cascade, rolled_up, verdict};
use crate::deliver::EVENT_KIND;
use crate::desired::{Desired, Wanted, desired_of, encode_wanted};
use crate::goal::Allowed;
use crate::manager::Manager;
use crate::manager::part::Part;
use crate::record::{Failure, ManagedState, Record, record_of};
use crate::stages::Stage;
use crate::window::BadWindow;

/// The largest number of failed parts whose errors an owner shows.
const NAMED_MAX: usize = 3;

/// A declared part, with the resource found for it.
pub(super) struct Declared {
    pub(super) part: Part,
    pub(super) row: Option<Arc<Row>>,
    has_failed: bool,
    record: Option<Record>,
    desired: Option<Desired>,
}

impl Declared {
    /// Finds the resource of a part by its name, or by the name before a rename of its owner.
    fn new(part: Part, before: Option<&Key>, owned: &[OwnedView]) -> Result<Self, DecodeError> {
        let named = |key: &Key| {
            let is_it = |row: &Row| row.kind == key.kind && row.name == key.name;
            // What is being deleted is torn down on its own, and may be created anew.
            owned
                .iter()
                .find(|view| is_it(&view.resource) && !view.resource.intents.is_deleted())
        };
        let view = named(&part.key).or_else(|| named(before?));
        let row = view.map(|view| Arc::clone(&view.resource));
        let is_managed = part.desired.is_some();
        let state = row.as_ref().and_then(|row| row.state.as_deref());
        let record = state.filter(|_| is_managed).map(record_of).transpose()?;
        let spec = row
            .as_ref()
            .filter(|_| is_managed)
            .map(|row| desired_of(&row.spec));
        Ok(Self {
            has_failed: view.is_some_and(has_failed),
            record,
            desired: spec.transpose()?,
            row,
            part,
        })
    }

    fn seat(&self) -> Seat<'_> {
        Seat {
            name: self.part.key.name.as_str(),
            order: self.part.order,
            gates_next: self.part.gates_next.as_ref(),
            found: self.found(),
        }
    }

    fn found(&self) -> PartState<'_> {
        let Some(row) = &self.row else {
            return PartState::Missing;
        };
        let (Some(desired), Some(declared)) = (&self.desired, &self.part.desired) else {
            return PartState::Other {
                ready: row.last_success.is_some() && row.unready.is_none() && row.error.is_none(),
                failed: self.has_failed,
                leaving: row.intents.is_deleted(),
            };
        };
        PartState::Managed {
            at: self.record.as_ref().map(|record| (&record.stages, &record.stage)),
            desired: &declared.stage,
            allowed: desired.allowed,
            idle: self
                .record
                .as_ref()
                .is_some_and(|record| is_idle(record, desired)),
            failed: self.has_failed
                || self
                    .record
                    .as_ref()
                    .is_some_and(|record| record.failure.is_some()),
        }
    }
}

/// Returns true if nothing of a part is left and no stage is wanted.
fn is_idle(record: &Record, desired: &Desired) -> bool {
    let is_unwanted = record.goal == *record.stages.last()
        || (desired.allowed == Allowed::Gone && record.stages.is_nothing(&record.goal));
    is_unwanted && record.stages.is_nothing(&record.stage) && record.is_clean()
}

/// Returns true if a part has failed and no retry follows.
fn has_failed(view: &OwnedView) -> bool {
    let row = &view.resource;
    let is_final = |error: &Arc<Error>| match error.kind {
        ErrorKind::Permanent => true,
        ErrorKind::Dependency(_) | ErrorKind::Fenced => false,
        ErrorKind::Transient => {
            matches!(row.retry.as_deref(), Some(RetryPolicy::Backoff { attempts, .. }) if row.attempts >= *attempts)
        }
    };
    view.failed && row.error.as_ref().is_some_and(is_final)
}

impl<M: Manager, R: Reconciler<State = ManagedState<M::Details>>> Pass<'_, M, R> {
    pub(super) fn seats(&self) -> Vec<Seat<'_>> {
        self.parts.iter().map(Declared::seat).collect()
    }

    /// Finds the parts that the manager declares now.
    pub(super) fn find_parts(&mut self) -> Result<(), Halt> {
        if self.subject.is_alone {
            return Ok(());
        }
        let goal = self.wish().goal(self.now());
        let view = self.view(&goal, self.context.cancellation().clone());
        let owned = self.context.owned();
        let before = self.keys_before(&goal);
        let declared = self.manager.parts(&view).into_iter().enumerate();
        let found: Result<Vec<_>, _> = declared
            .map(|(place, part)| Declared::new(part, before.get(place), owned))
            .collect();
        self.parts = found.map_err(|error| part_error(error.to_string()))?;
        if let Err(bad) = self.check_windows() {
            self.bad_window.get_or_insert(bad);
        }
        Ok(())
    }

    /// Checks that each part's window lies inside the owner's, and does not begin before an earlier part's window.
    fn check_windows(&self) -> Result<(), BadWindow> {
        let now = self.now();
        let mut seen = Vec::new();
        for declared in &self.parts {
            let timed = declared
                .part
                .desired
                .as_ref()
                .and_then(|desired| desired.window.as_ref());
            let window = match timed {
                Some(timed) => timed.plan()?.at(now),
                None => None,
            };
            let name = declared.part.key.name.as_str();
            let Some(window) = window else { continue };
            if self
                .kept
                .record
                .window
                .is_some_and(|outer| !window.is_within(&outer))
            {
                return Err(BadWindow::Outside(name.to_owned()));
            }
            seen.push((declared.part.order, window.start, name));
        }
        for (order, start, name) in &seen {
            if seen
                .iter()
                .any(|(before, begins, _)| before < order && begins > start)
            {
                return Err(BadWindow::OutOfOrder((*name).to_owned()));
            }
        }
        Ok(())
    }

    /// Edits the parts by the decisions of the cascade, and records the stage of the owner with its parts.
    pub(super) async fn cascade(&mut self) -> Result<Option<Blocked>, Halt> {
        let goal = self.aim();
        let mut failure = None;
        let mut decided = Vec::new();
        if !self.subject.is_alone {
            failure = self.judge_parts();
            let level = self.level(&goal.stage);
            let managed: Vec<bool> = self.parts.iter().map(|one| one.part.desired.is_some()).collect();
            decided = cascade(level, &self.seats(), &managed);
        }
        let stage = rolled_up(&self.stages, &self.kept.record.own, &self.seats()).clone();
        self.kept.record.stage = stage;
        let edits = self.edits(&decided)?;
        if !edits.is_empty() {
            // The record first: whoever looks at the parts finds why they were edited.
            self.save().await?;
            self.work = Work::Built;
            match self.context.controller().edit(Batch { edits }).await {
                Ok(_) => {}
                Err(EditError::Refused(Refusal::InvocationCancelled)) => return Err(Halt::Cancelled),
                Err(error) => return Err(part_error(error.to_string())),
            }
        }
        self.note_names();
        Ok(failure.map(|failure| Blocked::Fails(failed(&failure))))
    }

    /// Records the effect of failed parts on the owner, and returns the owner's failure, if there is one.
    fn judge_parts(&mut self) -> Option<Failure> {
        let meaning = self.subject.wanted.desired.on_part_failure;
        let (found, degraded) = match verdict(&self.seats(), meaning) {
            Verdict::Failed(name) => (Some(self.cause(name)), None),
            Verdict::Degraded(names) => (None, Some(self.causes(&names))),
            Verdict::Fine => (None, None),
        };
        self.degraded = degraded;
        let (now, is_down) = (self.now(), self.stages.is_nothing(&self.kept.record.goal));
        let record = &mut self.kept.record;
        let is_latched = record
            .failure
            .as_ref()
            .is_some_and(|failure| &*failure.code == PART_FAILED);
        match found {
            Some(message) if record.failure.is_none() => {
                record.failure = Some(Failure {
                    code: PART_FAILED.into(),
                    message: message.into(),
                    goal: record.goal.clone(),
                    at: now,
                });
            }
            // On the way down nothing more can be taken away: it ends with its cause.
            None if is_latched && is_down => record.failure = None,
            _ => {}
        }
        record.failure.clone()
    }

    /// Returns the message for an owner with a failed part, including the part's own error.
    fn cause(&self, name: &str) -> String {
        let part = self.parts.iter().find(|one| one.part.key.name.as_str() == name);
        let failure = part.and_then(|part| part.record.as_ref()?.failure.as_ref());
        let error = part.and_then(|part| part.row.as_ref()?.error.as_ref());
        let message = failure
            .map(|failure| &failure.message)
            .or(error.map(|error| &error.message));
        let message = message.map_or("", |message| message);
        format!("its part \"{name}\" has failed: {message}")
    }

    /// Returns the message for an owner with several failed parts: the first ones, and the number of the others.
    fn causes(&self, names: &[&str]) -> String {
        let first = names.iter().take(NAMED_MAX).map(|name| self.cause(name));
        let others = names.len().saturating_sub(NAMED_MAX);
        let rest = (others > 0).then(|| format!("and {others} more"));
        first.chain(rest).collect::<Vec<_>>().join("; ")
    }

    fn level(&self, goal: &Stage) -> Level {
        let record = &self.kept.record;
        if self.stages.is_nothing(goal) {
            return Level::Down;
        }
        let is_latched = record
            .failure
            .as_ref()
            .is_some_and(|failure| &*failure.code == PART_FAILED);
        if is_latched {
            return Level::Down;
        }
        if self.stages.is_nothing(&record.own) || self.refusal().is_some() {
            return Level::Keep;
        }
        let reached = self.stages.earlier(goal, &record.own);
        if self.stages.is_before(self.stages.early(), reached) {
            Level::Full
        } else {
            Level::Early
        }
    }

    fn edits(&self, decided: &[Order]) -> Result<Vec<Edit>, Halt> {
        let mut edits = self.old_events();
        edits.extend(self.renames());
        for (declared, order) in self.parts.iter().zip(decided) {
            edits.extend(self.edit(declared, *order)?);
        }
        if !self.subject.is_alone {
            let owned = self.context.owned().iter().map(|view| &view.resource);
            let is_declared = |row: &Row| {
                let is_it = |one: &Declared| one.row.as_ref().is_some_and(|found| found.uid == row.uid);
                self.parts.iter().any(is_it)
            };
            let stray = owned.filter(|row| {
                row.kind.as_str() != EVENT_KIND && !row.intents.is_deleted() && !is_declared(row)
            });
            edits.extend(stray.map(|row| Edit::delete(row.uid)));
        }
        Ok(edits)
    }

    fn edit(&self, declared: &Declared, order: Order) -> Result<Option<Edit>, Halt> {
        let (part, row) = (&declared.part, declared.row.as_ref());
        let own = part.own.as_ref().map_err(|error| part_error(error.to_string()))?;
        let wanted = match (&part.desired, order) {
            (_, Order::Delete) => return Ok(row.map(|row| Edit::delete(row.uid))),
            (None, Order::Create | Order::Keep) => Some((Arc::clone(own), part.format)),
            (Some(desired), order) => {
                let now = declared.desired.as_ref().map(|desired| desired.allowed);
                let allowed = if let Order::Allow(allowed) = order {
                    Some(allowed)
                } else {
                    now
                };
                let spec = allowed.map(|allowed| self.spec_of_part(desired, allowed, part.format, own));
                spec.transpose()?.map(|spec| (spec, Wanted::<()>::FORMAT))
            }
            (None, Order::Allow(_)) => None,
        };
        let Some(spec) = wanted else { return Ok(None) };
        // What is wrong with a part is mended where its owner is declared.
        let paths = Arc::clone(&self.context.row().paths);
        Ok(match row {
            None if order == Order::Keep => None,
            None => {
                let mut new = NewResource::new(
                    Resource::fresh_uid(),
                    part.key.kind.clone(),
                    part.key.name.clone(),
                    spec.0,
                )
                .with_refs(part.refs.clone());
                new.spec_format = spec.1;
                new.owner = Some(self.context.uid());
                new.paths = paths;
                Some(Edit::create(new))
            }
            Some(row) if row.spec == spec.0 && *row.refs == *part.refs && row.paths == paths => None,
            Some(row) => {
                let update = Update {
                    spec: Some(spec),
                    refs: Some(part.refs.clone().into()),
                    paths: Some(paths),
                    ..Update::default()
                };
                Some(Edit::update(row.uid, update))
            }
        })
    }

    fn spec_of_part(
        &self,
        desired: &Desired,
        allowed: Allowed,
        format: u32,
        own: &[u8],
    ) -> Result<Arc<[u8]>, Halt> {
        let deadline = self.kept.record.window.map(|window| window.deadline);
        let by_owner = self.subject.wanted.desired.cleanup_by;
        let desired = Desired {
            allowed,
            cleanup_by: deadline.into_iter().chain(by_owner).min(),
            ..desired.clone()
        };
        let bytes = encode_wanted(&desired, format, own).map_err(|error| part_error(error.to_string()))?;
        Ok(bytes.into())
    }
}

fn part_error(message: String) -> Halt {
    Halt::failed(Error::transient(PART_FAILED, message))
}
