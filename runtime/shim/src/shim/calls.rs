//! Requests of one turn of the shim's loop: validated, intents stored, carried out, results stored, answered.

use super::Shim;
use super::poll::Token;
use crate::clock;
use crate::crash::{self, crash_point};
use crate::journal::{Entry, Life, MAX_STARTS, Record, StopOrder};
use crate::output;
use crate::procfs;
use crate::protocol::{
    Answer, Call, Hello, Lifetime, Message, Output, PAGE, PROTOCOL, Refusal, Request, Spawn, Stop,
    StopReason, Then,
};
use crate::signals;
use crate::spawn::spawn;
use crate::start_id::StartId;
use crate::tag::Tag;

/// The longest grace period and lease term: a day, in milliseconds. Larger values are mistakes, and the bound prevents
/// overflow.
const MAX_SPAN_MS: u64 = 86_400_000;

/// A validated request with the work that remains once its intent is stored.
enum Plan {
    /// No work: the answer is final.
    Done(Answer),
    /// No work: the request is refused.
    Refused(Refusal),
    /// The answer is the state of the process at the end of the turn.
    Show(StartId),
    /// The answer is a page listed at the end of the turn.
    List(Option<StartId>),
    Spawn(Box<Spawn>, u64),
    Signal(StartId),
    Remove(StartId, Option<Output>),
}

/// A change of the table that is undone if it can't be stored.
enum Undo {
    Entry(StartId, Option<Entry>),
    Hello(Token, Option<(u64, Lifetime)>, bool),
}

impl Shim {
    /// Handles the requests that have arrived on these connections.
    pub(super) fn answer(&mut self, readable: &[Token]) {
        let mut requests = Vec::new();
        for token in readable {
            if let Some(connection) = self.connections.get_mut(token) {
                requests.extend(connection.requests().into_iter().map(|request| (*token, request)));
            }
        }
        if requests.is_empty() {
            return;
        }
        // A lease that has run out is over, whatever has arrived since.
        if self
            .lifetime_deadline
            .is_some_and(|due| clock::since_boot_ms() >= due)
        {
            self.lifetime_ended();
        }
        let stored = self.journal.pending();
        let mut undo = Vec::new();
        let plans: Vec<_> = requests
            .into_iter()
            .map(|(token, Request { number, call })| (token, number, self.plan(token, call, &mut undo)))
            .collect();
        if let Err(error) = self.journal.sync() {
            self.journal.drop_pending(stored);
            self.take_back(undo);
            self.refuse_changes(plans, &error.to_string());
            return;
        }
        let starts = plans.iter().any(|(_, _, plan)| matches!(plan, Plan::Spawn(..)));
        let forgets = plans.iter().any(|(_, _, plan)| matches!(plan, Plan::Remove(..)));
        let plans: Vec<_> = plans
            .into_iter()
            .map(|(token, number, plan)| (token, number, self.carry_out(plan)))
            .collect();
        // A pid is of no use after a reboot, so it need not wait for the disk; the end of a record does.
        let stored = if forgets {
            self.journal.sync()
        } else {
            self.journal.write()
        };
        if stored.is_err() {
            // Pids are found again by tag; all of it is stored with the next turn.
            self.journal_retry = Some(clock::since_boot_ms() + super::JOURNAL_RETRY_MS);
        }
        if starts {
            crash_point(crash::STARTED_AFTER);
        }
        for (token, number, plan) in plans {
            self.tell(token, number, plan);
        }
    }

    fn plan(&mut self, token: Token, call: Call, undo: &mut Vec<Undo>) -> Plan {
        let plan = match call {
            Call::Hello(hello) => self.plan_hello(token, hello, undo),
            Call::List { after } => match self.hello(token) {
                Some(_) => Ok(Plan::List(after)),
                None => Err(Refusal::NoEpoch),
            },
            Call::Spawn(order) => self
                .epoch(token)
                .and_then(|epoch| self.plan_spawn(order, epoch, undo)),
            Call::Stop(stop) => self.epoch(token).and_then(|_| self.plan_stop(stop, undo)),
            Call::Forget { id, remove_output } => self
                .epoch(token)
                .and_then(|_| self.plan_forget(id, remove_output)),
            Call::Renew { ttl_ms } => self.epoch(token).and_then(|_| self.renew(ttl_ms)),
        };
        plan.unwrap_or_else(Plan::Refused)
    }

    fn hello(&self, token: Token) -> Option<&Hello> {
        self.connections.get(&token)?.hello()
    }

    /// Returns the epoch of a connection, if it may change processes.
    fn epoch(&self, token: Token) -> Result<u64, Refusal> {
        if self.ending.is_some() {
            return Err(Refusal::Ending);
        }
        let epoch = self
            .hello(token)
            .and_then(|hello| hello.epoch)
            .ok_or(Refusal::NoEpoch)?;
        self.refuse_stale(epoch)?;
        Ok(epoch)
    }

