//! Trial evaluations of alerts.

use jiff::Timestamp;
use watershed_api::documents::{AlertTestDocument, ResourceName, TestedReceiver, Time};
use watershed_api::request::AlertTestRequest;
use watershed_api::{Exit, Problem};
use watershed_delivery::Attempt;
use watershed_reconcilers::alert::{self, policy::Verdict, trial};
use watershed_reconcilers::notifiers::ProjectNotifiers;

use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;
use crate::service::problems::of_resource;
use crate::service::questions::{Asking, Entries, time};

/// Evaluates an alert and stores nothing; sends its messages if asked to.
pub(crate) async fn alert_test(
    place: &impl Place,
    _: &Principal,
    input: AlertTestRequest,
    _: &Out,
) -> Result<AlertTestDocument, Problem> {
    let entries = place.listing().await?.entries;
    let asking = place.asking(&entries).await?;
    let tried = tried(place, &asking, Entries(&entries), input).await;
    asking.opened.give_back().await;
    tried
}

async fn tried(
    place: &impl Place,
    asking: &Asking,
    entries: Entries<'_>,
    input: AlertTestRequest,
) -> Result<AlertTestDocument, Problem> {
    let row = entries.of_kind(alert::KIND, &input.name)?;
    let moment = time(input.at.as_deref())?;
    let at = watershed_core::Timestamp(moment.as_millisecond());
    let now = match input.at {
        None => at,
        Some(_) => watershed_core::Timestamp(Timestamp::now().as_millisecond()),
    };
    let resolvers = asking.resolvers(&entries);
    let tried = trial::evaluate(resolvers, row, &place.project().name, at, now).await;
    let tried = tried.map_err(|error| of_resource(&error))?;
    let mut receivers = Vec::new();
    for one in &tried.messages {
        let sent = match input.send {
            true => Some(send(place, asking, entries, one).await),
            false => None,
        };
        receivers.push(TestedReceiver {
            receiver: one.receiver.label(),
            delivered: sent.as_ref().map(Result::is_ok),
            answer: sent.map(|sent| sent.unwrap_or_else(|failure| failure)),
        });
    }
    let is_lost = receivers.iter().any(|receiver| receiver.delivered == Some(false));
    let fails = tried.finding.verdict != Verdict::Pass;
    let exit = match (is_lost, input.exit_code && fails) {
        (true, _) => Exit::ProjectError,
        (false, true) => Exit::WouldChange,
        (false, false) => Exit::Converged,
    };
    let error = Some(tried.finding.reason().to_owned()).filter(|error| !error.is_empty());
    let table = tried.finding.rows.unwrap_or_default();
    Ok(AlertTestDocument {
        schema: AlertTestDocument::SCHEMA.to_owned(),
        resource: ResourceName::new(row.kind.as_str(), row.name.as_str()),
        moment: Time::from_millis(tried.moment.0),
        verdict: tried.finding.verdict.as_str().to_owned(),
        columns: table.columns,
        rows: table.rows,
        truncated: tried.finding.has_more,
        error,
        receivers,
        exit_code: exit.code(),
    })
}

/// Makes one attempt to deliver a message.
async fn send(
    place: &impl Place,
    asking: &Asking,
    entries: Entries<'_>,
    one: &watershed_delivery::Notification,
) -> Result<String, String> {
    let options = place.options();
    // Messages of a trial in a confined project go to files of the project alone.
    let is_confined = options.sandbox || options.sample.is_some();
    let notifiers = ProjectNotifiers::new(&options.root, &options.environment, asking.secrets.clone());
    let notifiers = notifiers.with_egress(options.egress.clone());
    let connected = notifiers.confined(is_confined).among(&entries, &one.receiver);
    let (notifier, to) = connected.map_err(|error| error.message)?;
    let attempt = Attempt {
        number: 1,
        epoch: 0,
        to: &to,
    };
    let delivered = notifier.deliver(&one.message, attempt).await;
    delivered
        .map(|receipt| receipt.said)
        .map_err(|error| error.message)
}
