//! A call, from its first input to its last.

use std::collections::BTreeMap;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::background::until;
use super::operate::Desking;
use super::persist::{PersistError, Persister, Store};
use super::{ApplyError, Executor, Report};
use crate::graph::{Extent, Graph};
use crate::message::Message;
use crate::plan::{Plan, plan};
use crate::planner::{CallError, Input, Observed, Options, Planner};
use crate::reference::Ref;
use crate::value::Value;

async fn written<V: Value>(
    store: &mut Option<Store<'_, V>>,
) -> (Result<(), String>, Vec<crate::planner::Start<V>>) {
    match store {
        Some(store) => store.written().await,
        None => std::future::pending().await,
    }
}

impl<V: Value> Executor<V> {
    /// Converges the current graph to the intended one, as far as possible now. Without an intended graph, everything
    /// is deleted.
    ///
    /// The call returns when nothing more can be done now: everything is as intended, or waits for an
    /// operation in the background, a time, or something outside. The status says which. Dropping the
    /// call loses nothing: operations go on, and the next call takes up their results.
    ///
    /// # Errors
    /// Returns an error if the graphs are not valid; nothing has run then.
    pub async fn converge(
        &self,
        current: &mut Graph<V>,
        intended: Option<&Graph<V>>,
        extent: &Extent,
    ) -> Result<Report, CallError> {
        let options = Options {
            limit: self.limit,
            ..Options::default()
        };
        self.call(current, intended, extent, options).await
    }

    /// Plans what [`Executor::converge`] would do. Handlers are only asked which values can't be modified.
    ///
    /// # Errors
    /// Returns an error if the graphs are not valid.
    pub async fn plan(
        &self,
        current: &Graph<V>,
        intended: Option<&Graph<V>>,
        extent: &Extent,
    ) -> Result<Plan, CallError> {
        let desk = self.desk(current.name());
        let work = desk.work.lock().await;
        self.check_holder(current)?;
        let now = (self.clock)();
        let mut answers: BTreeMap<Ref, Result<bool, String>> = BTreeMap::new();
        loop {
            let mut open = Vec::new();
            let mut answer = |reference: &Ref, old: &V, new: &V| {
                answers.get(reference).cloned().unwrap_or_else(|| {
                    open.push((reference.clone(), old.clone(), new.clone()));
                    Ok(false)
                })
            };
            let found = plan(
                &self.types,
                current,
                &work.operations,
                intended,
                extent,
                now,
                &mut answer,
            )?;
            if open.is_empty() {
                return Ok(found);
            }
            for (reference, old, new) in open {
                let answer = self.needs_recreate(&reference, &old, &new).await;
                answers.insert(reference, answer);
            }
        }
    }

    /// Performs exactly the operations of a plan.
    ///
    /// # Errors
    /// If one of the graphs is not the one that the plan was made for; nothing has run then.
    pub async fn apply(
        &self,
        current: &mut Graph<V>,
        intended: Option<&Graph<V>>,
        plan: &Plan,
    ) -> Result<Report, ApplyError> {
        plan.check(current, intended)?;
        Ok(self
            .call(current, intended, &plan.extent, plan.options(self.limit))
            .await?)
    }

    /// Refuses a graph on which another executor of this process has running operations: they would be taken for
    /// remains of a crash, and repeated.
    fn check_holder(&self, current: &Graph<V>) -> Result<(), CallError> {
        let other = current
            .holder()
            .filter(|holder| self.session.is_other_live(holder));
        match other.filter(|_| current.is_under_way()) {
            Some(_) => Err(CallError::HeldElsewhere(current.name().to_owned())),
            None => Ok(()),
        }
    }

    /// Marks all observable items as unknown, so that the next call observes them.
    pub fn recheck(&self, current: &mut Graph<V>) {
        let observed = |reference: &Ref| {
            self.types
                .get(reference.type_name())
                .is_some_and(|known| known.observes)
        };
        let items = current
            .items()
            .filter(|item| !item.is_external() && item.state().operation().is_none());
        let refs: Vec<Ref> = items
            .map(|item| item.reference().clone())
            .filter(observed)
            .collect();
        for reference in refs {
            // It was there a line ago.
            let _ = current.mark_unknown(&reference);
        }
    }

    async fn call(
        &self,
        current: &mut Graph<V>,
        intended: Option<&Graph<V>>,
        extent: &Extent,
        options: Options,
    ) -> Result<Report, CallError> {
        let never = CancellationToken::new();
        match self.run(current, intended, extent, options, None, &never).await {
            Ok(report) => Ok(report),
            Err(PersistError::Refused(error)) => Err(error),
            Err(PersistError::NotStored(_)) => unreachable!("nothing is stored without a persister"),
        }
    }

