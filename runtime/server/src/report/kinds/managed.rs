//! Managed resources in documents: results, states, transitions and parts.

use std::collections::HashMap;

use serde_json::{Value, json};
use watershed_api::documents::{HistoryTransition, ResourceName, Time};
use watershed_controller::Resource;
use watershed_core::{Row, Timestamp, Uid};
use watershed_managers::{Current, Desired, ManagedState, Reason, Record, Transition, desired_of, record_of};
use watershed_proto::ManagedSpec;
use watershed_reconcilers::managed::{self, Known, Spec};

use crate::report::Entry;
use crate::report::run_id;

/// Returns true if a resource is managed, or the remainder of a deleted managed one.
pub(crate) fn is_managed(row: &Row) -> bool {
    row.kind.as_str() == managed::KIND || row.kind == watershed_managers::teardown_kind(managed::KIND)
}

/// Returns the stored record of a managed resource; none for other kinds.
pub(crate) fn record(row: &Row) -> Option<Record> {
    row.state
        .as_deref()
        .filter(|_| is_managed(row))
        .and_then(|state| record_of(state).ok())
}

/// Returns the result of a managed resource; none for other kinds and before the first look.
pub(super) fn result(row: &Row) -> Option<Value> {
    let record = record(row)?;
    let desired = desired_of(&row.spec).ok();
    let wanted = desired.as_ref().map(|desired| record.desired(desired).as_str());
    let kept = Resource::state_of::<ManagedState<Known>>(row).ok().flatten();
    let known = kept.and_then(|kept| kept.details);
    let message = known
        .as_ref()
        .map(|known| known.message.as_str())
        .filter(|said| !said.is_empty());
    let mut said = json!({
        "stage": record.stage.as_str(),
        "goal": record.goal.as_str(),
        "desired": wanted,
        "since": since(&record),
        "message": message,
        "step": record.current.as_ref().map(|step| on_the_way(step, spec_of(row).as_ref())),
        "failure": record.failure.as_ref().map(|failure| json!({"code": &*failure.code, "message": &*failure.message})),
        "event": told(&record, desired.as_ref()),
    });
    let last = record.transitions.last().map(|last| last.reason);
    if let (Some(Reason::Missed), Some(said)) = (last, said.as_object_mut()) {
        said.insert("missed".to_owned(), true.into());
    }
    if let (Some(window), Some(said)) = (&record.window, said.as_object_mut()) {
        let now = Timestamp(Time::now().millis());
        let window = json!({
            "phase": watershed_managers::phase_name(window.phase(now)),
            "opening": time(window.opening),
            "start": time(window.start),
            "end": time(window.end),
            "deadline": time(window.deadline),
            "overdue": window.deadline <= now && !record.is_clean(),
        });
        said.insert("window".to_owned(), window);
    }
    Some(said)
}

/// Returns the stored state: the result, with the resource's data and its latest transitions.
pub(super) fn state(row: &Row) -> Option<Value> {
    let record = record(row)?;
    let mut said = result(row)?;
    let kept = Resource::state_of::<ManagedState<Known>>(row).ok().flatten();
    let data = kept.and_then(|kept| kept.details).map(|known| known.data.clone());
    let transitions: Vec<Value> = record.transitions.iter().map(transition).collect();
    if let Some(said) = said.as_object_mut() {
        said.insert("data".to_owned(), data.unwrap_or_default().into());
        said.insert("transitions".to_owned(), transitions.into());
    }
    Some(said)
}

fn transition(one: &Transition) -> Value {
    json!({
        "from": one.from.as_str(),
        "to": one.to.as_str(),
        "at": time(one.at),
        "reason": one.reason.as_str(),
        "detail": one.detail,
        "run": run_of(one),
    })
}

/// Returns the id of the run that recorded a transition; empty where none was kept.
fn run_of(one: &Transition) -> String {
    match one.epoch {
        0 => String::new(),
        epoch => run_id(epoch, one.invocation.0),
    }
}

/// Returns the transitions of all managed resources, or of one and its parts, for `history`.
pub(crate) fn past_changes(entries: &[Entry], of: Option<&Row>) -> Vec<HistoryTransition> {
    let is_meant = |row: &Row| of.is_none_or(|of| row.uid == of.uid || row.owner == Some(of.uid));
    let rows = entries.iter().map(|entry| entry.row.as_ref());
    let told = |row: &Row| {
        let resource = ResourceName::new(row.kind.as_str(), row.name.as_str());
        let past = record(row).map(|record| record.transitions).unwrap_or_default();
        past.into_iter().map(move |one| HistoryTransition {
            at: Time::from_millis(one.at.0),
            resource: resource.clone(),
            from: one.from.to_string(),
            to: one.to.to_string(),
            reason: one.reason.as_str().to_owned(),
            run: run_of(&one),
            detail: one.detail,
            moment: None,
            rows: None,
            messages: Vec::new(),
        })
    };
    rows.filter(|row| is_meant(row)).flat_map(told).collect()
}

