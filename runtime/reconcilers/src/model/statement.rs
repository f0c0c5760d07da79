//! The statement, output name and shape of a model, as pure functions of its spec.

use std::collections::BTreeMap;

use watershed_compilers::{RenderError, Scope, render};
use watershed_core::{Error, SourcePosition};
use watershed_drivers::olap::TextPosition;
use watershed_proto::{ModelSpec, OutputKind, SqlSource};

use super::{failure, record::Shape, source};
use crate::places::source as place;

/// Returns the statement for the engine, with templates executed and files read by a SELECT.
///
/// `paths` are the model's files, for places in errors.
///
/// # Errors
/// When a template can't be executed, or there is nothing to read.
pub fn sql(
    spec: &ModelSpec,
    name: &str,
    environment: &str,
    paths: &[impl AsRef<str>],
) -> Result<String, Error> {
    sql_in(spec, &scope(spec.variables.clone(), name, environment), paths)
}

/// Returns the statement for the engine, with templates executed in the given scope.
///
/// # Errors
/// As [`sql`].
pub(super) fn sql_in(spec: &ModelSpec, scope: &Scope, paths: &[impl AsRef<str>]) -> Result<String, Error> {
    match render(spec, scope) {
        Ok(Some(sql)) => match source::sent(spec, scope, sql) {
            Ok(sql) => Ok(sql),
            Err(error) => Err(Error {
                place: query_place(spec, paths),
                ..failure::from_source(&error)
            }),
        },
        Ok(None) => source::sql(spec, scope).map_err(|error| Error {
            place: paths.first().map(|path| start_of(path.as_ref())),
            ..failure::from_source(&error)
        }),
        Err(error) => Err(Error {
            place: template_place(spec, &error, paths),
            ..failure::from_render(&error)
        }),
    }
}

/// Returns the values that the templates of a model see.
pub(crate) fn scope(variables: BTreeMap<String, String>, name: &str, environment: &str) -> Scope {
    Scope {
        environment: environment.to_owned(),
        variables,
        name: name.to_owned(),
        ..Scope::default()
    }
}

/// Returns the name of the output: `output.table`, or else the model's name.
#[must_use]
pub fn table<'a>(spec: &'a ModelSpec, name: &'a str) -> &'a str {
    let table = spec
        .output_properties
        .as_ref()
        .and_then(|properties| properties.str("table"));
    table.filter(|table| !table.is_empty()).unwrap_or(name)
}

/// Returns the shape of the output: a view or a table.
#[must_use]
pub fn shape(spec: &ModelSpec) -> Shape {
    match spec.output_kind() {
        OutputKind::Table => Shape::Table,
        OutputKind::View | OutputKind::Unspecified => Shape::View,
    }
}

/// Returns true if building the spec only creates a view from a text that never varies.
pub(super) fn is_text_alone(spec: &ModelSpec) -> bool {
    let is_alone = spec.tests.is_empty()
        && spec.init_queries.is_empty()
        && spec.pre_exec.is_empty()
        && spec.post_exec.is_empty()
        && spec.incremental_state.is_none()
        && spec.partitions.is_none();
    let text = spec.sql.as_ref().map(|sql| sql.text.as_str());
    shape(spec) == Shape::View && is_alone && text.is_some_and(is_fixed)
}

/// Returns true if the templates of a text only name refs; other templates may vary, for example by time.
fn is_fixed(text: &str) -> bool {
    let is_ref = |rest: &str| {
        let inner = rest
            .split_once("}}")
            .map(|(inner, _)| inner.trim_matches('-').trim());
        let name = inner.and_then(|inner| inner.strip_prefix("ref")).map(str::trim);
        name.is_some_and(|name| name.starts_with('"') && !name.contains(['(', '|']))
    };
    text.split("{{").skip(1).all(is_ref)
}

/// Returns the position in the model's file for a byte of the sent statement.
pub(super) fn place_of(
    spec: &ModelSpec,
    paths: &[impl AsRef<str>],
    sent: &str,
    offset: Option<usize>,
) -> Option<SourcePosition> {
    let path = sql_path(spec, paths)?;
    Some(match &spec.sql {
        Some(source) => place::in_file(source, path, sent, offset),
        None => start_of(path),
    })
}

fn template_place(
    spec: &ModelSpec,
    error: &RenderError,
    paths: &[impl AsRef<str>],
) -> Option<SourcePosition> {
    let path = sql_path(spec, paths)?;
    let at = TextPosition {
        line: usize::try_from(error.line).unwrap_or(1).max(1),
        column: 1,
    };
    spec.sql
        .as_ref()
        .map(|source| place::in_file_at(source, path, at))
}

