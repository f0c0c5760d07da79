//! Models without SQL, whose files or tables the engine reads directly.

use std::collections::BTreeMap;

use watershed_compilers::{
    Dialect, READER_OPTIONS, RenderError, Scope, lakehouse_log, render_sql, render_text,
    sql::{literal_path, within},
};
use watershed_dialect::{DataFormat, Dialect as _, ENGINE, Literal, Quoting as _};
use watershed_drivers::{
    data_file::Form,
    objects::{Driver, Location},
    olap::{Guess, ReaderOption, Statement, Statements as _, System},
};
use watershed_proto::{ListValue, MapValue, ModelSpec, Value, value::Kind};

use thiserror::Error;
use watershed_outputs::{database, literal::literal};

/// The reason why no statement can be made for a source.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum SourceError {
    /// The connector can't be read from yet.
    #[error("connector \"{0}\" is not supported yet")]
    Connector(String),
    /// The source names neither a query nor a table.
    #[error("`sql` or `table` is missing")]
    NoTable,
    /// The source runs a query on a database file of the engine, which only supports tables.
    #[error("a query is not sent to the database of connector \"{0}\"")]
    Query(String),
    /// The source has no path.
    #[error("a `path` is missing")]
    NoPath,
    /// A template in the source's settings can't be executed.
    #[error(transparent)]
    Template(#[from] RenderError),
    /// The path is not an address in the connector's store.
    #[error("\"{path}\" is no address of connector \"{connector}\"")]
    Address {
        /// The path, as the model names it.
        path: String,
        /// The name of the connector.
        connector: String,
    },
    /// The format can't be derived from the path, or is not supported.
    #[error("can't tell the format of \"{0}\"")]
    Format(String),
}

impl SourceError {
    /// Returns the stable code of the error.
    #[must_use]
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Connector(_) => "connector-unsupported",
            Self::NoPath => "path-missing",
            Self::NoTable => "table-missing",
            Self::Query(_) => "connector-unsupported",
            Self::Template(_) => "template",
            Self::Address { .. } => "bad-address",
            Self::Format(_) => "format-unknown",
        }
    }

    /// Returns advice on how to fix the error, if there is any.
    #[must_use]
    pub(super) fn hint(&self) -> Option<&str> {
        match self {
            Self::Connector(_) => Some(
                "`local_file`, `duckdb`, `https`, `s3`, `gcs`, `azure`, `postgres`, `mysql`, `sqlite` and `ducklake` are",
            ),
            Self::NoTable => Some("`table: orders` reads a table, `sql: SELECT ...` what a query yields"),
            Self::Query(_) => Some("name a table of it, `table: orders`, and query that in another model"),
            Self::Address { .. } => Some(
                "an address has a scheme and a bucket or host, as in `s3://bucket/file.parquet` or `https://host/file.csv`",
            ),
            Self::NoPath => None,
            Self::Template(error) => error.hint.as_deref(),
            Self::Format(_) => Some("set `format` to `csv`, `parquet`, `json`, `xlsx`, `delta` or `iceberg`"),
        }
    }
}

/// Returns a model's own SQL as sent to the engine: unchanged, or passed on to the database that it is for.
///
/// # Errors
/// When it is for neither.
pub(super) fn sent(spec: &ModelSpec, scope: &Scope, sql: String) -> Result<String, SourceError> {
    match database(spec) {
        Some(system) => of_database(system, spec, scope, Some(&sql)),
        None => check_sql(spec).map(|()| sql),
    }
}

/// Table functions of a DuckLake.
const LAKE_FUNCTIONS: [&str; 7] = [
    "current_snapshot",
    "last_committed_snapshot",
    "snapshots",
    "table_changes",
    "table_deletions",
    "table_info",
    "table_insertions",
];

/// Returns the statement that reads a table of an attached database, or the result of a query that the database runs.
fn of_database(
    system: System,
    spec: &ModelSpec,
    scope: &Scope,
    sql: Option<&str>,
) -> Result<String, SourceError> {
    let alias = database::name(&scope.name);
    if let (Some(sql), System::DuckLake) = (sql, system) {
        let database = ENGINE.name(&alias);
        return Ok(within(sql, &database, &spec.input_connector, &LAKE_FUNCTIONS));
    }
    let database = alias.as_str();
    match sql {
        Some(sql) if system.answers_queries() => Ok(ENGINE.write(&Statement::Query {
            database,
            system,
            sql,
        })),
        Some(_) => Err(SourceError::Query(spec.input_connector.clone())),
        None => {
            let table = table(spec, scope)?.ok_or(SourceError::NoTable)?;
            let table = table.as_str();
            Ok(ENGINE.write(&Statement::Table { database, table }))
        }
    }
}

