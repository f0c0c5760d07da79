//! The state of a model: the first row of a query, read after a build and seen by the next incremental one. If the
//! query is for the database that the model reads, its row also shows whether anything changed there.

use std::collections::BTreeMap;

use watershed_compilers::{Dialect, Scope, render, render_sql};
use watershed_core::Error;
use watershed_drivers::olap::{self, NamedRow, StateQuery};
use watershed_proto::{ListValue, MapValue, Message, ModelSpec, ModelState, Value, value::Kind};

use super::{failure, source};

/// Returns the query for the state of a model, with templates executed; none for a model without a state.
///
/// # Errors
/// When its template can't be executed, or it is no SQL.
pub(super) fn query(spec: &ModelSpec, scope: &Scope) -> Result<Option<StateQuery>, Error> {
    let Some(resolver) = &spec.incremental_state else {
        return Ok(None);
    };
    let sql = resolver.properties.as_ref().and_then(|all| all.str("sql"));
    let Some(sql) = sql.filter(|_| resolver.resolver == "sql") else {
        return Err(failure::unknown_state_resolver(&resolver.resolver));
    };
    let dialect = match asks_input(spec) {
        true => render::dialect(spec),
        false => Dialect::Engine,
    };
    let sql = render_sql(sql, scope, dialect).map_err(|error| failure::from_render(&error))?;
    let sql = match asks_input(spec) {
        true => source::sent(spec, scope, sql).map_err(|error| failure::from_source(&error))?,
        false => sql,
    };
    Ok(Some(StateQuery { sql, put }))
}

/// Returns true if the state query is for the database that the model reads, so that it also runs before a build to
/// detect changes.
pub(super) fn asks_input(spec: &ModelSpec) -> bool {
    let properties = spec
        .incremental_state
        .as_ref()
        .and_then(|block| block.properties.as_ref());
    let connector = properties.and_then(|all| all.str("connector"));
    connector == Some(spec.input_connector.as_str()) && source::database(spec).is_some()
}

/// Adds a state row to an encoded record.
fn put(record: &[u8], row: NamedRow) -> Vec<u8> {
    let Ok(mut state) = ModelState::decode(record) else {
        return record.to_vec();
    };
    state.incremental_state = Some(map(row));
    state.encode_to_vec()
}

/// Converts a row to a mapping for templates.
pub(super) fn map(row: NamedRow) -> MapValue {
    let fields = row.into_iter().map(|(name, of)| (name, value(of)));
    MapValue {
        fields: fields.collect::<BTreeMap<_, _>>(),
    }
}

fn value(of: olap::Value) -> Value {
    let kind = match of {
        olap::Value::Null => None,
        olap::Value::Boolean(value) => Some(Kind::Bool(value)),
        olap::Value::Integer(value) => Some(match i64::try_from(value) {
            Ok(value) => Kind::Int(value),
            Err(_) => Kind::String(value.to_string()),
        }),
        olap::Value::Float(value) => Some(Kind::Float(value.into())),
        olap::Value::Double(value) => Some(Kind::Float(value)),
        olap::Value::Text(text) => Some(Kind::String(text)),
        olap::Value::List(items) => Some(Kind::List(ListValue {
            values: items.into_iter().map(value).collect(),
        })),
        olap::Value::Struct(fields) => Some(Kind::Map(map(fields))),
        other @ (olap::Value::Decimal { .. }
        | olap::Value::Date { .. }
        | olap::Value::Time { .. }
        | olap::Value::Timestamp { .. }
        | olap::Value::Blob(_)
        | olap::Value::Map(_)) => Some(Kind::String(other.to_string())),
    };
    Value { kind }
}