    /// Converges like [`Executor::converge`], and stores the current graph after every change and at the end. After a
    /// crash, a call with the last stored graph finds everything that was done.
    ///
    /// Once `halt` is cancelled nothing further is started, what runs is cancelled, and the call ends when
    /// that has returned or its time is up.
    ///
    /// # Errors
    /// Returns an error if the graphs are not valid, or if the graph could not be stored.
    pub async fn converge_persisted(
        &self,
        current: &mut Graph<V>,
        intended: Option<&Graph<V>>,
        extent: &Extent,
        persister: &mut dyn Persister<V>,
        halt: &CancellationToken,
    ) -> Result<Report, PersistError> {
        let options = Options {
            limit: self.limit,
            ..Options::default()
        };
        self.run(current, intended, extent, options, Some(persister), halt)
            .await
    }

    async fn run(
        &self,
        current: &mut Graph<V>,
        intended: Option<&Graph<V>>,
        extent: &Extent,
        options: Options,
        persister: Option<&mut dyn Persister<V>>,
        halt: &CancellationToken,
    ) -> Result<Report, PersistError> {
        let desk = self.desk(current.name());
        let graph = current.name().to_owned();
        let mut store = persister.map(|persister| Store::new(persister, current));
        let mut work = desk.work.lock().await;
        let work = &mut *work;
        work.generation += 1;
        let operations = &mut work.operations;
        self.check_holder(current)?;
        let mut planner = Planner::new(&self.types, current, operations, intended, extent, options)?;
        planner.hold(self.session.id());
        let mut desking = Desking::new(self, &desk, &graph, work.generation, store.is_some());
        while let Ok(message) = work.inbox.try_recv() {
            self.take(&mut planner, work.generation, message, &mut desking);
        }
        desking.carry_out(planner.step((self.clock)(), Input::Begin));
        let (mut is_halted, mut not_stored) = (false, None);
        loop {
            while let Some(input) = desking.at_hand.pop_front() {
                desking.carry_out(planner.step((self.clock)(), input));
            }
            if let Some(store) = store.as_mut().filter(|_| not_stored.is_none()) {
                store.write(planner.current(), &mut desking);
            }
            let is_writing = store.as_ref().is_some_and(Store::is_writing);
            if planner.is_done() && !is_writing {
                break;
            }
            // Each of the four is cancel safe. What has been stored lets operations start, so it goes first.
            tokio::select! {
                biased;
                (result, covered) = written(&mut store), if is_writing => match result {
                    Ok(()) if is_halted => desking.give_up(covered),
                    Ok(()) => desking.begin(covered),
                    Err(error) => {
                        not_stored = Some(error);
                        desking.give_up(covered);
                        desking.carry_out(planner.step((self.clock)(), Input::Halt));
                    }
                },
                () = halt.cancelled(), if !is_halted => {
                    is_halted = true;
                    desking.give_up_parked();
                    self.cancel(&graph, |_, _| true);
                    desking.carry_out(planner.step((self.clock)(), Input::Halt));
                }
                Some(message) = work.inbox.recv() => {
                    self.take(&mut planner, work.generation, message, &mut desking);
                }
                () = until(desk.next_deadline()) => {
                    if let Some(at) = desk.take_deadlines(Instant::now()) {
                        let message = Message::Tick { at };
                        self.take(&mut planner, work.generation, message, &mut desking);
                    }
                }
            }
        }
        self.notices.clear(&graph, || work.inbox.is_empty());
        let (log, status) = planner.into_report();
        not_stored.map_or(Ok(Report { log, status }), |error| {
            Err(PersistError::NotStored(error))
        })
    }

    fn take(
        &self,
        planner: &mut Planner<'_, V>,
        generation: u64,
        message: Message,
        desking: &mut Desking<'_, V>,
    ) {
        let mut now = (self.clock)();
        let input = match message {
            Message::Ended { id, result, at } => {
                now = at;
                Input::Ended { id, result }
            }
            Message::Background(id) => Input::Background { id },
            Message::Cancel { ids, at } => {
                now = at;
                Input::Cancel(ids)
            }
            Message::Answered {
                generation: of,
                reference,
                answer,
            } if of == generation => Input::Answered { reference, answer },
            Message::Observed {
                generation: of,
                reference,
                found,
            } if of == generation => match found.downcast::<Observed<V>>() {
                Ok(found) => Input::Observed {
                    reference,
                    found: *found,
                },
                Err(_) => return,
            },
            Message::Answered { .. } | Message::Observed { .. } => return,
            Message::Tick { at } => {
                now = now.max(at);
                Input::Tick
            }
        };
        desking.carry_out(planner.step(now, input));
    }
}
