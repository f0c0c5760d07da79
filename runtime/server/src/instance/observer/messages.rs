//! Evaluations of alerts and ends of messages, reported once each.

use std::collections::HashMap;

use watershed_api::documents::{Event, ResourceName, Time};
use watershed_controller::message::Message;
use watershed_controller::resource::Row;
use watershed_controller::{Resource, Timestamp, Uid};
use watershed_delivery::{KIND, Notification, Record, Standing};
use watershed_reconcilers::alert::{self, record::AlertRecord, record::Entry};

/// The last reported evaluation or attempt of each alert and message.
#[derive(Default)]
pub(super) struct Messages {
    /// The time and the moment of each alert's last evaluation.
    evaluated: HashMap<Uid, (Timestamp, Timestamp)>,
    /// The end of each message.
    ended: HashMap<Uid, Timestamp>,
    /// The number of failed attempts at each message that will be tried again.
    failed: HashMap<Uid, u32>,
}

impl Messages {
    /// Records alerts and messages as they stand, without reporting their past.
    pub(super) fn new<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut messages = Self::default();
        for row in rows {
            messages.of(row);
        }
        messages
    }

    /// Returns the events in a row that were not reported yet; of many evaluations only those still in its history.
    pub(super) fn of(&mut self, row: &Row) -> Vec<Event> {
        match row.kind.as_str() {
            alert::KIND => self.evaluations(row),
            KIND => self.end(row).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn evaluations(&mut self, row: &Row) -> Vec<Event> {
        let history = state::<AlertRecord>(row).unwrap_or_default().history;
        let id = |entry: &Entry| (entry.at, entry.moment);
        let Some(newest) = history.first().map(id) else {
            return Vec::new();
        };
        let told = self.evaluated.insert(row.uid, newest);
        let news = history.iter().take_while(|entry| Some(id(entry)) != told);
        let event = |entry: &Entry| Event::AlertEvaluated {
            at: Time::from_millis(entry.at.0),
            resource: ResourceName::new(row.kind.as_str(), row.name.as_str()),
            moment: Time::from_millis(entry.moment.0),
            verdict: entry.verdict.as_str().to_owned(),
            told: entry.told.iter().map(|key| key.as_str().to_owned()).collect(),
        };
        let mut events: Vec<Event> = news.map(event).collect();
        events.reverse();
        events
    }

    fn end(&mut self, row: &Row) -> Option<Event> {
        let record: Record = state(row)?;
        let ended = match record.standing {
            Standing::Waiting => {
                self.ended.remove(&row.uid);
                return self.delay(row, record);
            }
            Standing::Delivered { at, .. } | Standing::Dead { at } => at,
        };
        self.failed.remove(&row.uid);
        if self.ended.insert(row.uid, ended) == Some(ended) {
            return None;
        }
        let spec: Notification = Resource::spec_of(row).ok()?;
        let at = Time::from_millis(ended.0);
        let resource = ResourceName::new(row.kind.as_str(), row.name.as_str());
        let (title, receiver) = (spec.message.title.clone(), spec.receiver.label());
        let attempts = record.attempts;
        Some(match record.standing {
            Standing::Dead { .. } => Event::NotificationDead {
                at,
                resource,
                title,
                receiver,
                attempts,
                failure: record.failure.unwrap_or_default(),
            },
            _ => Event::NotificationDelivered {
                at,
                resource,
                title,
                receiver,
                attempts,
            },
        })
    }

    /// Returns the event of a failed attempt at a message that will be tried again.
    fn delay(&mut self, row: &Row, record: Record) -> Option<Event> {
        let (Some(next), Some(failure)) = (record.next, record.failure) else {
            return None;
        };
        if self.failed.insert(row.uid, record.attempts) == Some(record.attempts) {
            return None;
        }
        let spec: Notification = Resource::spec_of(row).ok()?;
        Some(Event::NotificationDelayed {
            at: Time::now(),
            resource: ResourceName::new(row.kind.as_str(), row.name.as_str()),
            title: spec.message.title.clone(),
            receiver: spec.receiver.label(),
            attempts: record.attempts,
            failure,
            next_attempt_at: Time::from_millis(next.0),
        })
    }

    /// Forgets a resource that is gone.
    pub(super) fn forget(&mut self, uid: Uid) {
        self.evaluated.remove(&uid);
        self.ended.remove(&uid);
        self.failed.remove(&uid);
    }
}

fn state<S: Message>(row: &Row) -> Option<S> {
    Resource::state_of(row).ok().flatten()
}
