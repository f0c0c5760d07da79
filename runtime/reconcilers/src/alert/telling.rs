//! The messages of an alert: to whom, and what they say.

use watershed_controller::{Timestamp, Uid};
use watershed_delivery::{Fact, Key, Message, Notification, Receiver, Sender, message};
use watershed_proto::{AlertSpec, Notifier, Value};

use super::{policy::Telling, question::Found};

/// The parts that messages are made of.
pub(super) struct Teller<'a> {
    pub(super) spec: &'a AlertSpec,
    pub(super) name: &'a str,
    pub(super) uid: Uid,
    pub(super) project: &'a str,
    pub(super) moment: Timestamp,
    pub(super) telling: Telling,
    pub(super) found: &'a Found,
}

impl Teller<'_> {
    /// Returns the messages, one for each receiver; none if nobody is told. The first has the number after `order`.
    pub(super) fn messages(&self, order: u64) -> Vec<Notification> {
        let (verdict, suppressed) = match self.telling {
            Telling::Nobody => return Vec::new(),
            Telling::Verdict { suppressed } => (self.found.verdict.as_str(), suppressed),
            Telling::Recovery => ("recovered", 0),
        };
        receivers(self.spec)
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
        let what = match (&self.found.rows, &self.found.error) {
            (Some(rows), _) => match (self.found.has_more, rows.rows.len()) {
                (true, count) => format!("more than {count} rows"),
                (false, 1) => "1 row".to_owned(),
                (false, count) => format!("{count} rows"),
            },
            (None, Some(error)) => format!("can't be checked: {}", error.message),
            (None, None) => "has recovered".to_owned(),
        };
        let mut facts = vec![Fact {
            label: "moment".to_owned(),
            value: message::instant(self.moment),
        }];
        if suppressed > 0 {
            facts.push(Fact {
                label: "not told since the last message".to_owned(),
                value: suppressed.to_string(),
            });
        }
        let notes = spec.annotations.iter().map(|(label, value)| Fact {
            label: label.clone(),
            value: value.clone(),
        });
        facts.extend(notes);
        Message {
            schema: message::SCHEMA.to_owned(),
            key: Key::new(self.uid, self.moment, verdict, &receiver.id()),
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
            is_test: false,
        }
    }
}

/// Returns the receivers that a spec names, each once.
pub(super) fn receivers(spec: &AlertSpec) -> Vec<Receiver> {
    let mut receivers: Vec<Receiver> = spec
        .notifiers
        .iter()
        .flat_map(|notifier| of_notifier(notifier, spec))
        .collect();
    receivers.sort();
    receivers.dedup();
    receivers
}

fn of_notifier(notifier: &Notifier, spec: &AlertSpec) -> Vec<Receiver> {
    let properties = notifier.properties.clone().unwrap_or_default();
    let connector = properties.str("connector").unwrap_or(&notifier.connector);
    let texts = |key: &str| {
        let list = properties.get(key).and_then(Value::as_list).unwrap_or_default();
        list.iter()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let addresses = ["recipients", "users", "channels", "webhooks"]
        .map(texts)
        .concat();
    let of = |to: String| Receiver {
        connector: connector.to_owned(),
        variables: match to.contains("{{") {
            true => spec.variables.clone(),
            false => Default::default(),
        },
        to,
    };
    match notifier.connector.as_str() {
        "email" | "slack" => addresses.into_iter().map(of).collect(),
        _ => vec![of(String::new())],
    }
}
