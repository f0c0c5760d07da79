//! The question of an alert: what yields its rows, asked once for each evaluation (rule N3).

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_compilers::render_text;
use watershed_controller::{Handle, Select};
use watershed_core::{Error, Key, RefView};
use watershed_delivery::{Table, message};
use watershed_drivers::olap::{Failure, Query, QueryError};
use watershed_proto::{AlertSpec, Message as _};

use super::policy::Verdict;
use crate::{
    model::{failure, statement},
    outputs::Outputs,
};

/// The finding of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) verdict: Verdict,
    /// The first rows of a failure.
    pub(super) rows: Option<Table>,
    /// True if there are more.
    pub(super) has_more: bool,
    /// The reason of an error.
    pub(super) error: Option<Error>,
}

/// The inputs of an evaluation.
pub(super) struct Asker<'a> {
    pub(super) outputs: &'a Outputs,
    pub(super) environment: &'a str,
    pub(super) spec: &'a AlertSpec,
    pub(super) own: Key,
    pub(super) refs: &'a [RefView],
    pub(super) handle: Handle,
    pub(super) cancel: &'a CancellationToken,
}

/// Returns a fingerprint of what is asked: what decides whom and when to tell is no part of it (N4).
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

/// Returns a fingerprint of the versions of what an alert reads.
pub(super) fn versions(refs: &[RefView]) -> String {
    let mut bytes = Vec::new();
    for view in refs {
        let target = view.target.as_ref();
        let version = target.map(|target| (target.uid.to_string(), target.state_version.0));
        bytes.extend_from_slice(format!("{} {version:?}\n", view.reference.key()).as_bytes());
    }
    hash(&bytes)
}

fn hash(bytes: &[u8]) -> String {
    let hash = blake3::hash(bytes).to_hex();
    hash.chars().take(32).collect()
}

/// Refuses questions that can't be asked here yet.
///
/// # Errors
/// `not-supported-yet`, with what it is.
pub(super) fn check(spec: &AlertSpec) -> Result<(), Error> {
    let resolver = spec.data.as_ref().map_or("", |data| data.resolver.as_str());
    let is_for = !spec.for_user_id.is_empty()
        || !spec.for_user_email.is_empty()
        || spec
            .for_attributes
            .as_ref()
            .is_some_and(|all| !all.fields.is_empty());
    let what = match resolver {
        _ if spec.intervals.is_some() => "`intervals`".to_owned(),
        _ if spec.watermark_inherit => "`watermark: inherit`".to_owned(),
        _ if is_for => "`for`".to_owned(),
        "sql" | "resource_status" => return Ok(()),
        "" => "`query`".to_owned(),
        other => format!("`data` by `{other}`"),
    };
    let message = format!("{what} of an alert is not supported yet");
    let hint = "`data` takes `sql` or `resource_status`";
    Err(Error {
        hint: Some(hint.into()),
        ..Error::permanent("not-supported-yet", message)
    })
}

impl Asker<'_> {
    /// Asks. A question that can't be answered is a verdict too.
    ///
    /// # Errors
    /// When the evaluation was cancelled: it leaves no trace.
    pub(super) async fn ask(&self) -> Result<Found, Error> {
        if let Some(error) = self.failed_ref() {
            return Ok(failed(error));
        }
        let data = self.spec.data.clone().unwrap_or_default();
        if data.resolver == "resource_status" {
            let properties = data.properties.unwrap_or_default();
            let only_errors = properties.get("where_error").and_then(|value| value.as_bool());
            return Ok(self.statuses(only_errors.unwrap_or_default()));
        }
        let asked = self.rows().await;
        if self.cancel.is_cancelled() {
            return Err(failure::cancelled());
        }
        let secrets = self.outputs.secrets();
        Ok(asked.unwrap_or_else(|error| failed(secrets.redact_error(error))))
    }

    fn failed_ref(&self) -> Option<Error> {
        let missing = self.refs.iter().find(|view| view.target.is_none());
        let failed = self.refs.iter().find(|view| view.failed);
        let missing = missing.map(|view| failure::missing_ref(&view.reference));
        missing.or_else(|| failed.map(|view| failure::unchecked_ref(&view.reference)))
    }

    async fn rows(&self) -> Result<Found, Error> {
        let data = self.spec.data.clone().unwrap_or_default();
        let properties = data.properties.unwrap_or_default();
        let text = properties.str("sql").unwrap_or_default();
        let variables = self.outputs.secrets().open(&self.spec.variables)?;
        let scope = statement::scope(variables, self.own.name.as_str(), self.environment);
        let sql = render_text(text, &scope).map_err(|error| failure::from_render(&error))?;
        let query = Query {
            sql,
            limit: Some(message::ROWS_MAX as u64 + 1),
            timeout: Some(Duration::from_secs(u64::from(self.spec.timeout_seconds))),
        };
        let mut answer = self
            .outputs
            .olap()
            .query(query, self.cancel)
            .await
            .map_err(|error| from_query(&error))?;
        let columns = answer
            .columns()
            .iter()
            .map(|column| column.name.clone())
            .collect();
        let rows = answer.collect().await.map_err(|error| from_query(&error))?;
        let texts = |row: Vec<watershed_drivers::olap::Value>| {
            row.into_iter().map(|value| value.to_string()).collect()
        };
        Ok(found(columns, rows.into_iter().map(texts).collect()))
    }

    /// Resources by their status; the alert itself is none of them, or its own error would be told for ever.
    fn statuses(&self, only_errors: bool) -> Found {
        let columns = ["kind", "name", "status", "error"].map(str::to_owned).to_vec();
        let mut rows = Vec::new();
        for resource in self.handle.list(Select::new()).resources {
            let row = &resource.row;
            if resource.key() == self.own || (only_errors && row.error.is_none()) {
                continue;
            }
            let (status, error) = match &row.error {
                Some(error) => ("failed", error.message.to_string()),
                None => ("ok", String::new()),
            };
            rows.push(vec![
                row.kind.to_string(),
                row.name.to_string(),
                status.to_owned(),
                error,
            ]);
        }
        found(columns, rows)
    }
}

fn found(columns: Vec<String>, mut rows: Vec<Vec<String>>) -> Found {
    if rows.is_empty() {
        return Found {
            verdict: Verdict::Pass,
            rows: None,
            has_more: false,
            error: None,
        };
    }
    let has_more = rows.len() > message::ROWS_MAX;
    rows.truncate(message::ROWS_MAX);
    for value in rows.iter_mut().flatten() {
        *value = message::shown(value);
    }
    Found {
        verdict: Verdict::Fail,
        rows: Some(Table { columns, rows }),
        has_more,
        error: None,
    }
}

fn failed(error: Error) -> Found {
    Found {
        verdict: Verdict::Error,
        rows: None,
        has_more: false,
        error: Some(error),
    }
}

fn from_query(error: &QueryError) -> Error {
    match error {
        QueryError::Failed(Failure::Sql(error)) => failure::from_sql(error),
        QueryError::Failed(failure) => failure::from_failure(failure),
        QueryError::Timeout(_) => Error {
            hint: Some("raise the alert's `timeout`".into()),
            ..Error::permanent("timeout", error.to_string())
        },
        other => Error::permanent("bad-query", other.to_string()),
    }
}