/// Returns the position of the first line of the SQL that is not a comment.
fn query_place(spec: &ModelSpec, paths: &[impl AsRef<str>]) -> Option<SourcePosition> {
    let (source, path) = (spec.sql.as_ref()?, sql_path(spec, paths)?);
    let is_query = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with("--");
    let before = source.text.lines().take_while(|line| !is_query(line)).count();
    let line = if before < source.text.lines().count() {
        before + 1
    } else {
        1
    };
    Some(place::in_file_at(source, path, TextPosition { line, column: 1 }))
}

/// Returns the path of the file with the SQL, as it is now, since files can move without an edit of the spec.
fn sql_path<'a>(spec: &'a ModelSpec, paths: &'a [impl AsRef<str>]) -> Option<&'a str> {
    let paths = || paths.iter().map(AsRef::as_ref);
    let told = spec.sql.as_ref().map(|source| source.path.as_str());
    let same = told.filter(|told| paths().any(|path| path == *told));
    let extension = told
        .and_then(|told| told.rsplit_once('.'))
        .map(|(_, extension)| extension);
    same.or_else(|| paths().find(|path| path.rsplit_once('.').map(|(_, extension)| extension) == extension))
        .or_else(|| paths().next())
        .or(told)
}

fn start_of(path: &str) -> SourcePosition {
    SourcePosition {
        path: path.into(),
        line: 1,
        column: 1,
    }
}

/// Returns a copy of a spec reduced to what decides the output, without fingerprints, places and faults.
pub(super) fn decisive(spec: &ModelSpec) -> ModelSpec {
    let sql = spec.sql.as_ref().map(|sql| SqlSource {
        text: sql.text.clone(),
        ..SqlSource::default()
    });
    ModelSpec {
        sql,
        meaning: None,
        output_meaning: None,
        fault: None,
        incremental_output: None,
        init_queries: Vec::new(),
        pre_exec: Vec::new(),
        post_exec: Vec::new(),
        order_by_at: None,
        encoding_at: None,
        export: None,
        ..spec.clone()
    }
}

#[cfg(test)]
mod tests {
    use watershed_proto::{MapValue, Value};

    use super::*;

    fn with_output<const N: usize>(properties: [(&str, Value); N]) -> ModelSpec {
        let fields = properties
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>();
        ModelSpec {
            output_properties: Some(MapValue { fields }),
            ..ModelSpec::default()
        }
    }

    #[test]
    fn the_output_has_the_models_name_unless_it_says_another() {
        assert_eq!(table(&ModelSpec::default(), "m"), "m");
        assert_eq!(table(&with_output([("table", "t".into())]), "m"), "t");
        assert_eq!(table(&with_output([("table", "".into())]), "m"), "m");
    }

    #[test]
    fn a_text_is_fixed_unless_its_templates_do_more_than_name_what_it_reads() {
        for fixed in [
            "SELECT 1",
            "SELECT * FROM {{ ref \"a\" }}",
            "SELECT * FROM {{-ref \"a\"-}} JOIN {{ref \"b\"}}",
        ] {
            assert!(is_fixed(fixed), "{fixed}");
        }
        for other in [
            "SELECT '{{ now }}'",
            "SELECT '{{ .env.region }}' FROM {{ ref \"a\" }}",
            "{{ if dev }} SELECT 1 {{ end }}",
            "SELECT * FROM {{ ref (now) }}",
            "SELECT * FROM {{ ref \"a\" | upper }}",
            "SELECT '{{ refresh \"a\" }}'",
        ] {
            assert!(!is_fixed(other), "{other}");
        }
    }

    #[test]
    fn places_name_the_file_that_holds_the_sql_now() {
        let sql = SqlSource {
            path: "models/old.sql".into(),
            line: 1,
            column: 1,
            ..SqlSource::default()
        };
        let spec = ModelSpec {
            sql: Some(sql),
            ..ModelSpec::default()
        };
        let path = |paths: &[&str]| place_of(&spec, paths, "", None).unwrap().path.to_string();
        assert_eq!(path(&["models/old.sql", "models/old.yaml"]), "models/old.sql");
        assert_eq!(path(&["models/new.yaml", "models/new.sql"]), "models/new.sql");
        assert_eq!(path(&["models/new.yaml"]), "models/new.yaml");
        assert_eq!(path(&[]), "models/old.sql");
    }
}
