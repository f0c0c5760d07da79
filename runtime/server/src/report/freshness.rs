//! Models whose rows are older than their file allows.

use std::time::{Duration, SystemTime};

use jiff::SignedDuration;
use watershed_api::documents::{Diagnostic, ResourceName, Severity};
use watershed_core::{Row, Timestamp};
use watershed_reconcilers::{model::freshness, places};

/// The code of the finding.
pub(crate) const CODE: &str = "stale";

/// Returns true if the resource's rows are older than the age that counts as an error.
pub(super) fn is_stale(row: &Row, now: Timestamp) -> bool {
    freshness::old(row, now).is_some_and(|old| old.is_stale)
}

/// Returns the finding about the age of a resource's rows; none while they are fresh enough.
pub(super) fn finding(row: &Row) -> Option<Diagnostic> {
    let old = freshness::old(row, now())?;
    let told = |time: Duration| {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        format!("{:#}", SignedDuration::from_secs(seconds))
    };
    let (severity, what) = match old.is_stale {
        true => (Severity::Error, "and are stale after"),
        false => (Severity::Warning, "and are expected within"),
    };
    Some(Diagnostic {
        severity,
        code: CODE.to_owned(),
        path: places::yaml(&row.paths).to_owned(),
        line: old.at.line,
        column: old.at.column,
        end_line: old.at.line,
        end_column: old.at.column + 1,
        message: format!(
            "the rows of \"{}\" came {} ago, {what} {}",
            row.name,
            told(old.age),
            told(old.bound)
        ),
        hint: Some("`watershed refresh` builds it again; `watershed history` says when it was".to_owned()),
        notes: Vec::new(),
        details: None,
        resource: Some(ResourceName {
            kind: row.kind.to_string(),
            name: row.name.to_string(),
        }),
        related: Vec::new(),
    })
}

fn now() -> Timestamp {
    Timestamp::from(SystemTime::now())
}
