//! Creation of the messages of an alert.

use watershed_controller::{Timestamp, Uid};
use watershed_delivery::{Fact, Key, Message, Notification, Receiver, Sender, message};
use watershed_proto::AlertSpec;

use super::{policy::Telling, record::Finding};
use crate::dispatch::receivers;
use crate::excerpt;

/// The contents of an alert's messages.
pub(super) struct Teller<'a> {
    pub(super) spec: &'a AlertSpec,
    pub(super) name: &'a str,
    pub(super) uid: Uid,
    pub(super) project: &'a str,
    pub(super) moment: Timestamp,
    pub(super) telling: Telling,
    pub(super) found: &'a Finding,
    /// The number of failed intervals that the message is about; 0 or 1 if it is not about several.
    pub(super) failed_intervals: u32,
    /// The time of a trial; none for a real message.
    pub(super) tried: Option<Timestamp>,
}

impl Teller<'_> {
    /// Returns the messages, one per receiver; none if nobody is told. Their order is the number after `order`.
    pub(super) fn messages(&self, order: u64) -> Vec<Notification> {
        let (verdict, suppressed) = match self.telling {
            Telling::Nobody => return Vec::new(),
            Telling::Verdict { suppressed } => (self.found.verdict.as_str(), suppressed),
            Telling::Recovery => ("recovered", 0),
        };
        receivers(&self.spec.notifiers, &self.spec.variables)
            .into_iter()
            .map(|receiver| Notification {
                message: self.message(verdict, suppressed, &receiver),
                receiver,
                sender: self.uid,
                order: order + 1,
            })
            .collect()
    }

    fn message(&self, verdict: &str, suppressed: u32, receiver: &Receiver) -> Message {
        let spec = self.spec;
        let title = match spec.display_name.as_str() {
            "" => self.name,
            title => title,
        };
        let what = match (&self.found.rows, self.found.error.as_str()) {
            (Some(rows), _) => match (self.found.has_more, rows.rows.len()) {
                (true, count) => format!("more than {count} rows"),
                (false, 1) => "1 row".to_owned(),
                (false, count) => format!("{count} rows"),
            },
            (None, "") if verdict == "recovered" => "has recovered".to_owned(),
            (None, "") => "no rows".to_owned(),
            (None, error) => format!("can't be checked: {error}"),
        };
        let mut facts = vec![Fact {
            label: "as of".to_owned(),
            value: message::in_words(
                self.moment,
                excerpt::zone(spec.refresh_schedule.as_ref(), spec.data.as_ref()),
            ),
        }];
        if suppressed > 0 {
            facts.push(Fact {
                label: "not told since the last message".to_owned(),
                value: suppressed.to_string(),
            });
        }
        if self.failed_intervals > 1 {
            facts.push(Fact {
                label: "failed intervals".to_owned(),
                value: self.failed_intervals.to_string(),
            });
        }
        let notes = spec.annotations.iter().map(|(label, value)| Fact {
            label: label.clone(),
            value: value.clone(),
        });
        facts.extend(notes);
        Message {
            schema: message::SCHEMA.to_owned(),
            key: match self.tried {
                None => Key::new(self.uid, self.moment, verdict, &receiver.id()),
                // Each is a message of its own, and none of them is one that is due.
                Some(at) => Key::new(self.uid, at, "test", &receiver.id()),
            },
            project: self.project.to_owned(),
            sender: Sender {
                kind: super::KIND.to_owned(),
                name: self.name.to_owned(),
            },
            verdict: verdict.to_owned(),
            moment: message::instant(self.moment),
            title: format!("{title}: {what}"),
            text: spec.description.clone(),
            facts,
            table: self.found.rows.clone(),
            attachment: None,
            series: self.found.series.clone(),
            is_test: self.tried.is_some(),
        }
    }
}