/// Returns the table of a database that a source names, if it names one.
///
/// # Errors
/// When a template in its settings can't be executed.
pub(super) fn table(spec: &ModelSpec, scope: &Scope) -> Result<Option<String>, SourceError> {
    let empty = MapValue::default();
    let properties = rendered_map(spec.input_properties.as_ref().unwrap_or(&empty), scope)?;
    Ok(database::table(&properties).map(str::to_owned))
}

/// Returns the database system that a model reads from, if any. A DuckDB file counts only if a table is named, since
/// SQL runs in the project's engine.
pub(super) fn database(spec: &ModelSpec) -> Option<System> {
    let names_table = || {
        spec.input_properties
            .as_ref()
            .is_some_and(|all| database::table(all).is_some())
    };
    match System::from_driver(driver(spec)) {
        Some(System::DuckDb) => (spec.sql.is_none() && names_table()).then_some(System::DuckDb),
        // A connector to the engine's own files has no driver here.
        None if spec.input_driver.is_empty() && !watershed_compilers::is_driver(&spec.input_connector) => {
            (spec.sql.is_none() && names_table()).then_some(System::DuckDb)
        }
        system => system,
    }
}

/// Connectors whose files the engine reads directly.
const CONNECTORS: [&str; 2] = ["local_file", "file"];

/// Returns the driver of a model's input; without one, the connector's name, which is the engine or a driver.
pub(super) fn driver(spec: &ModelSpec) -> &str {
    match spec.input_driver.as_str() {
        "" => &spec.input_connector,
        driver => driver,
    }
}

/// Returns an error if a model's SQL is for another system, as the engine would resolve its names differently.
///
/// # Errors
/// When the input is not the engine.
fn check_sql(spec: &ModelSpec) -> Result<(), SourceError> {
    let is_engine = spec.input_driver.is_empty()
        && (!watershed_compilers::is_driver(&spec.input_connector) || spec.input_connector == "duckdb");
    let reads_files = CONNECTORS.contains(&driver(spec));
    if is_engine || reads_files {
        Ok(())
    } else {
        Err(SourceError::Connector(spec.input_connector.clone()))
    }
}

/// Returns the driver of the store that a source reads from; none for sources with files or SQL.
pub(super) fn store(spec: &ModelSpec) -> Option<Driver> {
    match spec.sql {
        Some(_) => None,
        None => Driver::from_name(driver(spec)),
    }
}

/// Returns the addresses, or patterns of addresses, that a source reads from a store.
///
/// # Errors
/// When one is none of its connector's store.
pub(super) fn addresses(spec: &ModelSpec, scope: &Scope) -> Result<Vec<String>, SourceError> {
    let empty = MapValue::default();
    let properties = rendered_map(spec.input_properties.as_ref().unwrap_or(&empty), scope)?;
    let path = path(&properties)?;
    let one = path.as_str().map(|one| vec![one.to_owned()]);
    let list = path.as_list().unwrap_or_default().iter();
    let all = one.unwrap_or_else(|| list.filter_map(Value::as_str).map(str::to_owned).collect());
    let wanted = Driver::from_name(driver(spec));
    for address in &all {
        if Location::parse(address).map(|location| location.driver) != wanted {
            return Err(SourceError::Address {
                path: address.clone(),
                connector: spec.input_connector.clone(),
            });
        }
    }
    Ok(all)
}

/// Returns the spec of a source that reads these files of the machine in the place of its objects.
pub(super) fn reading_files<'a>(spec: &ModelSpec, files: impl Iterator<Item = &'a str>) -> ModelSpec {
    let mut spec = spec.clone();
    put_paths(&mut spec, files);
    CONNECTORS[0].clone_into(&mut spec.input_connector);
    spec.input_driver.clear();
    spec
}

/// Has a source read these paths or addresses.
pub(super) fn put_paths<'a>(spec: &mut ModelSpec, paths: impl Iterator<Item = &'a str>) {
    let values = paths.map(|path| Value::from(path.to_owned())).collect();
    let paths = Value {
        kind: Some(Kind::List(ListValue { values })),
    };
    let properties = spec.input_properties.get_or_insert_default();
    properties.fields.remove("uri");
    properties.fields.insert("path".to_owned(), paths);
}