    fn refuse_stale(&self, epoch: u64) -> Result<(), Refusal> {
        match self.table.epoch {
            Some((newest, _)) if newest > epoch || (newest == epoch && self.table.epoch_is_over) => {
                Err(Refusal::StaleEpoch { epoch, newest })
            }
            _ => Ok(()),
        }
    }

    fn plan_hello(&mut self, token: Token, hello: Hello, undo: &mut Vec<Undo>) -> Result<Plan, Refusal> {
        if hello.protocol != PROTOCOL {
            return Err(Refusal::Protocol { supported: PROTOCOL });
        }
        if let Some(epoch) = hello.epoch {
            self.refuse_stale(epoch)?;
            if self.table.epoch != Some((epoch, hello.lifetime)) {
                undo.push(Undo::Hello(token, self.table.epoch, self.table.epoch_is_over));
                let lifetime = hello.lifetime;
                self.record(Record::Epoch { epoch, lifetime });
            }
            let now = clock::since_boot_ms();
            self.lifetime_deadline = match hello.lifetime {
                Lifetime::Lease { ttl_ms } => Some(now + ttl_ms.min(MAX_SPAN_MS)),
                Lifetime::Keep | Lifetime::Connected { .. } => None,
            };
        }
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.greeted(hello);
        }
        Ok(Plan::Done(Answer::Hello {
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }))
    }

    fn plan_spawn(&mut self, order: Box<Spawn>, epoch: u64, undo: &mut Vec<Undo>) -> Result<Plan, Refusal> {
        let id = &order.id;
        if self.table.get(id).is_some() {
            return Ok(Plan::Show(id.clone()));
        }
        for (other, entry) in self.table.starts_of(id) {
            if entry.lives() {
                return Err(Refusal::Occupied {
                    living: other.clone(),
                });
            }
            if other.counter() > id.counter() {
                return Err(Refusal::Superseded { newer: other.clone() });
            }
        }
        if self.table.len() >= MAX_STARTS {
            return Err(Refusal::Full { most: MAX_STARTS });
        }
        if let Some(output) = order.output.as_ref().filter(|output| !output::is_allowed(output)) {
            let path = output.path.display();
            return Err(Refusal::Malformed(format!(
                "`{path}` is no absolute path of a file"
            )));
        }
        crash_point(crash::START_BEFORE);
        undo.push(Undo::Entry(id.clone(), None));
        self.record(Record::Start {
            id: id.clone(),
            epoch,
            at_ms: clock::unix_ms(),
            output: order.output.clone(),
        });
        Ok(Plan::Spawn(order, epoch))
    }

    fn plan_stop(&mut self, stop: Stop, undo: &mut Vec<Undo>) -> Result<Plan, Refusal> {
        if signals::named(&stop.signal).is_none() {
            return Err(Refusal::Malformed(format!(
                "`{}` is no signal to stop with",
                stop.signal
            )));
        }
        let Some(entry) = self.table.get(&stop.id) else {
            return Ok(Plan::Done(Answer::Process(None)));
        };
        if !entry.lives() {
            return match stop.then {
                Then::Keep => Ok(Plan::Show(stop.id)),
                then => self.plan_forget(stop.id, then == Then::ForgetWithOutput),
            };
        }
        let before = entry.stop.clone();
        let order = merged(&stop, before.as_deref());
        if before.as_deref() == Some(&order) {
            return Ok(Plan::Show(stop.id));
        }
        crash_point(crash::STOP_BEFORE);
        undo.push(Undo::Entry(stop.id.clone(), Some(entry.clone())));
        let id = stop.id.clone();
        self.record(Record::Stop { id, order });
        // A second order with the same signal only brings the deadline forward.
        match before.is_some_and(|before| before.signal == stop.signal) {
            true => {
                self.set_deadline(&stop.id);
                Ok(Plan::Show(stop.id))
            }
            false => Ok(Plan::Signal(stop.id)),
        }
    }

    fn plan_forget(&self, id: StartId, remove_output: bool) -> Result<Plan, Refusal> {
        let Some(entry) = self.table.get(&id) else {
            return Ok(Plan::Done(Answer::Done));
        };
        if entry.lives() {
            return Err(Refusal::StillRunning);
        }
        crash_point(crash::FORGET_BEFORE);
        let output = entry.output.as_deref().filter(|_| remove_output).cloned();
        Ok(Plan::Remove(id, output))
    }

    fn renew(&mut self, ttl_ms: u64) -> Result<Plan, Refusal> {
        if !matches!(self.lifetime(), Some(Lifetime::Lease { .. })) {
            return Err(Refusal::Malformed("there is no lease to renew".to_owned()));
        }
        self.lifetime_deadline = Some(clock::since_boot_ms() + ttl_ms.min(MAX_SPAN_MS));
        Ok(Plan::Done(Answer::Done))
    }

    /// Performs the work of a stored intent and returns the remaining plan for the answer.
    fn carry_out(&mut self, plan: Plan) -> Plan {
        match plan {
            Plan::Spawn(order, epoch) => {
                self.start(&order, epoch);
                Plan::Show(order.id)
            }
            Plan::Signal(id) => {
                crash_point(crash::SIGNAL_BEFORE);
                self.signal_stop(&id);
                crash_point(crash::SIGNAL_AFTER);
                Plan::Show(id)
            }
            Plan::Remove(id, output) => {
                self.forget(id, output.as_ref());
                Plan::Done(Answer::Done)
            }
            other => other,
        }
    }

    fn start(&mut self, order: &Spawn, epoch: u64) {
        crash_point(crash::SPAWN_BEFORE);
        let id = order.id.clone();
        let tag = Tag {
            instance: self.table.instance.clone(),
            id: id.clone(),
            epoch,
        };
        match spawn(order, &tag, self.groups.as_ref(), self.files) {
            Ok(spawned) => {
                crash_point(crash::SPAWN_AFTER);
                let pid = spawned.pid.as_raw_pid().unsigned_abs();
                // It is not reaped yet, so it is there even if it has ended.
                let start_time = procfs::stat(spawned.pid).map_or(0, |stat| stat.start_time);
                self.children.insert(pid, id.clone());
                if let Some(output) = &order.output {
                    let now = clock::since_boot_ms();
                    self.outputs.add(&id, output, self.poll.inotify(), now);
                }
                let memory = spawned.memory;
                self.record(Record::Started {
                    id,
                    pid,
                    start_time,
                    memory,
                });
            }
            Err(failure) => self.record(Record::Failed { id, failure }),
        }
    }

    fn tell(&mut self, token: Token, number: u64, plan: Plan) {
        let answer = match plan {
            Plan::Done(answer) => Ok(answer),
            Plan::Refused(refusal) => Err(refusal),
            Plan::Show(id) => Ok(Answer::Process(
                self.table.show(&id, self.adopted.contains_key(&id)),
            )),
            Plan::List(after) => Ok(self.page(after.as_ref())),
            // They have been carried out.
            Plan::Spawn(..) | Plan::Signal(_) | Plan::Remove(..) => Ok(Answer::Done),
        };
        if let Some(connection) = self.connections.get_mut(&token) {
            connection.send(&Message::Answer { number, answer });
        }
    }

    fn page(&self, after: Option<&StartId>) -> Answer {
        let ids = self.table.after(after).map(|(id, _)| id);
        let mut processes: Vec<_> = ids
            .take(PAGE + 1)
            .filter_map(|id| self.table.show(id, self.adopted.contains_key(id)))
            .collect();
        let more = processes.len() > PAGE;
        processes.truncate(PAGE);
        Answer::Processes { processes, more }
    }

    /// Undoes changes that could not be stored, the last one first.
    fn take_back(&mut self, undo: Vec<Undo>) {
        for step in undo.into_iter().rev() {
            match step {
                Undo::Entry(id, before) => self.table.put_back(id, before),
                Undo::Hello(token, epoch, is_over) => {
                    (self.table.epoch, self.table.epoch_is_over) = (epoch, is_over);
                    self.connections.remove(&token);
                }
            }
        }
    }

    /// Answers the requests of a turn whose intents could not be stored.
    fn refuse_changes(&mut self, plans: Vec<(Token, u64, Plan)>, error: &str) {
        self.log.line(&format!("the journal can't be written: {error}"));
        for (token, number, plan) in plans {
            let plan = match plan {
                Plan::Spawn(..) | Plan::Signal(_) | Plan::Remove(..) => {
                    Plan::Refused(Refusal::Journal(error.to_owned()))
                }
                other => other,
            };
            self.tell(token, number, plan);
        }
    }
}

/// Merges a stop with an earlier one: the sooner deadline and the more thorough removal.
fn merged(stop: &Stop, before: Option<&StopOrder>) -> StopOrder {
    let deadline_ms = clock::since_boot_ms() + stop.grace_ms.min(MAX_SPAN_MS);
    let deadline_ms = before.map_or(deadline_ms, |before| before.deadline_ms.min(deadline_ms));
    StopOrder {
        reason: before.map_or(StopReason::Ordered, |before| before.reason),
        signal: stop.signal.clone(),
        deadline_ms,
        then: before.map_or(stop.then, |before| before.then.max(stop.then)),
    }
}

/// Returns the output files to remove together with a finally stopped start; `None` if the record is kept.
pub(super) fn forgotten(entry: &Entry) -> Option<Option<Output>> {
    let is_over = matches!(entry.life, Life::Exited(_) | Life::Failed(_));
    match entry.stop.as_ref().filter(|_| is_over)?.then {
        Then::Keep => None,
        Then::Forget => Some(None),
        Then::ForgetWithOutput => Some(entry.output.as_deref().cloned()),
    }
}
