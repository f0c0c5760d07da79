//! The query of an alert, which runs once per evaluation (rule N3).

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_controller::Timestamp;
use watershed_core::{Error, Key, RefView};
use watershed_delivery::message;
use watershed_outputs::failure;
use watershed_proto::{AlertSpec, DataResolver, Message as _};
use watershed_resolvers::{
    Answer, Ask, ResolveError, Resolvers, Until, Viewer, directory::Directory, metrics::MetricsError,
};

use super::policy::Verdict;
use super::record::Finding;
use crate::excerpt;
use crate::surroundings::{For, data_or_legacy, instant};

/// The inputs of an evaluation.
pub(super) struct Asker<'a> {
    pub(super) resolvers: Resolvers<'a>,
    pub(super) spec: &'a AlertSpec,
    pub(super) own: Key,
    pub(super) cancel: &'a CancellationToken,
    pub(super) now: Timestamp,
}

/// The failure of an alert's query.
struct Unasked {
    /// The error, as the alert's receivers may see it.
    error: Error,
    /// The engine's own error, if it differs; only for the project's owner.
    cause: Option<Error>,
}

impl From<Error> for Unasked {
    fn from(error: Error) -> Self {
        Self { error, cause: None }
    }
}

/// Returns a fingerprint of the query, without the settings of whom and when to tell (N4).
pub(super) fn fingerprint(spec: &AlertSpec) -> String {
    let question = AlertSpec {
        data: spec.data.clone(),
        query_name: spec.query_name.clone(),
        query_args: spec.query_args.clone(),
        for_user_id: spec.for_user_id.clone(),
        for_user_email: spec.for_user_email.clone(),
        for_attributes: spec.for_attributes.clone(),
        timeout_seconds: spec.timeout_seconds,
        variables: spec.variables.clone(),
        ..AlertSpec::default()
    };
    hash(&question.encode_to_vec())
}

/// Returns a fingerprint of the versions of a resource's refs.
pub(crate) fn versions(refs: &[RefView]) -> String {
    let mut bytes = Vec::new();
    for view in refs {
        let target = view.target.as_ref();
        let version = target.map(|target| (target.uid.to_string(), target.state_version.0));
        bytes.extend_from_slice(format!("{} {version:?}\n", view.reference.key()).as_bytes());
    }
    hash(&bytes)
}

/// Returns the hash of bytes, shortened to the length of fingerprints.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    hash.chars().take(32).collect()
}

/// Returns the finding for an unreadable watermark of the refs.
pub(super) fn no_watermark() -> Finding {
    Finding {
        error: "the watermark of what it reads can't be read".to_owned(),
        ..Finding::of(Verdict::Error)
    }
}

/// Returns an error if the query is a deprecated query by name that has no equivalent.
///
/// # Errors
/// `not-supported-yet`, with what it is.
pub(super) fn check(spec: &AlertSpec) -> Result<(), Error> {
    data(spec).map(drop)
}

/// Returns the data block of the query.
fn data(spec: &AlertSpec) -> Result<DataResolver, Error> {
    data_or_legacy(spec.data.as_ref(), &spec.query_name, spec.query_args.as_ref())
}

impl Asker<'_> {
    /// Runs the query, for the interval that ends at `until` if there is one. A failure of the query is a verdict too.
    ///
    /// # Errors
    /// When the evaluation was cancelled: it leaves no trace.
    pub(super) async fn ask(&self, until: Option<Until>) -> Result<Finding, Error> {
        let asked = tokio::select! {
            asked = self.rows(until) => asked,
            () = self.cancel.cancelled() => return Err(failure::cancelled()),
        };
        if self.cancel.is_cancelled() {
            return Err(failure::cancelled());
        }
        let secrets = self.resolvers.views.secrets;
        Ok(match asked {
            Ok(answer) => found(&answer),
            Err(Unasked { error, .. }) if &*error.code == "not-yet" => return Err(error),
            Err(Unasked { error, cause }) => {
                let finding = Finding::failed(&secrets.redact_error(error));
                match cause {
                    Some(cause) => finding.because_of(&secrets.redact_error(cause)),
                    None => finding,
                }
            }
        })
    }

    async fn rows(&self, until: Option<Until>) -> Result<Answer, Unasked> {
        let viewer = viewer(self.spec, self.resolvers.directory).await?;
        let data = data(self.spec)?;
        let ask = Ask {
            data: &data,
            own: &self.own,
            variables: &self.spec.variables,
            viewer: &viewer,
            skips_policies: false,
            args: Default::default(),
            now: instant(self.now),
            execution_time: until,
            is_export: false,
        };
        let within = Duration::from_secs(u64::from(self.spec.timeout_seconds));
        let answered = self
            .resolvers
            .answer(&ask, message::ROWS_MAX as u64, within)
            .await;
        answered.map_err(|error| Unasked {
            cause: error.unspoken(),
            error: match &error {
                // What it reads has been checked, and the catalog does not show that yet.
                ResolveError::Metrics(MetricsError::NotValid(_)) => {
                    Error::transient("not-yet", error.to_string())
                }
                _ => error.to_error(),
            },
        })
    }
}

/// Returns the viewer on whose behalf an alert reads.
///
/// # Errors
/// When nobody knows the user.
async fn viewer(spec: &AlertSpec, directory: Option<&dyn Directory>) -> Result<Viewer, Error> {
    let said = spec.for_attributes.as_ref();
    let run_as = For {
        id: &spec.for_user_id,
        email: &spec.for_user_email,
        attributes: said.filter(|said| !said.fields.is_empty()),
    };
    run_as.viewer(directory).await
}

/// Returns the finding for the rows of an answer. Numbers are formatted as their measures say, times in their time
/// zone.
fn found(answer: &Answer) -> Finding {
    if answer.rows.is_empty() {
        return Finding::of(Verdict::Pass);
    }
    Finding {
        rows: Some(excerpt::table(answer)),
        series: excerpt::series(answer),
        has_more: answer.truncated,
        ..Finding::of(Verdict::Fail)
    }
}
