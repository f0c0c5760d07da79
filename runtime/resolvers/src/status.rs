//! Resolver of the resources' statuses, as a query over constants.

use std::sync::Arc;

use watershed_core::{Key, Row};
use watershed_dialect::{Dialect as _, ENGINE, Quoting as _};
use watershed_proto::{ApiSpec, DataResolver, Message as _, Value};

use super::{Resources, api};

/// Name by which data blocks choose this resolver.
pub const RESOLVER: &str = "resource_status";

/// Returns the SQL query over resource statuses for a data block of resource `own`; none for data blocks that ask no
/// statuses.
pub fn reported(data: &DataResolver, resources: &dyn Resources, own: &Key) -> Option<String> {
    let asks_api = |name: &str| {
        let row = resources.find(&Key::new(api::KIND, name))?;
        ApiSpec::decode(row.spec.as_ref()).ok()?.data
    };
    let asked = asked(data, asks_api)?;
    Some(statement(&resources.rows(), own, only_errors(&asked)))
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
pub(super) fn statement(rows: &[Arc<Row>], own: &Key, only_errors: bool) -> String {
    let listed: Vec<Vec<String>> = rows
        .iter()
        .filter(|row| row.key() != *own && (!only_errors || row.error.is_some()))
        .map(|row| values(row))
        .collect();
    let table = |rows: &[Vec<String>]| ENGINE.rows(rows, "resources", &["kind", "name", "status", "error"]);
    match listed.is_empty() {
        true => format!("SELECT * FROM {} WHERE false", table(&[vec![ENGINE.text(""); 4]])),
        false => format!("SELECT * FROM {}", table(&listed)),
    }
}

fn values(row: &Row) -> Vec<String> {
    let (status, error) = match &row.error {
        Some(error) => ("failed", &*error.message),
        None => ("ok", ""),
    };
    let texts = [row.kind.as_str(), row.name.as_str(), status, error];
    texts.map(|text| ENGINE.text(text)).into()
}
