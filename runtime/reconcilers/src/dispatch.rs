//! Delivery of messages from alerts and reports to notifications (N6).

use std::collections::BTreeMap;

use watershed_controller::{EditError, Handle};
use watershed_core::{Error, Refusal};
use watershed_delivery::{Notification, Receiver, crash};
use watershed_proto::{Notifier, Value};

/// Creates the missing notifications for stored messages.
///
/// # Errors
/// When one can't be created. Those before it are there, and creating them again changes nothing.
pub(crate) async fn hand_over(handle: &Handle, outbox: &[Notification]) -> Result<(), Error> {
    for one in outbox {
        let new = one
            .declare()
            .map_err(|error| Error::permanent("internal", error.to_string()))?;
        match handle.create(new).await {
            // It was created before a crash.
            Ok(_) | Err(EditError::Refused(Refusal::NameTaken { .. })) => {}
            Err(error) => return Err(Error::transient("edit", error.to_string())),
        }
        crash::point(crash::CREATED);
    }
    Ok(())
}

/// Returns the receivers that notifiers name, without repetition.
pub(crate) fn receivers(notifiers: &[Notifier], variables: &BTreeMap<String, String>) -> Vec<Receiver> {
    let mut receivers: Vec<Receiver> = notifiers
        .iter()
        .flat_map(|notifier| of_notifier(notifier, variables))
        .collect();
    receivers.sort();
    receivers.dedup();
    receivers
}

fn of_notifier(notifier: &Notifier, variables: &BTreeMap<String, String>) -> Vec<Receiver> {
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
            true => variables.clone(),
            false => Default::default(),
        },
        to,
    };
    match notifier.connector.as_str() {
        "email" | "slack" => addresses.into_iter().map(of).collect(),
        _ => vec![of(String::new())],
    }
}
