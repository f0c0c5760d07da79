//! Tests of delivery over real HTTP receivers, mail servers and programs, and in a real controller.

mod kind;
mod mail;
mod receiver;
mod senders;

use crate::message::{Fact, Key, Message, SCHEMA, Sender};

/// Returns a message with this key and fixed content.
pub(crate) fn message(key: &str) -> Message {
    Message {
        schema: SCHEMA.to_owned(),
        key: Key::new(
            watershed_controller::Resource::fresh_uid(),
            watershed_controller::Timestamp(0),
            "fail",
            key,
        ),
        project: "flights".to_owned(),
        sender: Sender {
            kind: "alert".to_owned(),
            name: "late".to_owned(),
        },
        verdict: "fail".to_owned(),
        moment: "2027-03-01T09:00:00Z".to_owned(),
        title: "late: 3 rows".to_owned(),
        text: String::new(),
        facts: vec![Fact {
            label: "moment".to_owned(),
            value: "2027-03-01T09:00:00Z".to_owned(),
        }],
        table: None,
        attachment: None,
        series: None,
        is_test: false,
    }
}