fn since(record: &Record) -> Value {
    record
        .transitions
        .last()
        .map(|last| time(last.at))
        .unwrap_or_default()
}

/// Returns the event that overrides the desired stage, by source and id; none if no override is in force.
fn told<'a>(record: &'a Record, desired: Option<&Desired>) -> Option<&'a str> {
    let told = record.stage_override.as_ref()?;
    desired
        .filter(|desired| told.holds(desired))
        .map(|_| told.by.as_str())
}

fn on_the_way(step: &Current, spec: Option<&ManagedSpec>) -> Value {
    let stated = spec.and_then(|spec| spec.steps.iter().find(|stated| stated.to == step.to.as_str()));
    let action = stated.and_then(|stated| stated.actions.iter().find(|one| one.name == step.action));
    let waits_for = step
        .awaiting
        .as_ref()
        .map(|awaiting| awaiting.event.kind.as_str());
    json!({
        "to": step.to.as_str(),
        "action": step.action,
        "attempt": step.attempts.count.saturating_add(1),
        "attempts": action.map(|action| action.attempts),
        "next_at": step.attempts.next.or(step.resume_at).map(time),
        "error": step.error.as_deref(),
        "waits_for_event": waits_for,
        "done": step.finished.iter().map(|one| one.action.as_str()).collect::<Vec<_>>(),
    })
}

fn spec_of(row: &Row) -> Option<ManagedSpec> {
    if row.kind.as_str() != managed::KIND {
        return None;
    }
    Some(Resource::spec_of::<Spec>(row).ok()?.spec.0.clone())
}

fn time(at: Timestamp) -> Value {
    serde_json::to_value(Time::from_millis(at.0)).unwrap_or_default()
}

/// The parts of managed resources in one reading, by owner.
pub(crate) struct Parts<'a>(HashMap<Uid, Vec<&'a Row>>);

impl<'a> Parts<'a> {
    /// Groups all parts by their owner, in one pass.
    pub(crate) fn of(entries: &'a [Entry]) -> Self {
        let mut by_owner: HashMap<Uid, Vec<&Row>> = HashMap::new();
        let rows = entries.iter().map(|entry| entry.row.as_ref());
        for row in rows.filter(|row| row.kind.as_str() == managed::KIND && !row.intents.is_deleted()) {
            if let Some(owner) = row.owner {
                by_owner.entry(owner).or_default().push(row);
            }
        }
        Self(by_owner)
    }

    /// Adds the parts of an owner to its result, in their order.
    pub(crate) fn show_in(&self, result: &mut Option<Value>, owner: &Row) {
        let (Some(Value::Object(said)), Some(rows)) = (result, self.0.get(&owner.uid)) else {
            return;
        };
        let Some(spec) = spec_of(owner) else { return };
        let part = |row: &&Row| {
            let own = row.name.as_str().rsplit('.').next().unwrap_or_default();
            let stated = spec.parts.iter().find(|part| part.name.eq_ignore_ascii_case(own));
            let order = stated.map(|part| part.order).unwrap_or_default();
            let mut said = json!({"name": own, "resource": row.name.as_str(), "order": order});
            if let (Some(Value::Object(result)), Some(said)) = (result_of_part(row), said.as_object_mut()) {
                said.extend(result);
            }
            (order, said)
        };
        let mut parts: Vec<(u32, Value)> = rows.iter().map(part).collect();
        parts.sort_by_key(|(order, _)| *order);
        let parts: Vec<Value> = parts.into_iter().map(|(_, part)| part).collect();
        // An owner that takes its parts down with a failed one has failed itself.
        let has_failed = |part: &&Value| !part["failure"].is_null();
        let failed: Vec<&Value> = parts
            .iter()
            .filter(has_failed)
            .map(|part| &part["name"])
            .collect();
        if said.get("failure").is_some_and(Value::is_null) && !failed.is_empty() {
            said.insert("degraded_by".to_owned(), json!(failed));
        }
        said.insert("parts".to_owned(), parts.into());
    }
}

/// Returns the result of a part, with its error and the reason why it is not ready.
fn result_of_part(row: &Row) -> Option<Value> {
    let mut said = result(row)?;
    if let Some(said) = said.as_object_mut() {
        said.insert("unready".to_owned(), row.unready.as_deref().into());
        let error = row.error.as_ref().map(|error| error.message.to_string());
        said.insert("error".to_owned(), error.into());
    }
    Some(said)
}