/// Returns the paths or patterns of the workbooks that a source reads; none for other formats.
pub(super) fn workbooks(spec: &ModelSpec, scope: &Scope) -> Option<Vec<String>> {
    if spec.sql.is_some() || database(spec).is_some() {
        return None;
    }
    let properties = rendered_map(spec.input_properties.as_ref()?, scope).ok()?;
    let paths = texts(path(&properties).ok()?);
    let is_workbook = format(paths.first()?, properties.str("format")) == Some(DataFormat::Xlsx);
    is_workbook.then(|| paths.into_iter().map(str::to_owned).collect())
}

/// Returns the addresses of the objects whose versions show a change of the source: its own, or the log of a lakehouse
/// table.
///
/// # Errors
/// As [`addresses`].
pub(super) fn versions(spec: &ModelSpec, scope: &Scope) -> Result<Vec<String>, SourceError> {
    let format = spec.input_properties.as_ref().and_then(|all| all.str("format"));
    let all = addresses(spec, scope)?;
    Ok(all
        .into_iter()
        .map(|address| lakehouse_log(&address, format).unwrap_or(address))
        .collect())
}

fn path(properties: &MapValue) -> Result<&Value, SourceError> {
    properties
        .get("path")
        .or_else(|| properties.get("uri"))
        .ok_or(SourceError::NoPath)
}

/// Returns the SELECT that reads a source; templates in its settings see `scope`.
///
/// # Errors
/// When the source does not say what to read.
pub(super) fn sql(spec: &ModelSpec, scope: &Scope) -> Result<String, SourceError> {
    if let Some(system) = database(spec) {
        return of_database(system, spec, scope, None);
    }
    if !CONNECTORS.contains(&driver(spec)) && store(spec).is_none() {
        return Err(SourceError::Connector(spec.input_connector.clone()));
    }
    let empty = MapValue::default();
    let properties = rendered_map(spec.input_properties.as_ref().unwrap_or(&empty), scope)?;
    if store(spec).is_some() {
        addresses(spec, scope)?;
    }
    let path = path(&properties)?;
    let first = path.as_list().map_or(Some(path), |paths| paths.first());
    let first = first.and_then(Value::as_str).ok_or(SourceError::NoPath)?;
    let format =
        format(first, properties.str("format")).ok_or_else(|| SourceError::Format(first.to_owned()))?;
    Ok(ENGINE.write(&Statement::Files {
        format,
        paths: &literal(path),
        options: &options(&properties),
    }))
}

/// Returns the format of the files or objects that a source reads; none if it reads none, or a lakehouse table.
pub(super) fn form(spec: &ModelSpec, scope: &Scope) -> Option<Form> {
    if database(spec).is_some() {
        return None;
    }
    let properties = rendered_map(spec.input_properties.as_ref()?, scope).ok()?;
    let paths = path(&properties).ok()?;
    match format(texts(paths).first()?, properties.str("format"))? {
        DataFormat::Csv => Some(Form::Csv),
        DataFormat::Json => Some(Form::Json),
        DataFormat::Parquet | DataFormat::Xlsx => Some(Form::Binary),
        DataFormat::Delta | DataFormat::Iceberg => None,
    }
}

/// Returns the local paths or patterns that a source reads, with templates executed.
pub(super) fn local_paths(spec: &ModelSpec, scope: &Scope) -> Vec<String> {
    if spec.sql.is_some() || !CONNECTORS.contains(&driver(spec)) || database(spec).is_some() {
        return Vec::new();
    }
    let empty = MapValue::default();
    let properties = rendered_map(spec.input_properties.as_ref().unwrap_or(&empty), scope);
    let properties = properties.unwrap_or_default();
    let paths = path(&properties).map(texts).unwrap_or_default();
    let local = paths.into_iter().filter(|path| !path.contains("://"));
    local.map(str::to_owned).collect()
}

/// Returns the statement that asks the engine for its guesses about a CSV file, given the options that the source sets.
///
/// # Errors
/// When a template in its settings can't be executed.
pub(super) fn sniff(
    spec: &ModelSpec,
    scope: &Scope,
    path: &str,
    asked: &[Guess],
) -> Result<String, SourceError> {
    let empty = MapValue::default();
    let properties = rendered_map(spec.input_properties.as_ref().unwrap_or(&empty), scope)?;
    Ok(ENGINE.write(&Statement::Guesses {
        path: &literal_path(path),
        options: &options(&properties),
        asked,
    }))
}

/// Returns the texts of a value, which is one text or a list.
fn texts(value: &Value) -> Vec<&str> {
    match value.as_list() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => value.as_str().into_iter().collect(),
    }
}

