//! Trials of alerts: evaluations that store nothing, with the messages that would be sent.

use tokio_util::sync::CancellationToken;
use watershed_controller::{Resource, Timestamp};
use watershed_core::{Error, Ref, Row};
use watershed_delivery::Notification;
use watershed_outputs::failure;
use watershed_proto::AlertSpec;
use watershed_resolvers::{Resolvers, Until, status};

use super::policy::{Telling, Verdict};
use super::question::{self, Asker};
use super::record::Finding;
use super::telling::Teller;
use crate::intervals::{Cut, End};
use crate::messages::Proto;
use crate::surroundings::{self, failed_ref_of, instant};

/// The outcome of a test evaluation of an alert: a finding, and the messages it would cause.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The evaluated moment: the end of the newest closed interval, if the alert has intervals.
    pub moment: Timestamp,
    /// The finding of the test evaluation.
    pub finding: Finding,
    /// The messages that would be sent, marked as a test; none if the alert passes.
    pub messages: Vec<Notification>,
}

/// Evaluates an alert as if the time were `at`, for the project `project`.
///
/// # Errors
/// A file that does not compile, and a question that has no form here. One that can't be answered is a verdict.
pub async fn evaluate(
    resolvers: Resolvers<'_>,
    row: &Row,
    project: &str,
    at: Timestamp,
    now: Timestamp,
) -> Result<Trial, Error> {
    let spec = Resource::spec_of::<Proto<AlertSpec>>(row);
    let Proto(spec) = spec.map_err(|error| Error::permanent("unreadable", error.to_string()))?;
    if let Some(fault) = &spec.fault {
        return Err(failure::from_fault(fault));
    }
    question::check(&spec)?;
    // The failures of what it reports are what it is about.
    let data = spec.data.as_ref();
    let reported = data.and_then(|data| status::reported(data, &resolvers.views, &row.key(), at));
    let failed = failed_ref_of(row, resolvers.views.resources).filter(|_| reported.is_none());
    let inherits = spec.watermark_inherit && at == now && failed.is_none();
    let watermark = match inherits {
        true => surroundings::watermark(&resolvers, row.refs.iter().map(Ref::key), now).await?,
        false => None,
    };
    let at = watermark.unwrap_or(at);
    let until = match &spec.intervals {
        None if watermark.is_some() => Some(Until::moment(instant(at))),
        None => (at != now).then(|| Until::as_of(instant(at))),
        Some(intervals) => {
            let (schedule, data) = (spec.refresh_schedule.as_ref(), spec.data.as_ref());
            let cut = Cut::of(intervals, schedule, data, &resolvers)?;
            cut.due(None, at, true).ends.pop().map(End::until)
        }
    };
    let moment = until.map_or(at, |until| Timestamp(until.at.as_millisecond()));
    let finding = match failed {
        Some(error) => Finding::failed(&error),
        None => {
            let asker = Asker {
                resolvers,
                spec: &spec,
                own: row.key(),
                cancel: &CancellationToken::new(),
                now: at,
            };
            asker.ask(until).await?
        }
    };
    let teller = Teller {
        spec: &spec,
        name: row.name.as_str(),
        uid: row.uid,
        project,
        moment,
        telling: match finding.verdict {
            Verdict::Pass => Telling::Nobody,
            Verdict::Fail | Verdict::Error => Telling::Verdict { suppressed: 0 },
        },
        found: &finding,
        failed_intervals: 0,
        tried: Some(now),
    };
    let messages = teller.messages(0);
    Ok(Trial {
        moment,
        finding,
        messages,
    })
}
