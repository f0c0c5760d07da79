//! Resolver of the resources' statuses, as a query over constants.

use watershed_core::{Key, Row, Timestamp};
use watershed_dialect::{Dialect as _, ENGINE, Quoting as _};
use watershed_proto::{ApiSpec, DataResolver, Message as _, Value};

use super::resources::Staleness;
use super::{api, metrics::Views};

/// Name by which data blocks choose this resolver.
pub const RESOLVER: &str = "resource_status";

/// Returns the SQL query over resource statuses for a data block of resource `own`; none for data blocks that ask no
/// statuses.
pub fn reported(data: &DataResolver, views: &Views<'_>, own: &Key, now: Timestamp) -> Option<String> {
    let asks_api = |name: &str| {
        let row = views.resources.find(&Key::new(api::KIND, name))?;
        ApiSpec::decode(row.spec.as_ref()).ok()?.data
    };
    let asked = asked(data, asks_api)?;
    Some(statement(views, own, only_errors(&asked), now))
}

/// Follows calls of APIs to a data block that asks for statuses, and returns that block; none for other data blocks.
pub fn asked(data: &DataResolver, api_named: impl Fn(&str) -> Option<DataResolver>) -> Option<DataResolver> {
    let mut data = data.clone();
    // More are a cycle, which is refused where it is asked.
    for _ in 0..=api::DEEPEST {
        match data.resolver.as_str() {
            RESOLVER => return Some(data),
            api::KIND => {
                let name = data.properties.as_ref()?.str("api")?.to_owned();
                data = api_named(&name)?;
            }
            _ => return None,
        }
    }
    None
}

/// Returns true if a data block asks for failed resources only.
pub(super) fn only_errors(data: &DataResolver) -> bool {
    let properties = data.properties.as_ref();
    let said = properties.and_then(|properties| properties.get("where_error"));
    said.and_then(Value::as_bool).unwrap_or_default()
}

/// Returns the query that yields `kind`, `name`, `status` and `error` of each resource. Excludes the resource that
/// asks, whose own error would otherwise be reported for ever.
pub(super) fn statement(views: &Views<'_>, own: &Key, only_errors: bool, now: Timestamp) -> String {
    let rows = views.resources.rows();
    let others = rows.iter().filter(|row| row.key() != *own);
    let told = others.map(|row| (row, trouble(row, views.stale, now)));
    let listed: Vec<Vec<String>> = told
        .filter(|(_, trouble)| !only_errors || trouble.is_some())
        .map(|(row, trouble)| values(row, trouble))
        .collect();
    let table = |rows: &[Vec<String>]| ENGINE.rows(rows, "resources", &["kind", "name", "status", "error"]);
    match listed.is_empty() {
        true => format!("SELECT * FROM {} WHERE false", table(&[vec![ENGINE.text(""); 4]])),
        false => format!("SELECT * FROM {}", table(&listed)),
    }
}

/// Returns the status of a resource that has failed or whose rows are too old, and what is wrong.
fn trouble(row: &Row, stale: Staleness, now: Timestamp) -> Option<(&'static str, String)> {
    let failed = row
        .error
        .as_ref()
        .map(|error| ("failed", error.message.to_string()));
    failed.or_else(|| Some(("stale", stale(row, now)?)))
}

fn values(row: &Row, trouble: Option<(&'static str, String)>) -> Vec<String> {
    let (status, error) = trouble.unwrap_or(("ok", String::new()));
    let texts = [row.kind.as_str(), row.name.as_str(), status, error.as_str()];
    texts.map(|text| ENGINE.text(text)).into()
}