/// Returns the value of a reader option that a source sets, if it does.
pub(super) fn option<'a>(spec: &'a ModelSpec, name: &str) -> Option<&'a Value> {
    let properties = spec.input_properties.as_ref()?;
    let engine = properties.get(RAW_OPTIONS).and_then(Value::as_map);
    properties
        .get(name)
        .or_else(|| engine.and_then(|options| options.get(name)))
}

/// The key of reader options that are written as SQL.
const RAW_OPTIONS: &str = "duckdb";

/// Returns a value with the templates in its texts executed.
fn rendered(value: &Value, scope: &Scope) -> Result<Value, RenderError> {
    let kind = match &value.kind {
        Some(Kind::String(text)) => Some(Kind::String(render_text(text, scope)?)),
        Some(Kind::List(list)) => {
            let values = list.values.iter().map(|value| rendered(value, scope));
            let values = values.collect::<Result<_, _>>()?;
            Some(Kind::List(ListValue { values }))
        }
        Some(Kind::Map(map)) => Some(Kind::Map(rendered_map(map, scope)?)),
        plain => plain.clone(),
    };
    Ok(Value { kind })
}

/// Returns reader options written as SQL with the templates in them executed.
fn rendered_sql(options: &Value, scope: &Scope) -> Result<Value, RenderError> {
    let Some(Kind::Map(map)) = &options.kind else {
        return rendered(options, scope);
    };
    let option = |(name, value): (&String, &Value)| {
        let value = match value.as_str() {
            Some(text) => Value::from(render_sql(text, scope, Dialect::Engine)?),
            None => rendered(value, scope)?,
        };
        Ok((name.clone(), value))
    };
    let options = map.fields.iter().map(option);
    Ok(Value::from(options.collect::<Result<BTreeMap<_, _>, _>>()?))
}

fn rendered_map(map: &MapValue, scope: &Scope) -> Result<MapValue, RenderError> {
    let field = |(name, value): (&String, &Value)| {
        let value = match name.as_str() {
            RAW_OPTIONS => rendered_sql(value, scope)?,
            _ => rendered(value, scope)?,
        };
        Ok((name.clone(), value))
    };
    let fields = map.fields.iter().map(field);
    Ok(MapValue {
        fields: fields.collect::<Result<_, _>>()?,
    })
}

/// Returns the format of files: the given one, or that of the path's extension.
fn format(path: &str, format: Option<&str>) -> Option<DataFormat> {
    let path = path.to_ascii_lowercase();
    // Of an address of the web a query may follow.
    let path = path
        .split(['?', '#'])
        .next()
        .filter(|_| path.contains("://"))
        .unwrap_or(&path);
    let plain = path.trim_end_matches(".gz").trim_end_matches(".zst");
    let extension = plain.rsplit_once('.').map(|(_, extension)| extension);
    match format
        .map(str::to_ascii_lowercase)
        .as_deref()
        .or(extension)?
        .trim_start_matches('.')
    {
        "csv" | "tsv" | "txt" => Some(DataFormat::Csv),
        "parquet" => Some(DataFormat::Parquet),
        "xlsx" => Some(DataFormat::Xlsx),
        "delta" => Some(DataFormat::Delta),
        "iceberg" => Some(DataFormat::Iceberg),
        "json" | "ndjson" | "jsonl" => Some(DataFormat::Json),
        form if JSON_FORMS.contains(&form) => Some(DataFormat::Json),
        _ => None,
    }
}

/// Values of `format` that describe the layout of JSON in a file.
const JSON_FORMS: [&str; 5] = ["array", "auto", "nd", "newline_delimited", "unstructured"];

/// Returns the options of the reader: those under `duckdb` as SQL, and known ones beside the path as values.
fn options(properties: &MapValue) -> Vec<ReaderOption> {
    let beside = properties
        .fields
        .iter()
        .filter(|(name, _)| READER_OPTIONS.contains(&name.as_str()));
    let mut options = beside
        .map(|(name, value)| ReaderOption::Known(name.clone(), literal(value)))
        .collect::<Vec<_>>();
    let format = properties.str("format");
    let format = format.filter(|format| JSON_FORMS.contains(&format.to_ascii_lowercase().as_str()));
    let known = |format: &str| ReaderOption::Known("format".to_owned(), Literal::Text(format.to_owned()));
    options.extend(format.map(known));
    let own = properties.get(RAW_OPTIONS).and_then(Value::as_map);
    for (name, value) in own.into_iter().flatten() {
        let sql = value
            .as_str()
            .map_or_else(|| ENGINE.literal(&literal(value)), str::to_owned);
        options.push(ReaderOption::Own(name.clone(), sql));
    }
    options
}

#[cfg(test)]
mod tests;
