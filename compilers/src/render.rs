//! SQL as it is sent to the engine.

use std::collections::BTreeMap;

use watershed_proto::{ModelSpec, Value, value::Kind};

use crate::template::{self, is_template, quote_text};

/// What a template sees when it is rendered for a run.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The environment's name.
    pub environment: String,
    /// All variables, as [`Project::variables`](crate::Project::variables) has them.
    pub variables: BTreeMap<String, String>,
    /// The model's own name.
    pub name: String,
    /// The run adds to what is there.
    pub incremental: bool,
    /// What the last run's state resolver yielded.
    pub state: BTreeMap<String, Value>,
    /// The partition that the run is for.
    pub partition: BTreeMap<String, Value>,
}

/// Why SQL can't be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    /// What is wrong.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
}

/// The model's query with its templates executed: its SQL, or a SELECT over the local files that it names. Pure.
///
/// # Errors
/// When a template can't be executed, e.g. reads a variable that is not there, and for inputs that no query can
/// stand for.
pub fn render(spec: &ModelSpec, scope: &Scope) -> Result<String, RenderError> {
    if let Some(sql) = &spec.sql {
        return if sql.templated {
            render_text(&sql.text, scope)
        } else {
            Ok(sql.text.clone())
        };
    }
    let properties = spec.input_properties.as_ref().map(|all| &all.fields);
    let Some(paths) = properties.and_then(|all| all.get("path").or_else(|| all.get("uri"))) else {
        return Err(RenderError {
            message: "the model has no SQL and names no files".into(),
            hint: None,
        });
    };
    if !matches!(spec.input_connector.as_str(), "local_file" | "file") {
        return Err(RenderError {
            message: format!("connector \"{}\" is not supported yet", spec.input_connector),
            hint: Some("use `connector: local_file`, or SQL that reads the files".into()),
        });
    }
    let empty = BTreeMap::new();
    files_query(paths, properties.unwrap_or(&empty), scope)
}

/// A text with its templates executed. Pure.
///
/// # Errors
/// When a template can't be executed.
pub fn render_text(text: &str, scope: &Scope) -> Result<String, RenderError> {
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    template::execute(text, scope).map_err(|error| RenderError {
        message: error.message,
        hint: error.hint,
    })
}

/// `SELECT * FROM read_...('path', option = value)`.
fn files_query(
    paths: &Value,
    properties: &BTreeMap<String, Value>,
    scope: &Scope,
) -> Result<String, RenderError> {
    let texts: Vec<&str> = match paths.as_list() {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => paths.as_str().into_iter().collect(),
    };
    let rendered = texts
        .into_iter()
        .map(|text| render_text(text, scope))
        .collect::<Result<Vec<_>, _>>()?;
    let Some(first) = rendered.first() else {
        return Err(RenderError {
            message: "\"path\" names no file".into(),
            hint: None,
        });
    };
    let said = properties
        .get("format")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let reader = reader(said, first)?;
    let files = match rendered.as_slice() {
        [one] => quote_text(one),
        several => format!(
            "[{}]",
            several
                .iter()
                .map(|path| quote_text(path))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    let options = properties.get("duckdb").and_then(Value::as_map);
    let options = options
        .into_iter()
        .flatten()
        .map(|(name, value)| format!(", {name} = {}", literal(value)));
    Ok(format!(
        "SELECT * FROM {reader}({files}{})",
        options.collect::<String>()
    ))
}

fn reader(format: &str, path: &str) -> Result<&'static str, RenderError> {
    let lower = path.to_lowercase();
    let plain = lower
        .strip_suffix(".gz")
        .or_else(|| lower.strip_suffix(".zst"))
        .unwrap_or(&lower);
    let format = format.trim_start_matches('.').to_lowercase();
    let said = if format.is_empty() {
        plain.rsplit('.').next().unwrap_or_default()
    } else {
        format.as_str()
    };
    match said {
        "csv" | "tsv" | "txt" => Ok("read_csv"),
        "parquet" => Ok("read_parquet"),
        "json" | "jsonl" | "ndjson" => Ok("read_json"),
        _ => Err(RenderError {
            message: format!("the format of \"{path}\" is not known"),
            hint: Some("say `format: csv`, `parquet` or `json`".into()),
        }),
    }
}

/// A value as the engine writes it.
fn literal(value: &Value) -> String {
    match &value.kind {
        None => "NULL".to_owned(),
        Some(Kind::Bool(value)) => value.to_string(),
        Some(Kind::Int(value)) => value.to_string(),
        Some(Kind::Float(value)) => value.to_string(),
        Some(Kind::String(value)) => quote_text(value),
        Some(Kind::List(list)) => {
            format!(
                "[{}]",
                list.values.iter().map(literal).collect::<Vec<_>>().join(", ")
            )
        }
        Some(Kind::Map(map)) => {
            let fields = map
                .fields
                .iter()
                .map(|(key, value)| format!("{}: {}", quote_text(key), literal(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_proto::MapValue;

    fn source(fields: &[(&str, Value)]) -> ModelSpec {
        let fields = fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect();
        ModelSpec {
            input_connector: "local_file".into(),
            input_properties: Some(MapValue { fields }),
            ..ModelSpec::default()
        }
    }

    #[test]
    fn a_local_file_becomes_a_query() {
        let options = Value::from(BTreeMap::from([("header".to_owned(), Value::from(true))]));
        let spec = source(&[("path", "data/it's.csv.gz".into()), ("duckdb", options)]);
        assert_eq!(
            render(&spec, &Scope::default()).as_deref(),
            Ok("SELECT * FROM read_csv('data/it''s.csv.gz', header = true)")
        );
        let spec = source(&[
            ("path", "{{ .env.dir }}/*.bin".into()),
            ("format", "parquet".into()),
        ]);
        let scope = Scope {
            variables: BTreeMap::from([("dir".to_owned(), "d".to_owned())]),
            ..Scope::default()
        };
        assert_eq!(
            render(&spec, &scope).as_deref(),
            Ok("SELECT * FROM read_parquet('d/*.bin')")
        );
    }

    #[test]
    fn an_unknown_format_is_an_error_with_a_hint() {
        let error = render(&source(&[("path", "a.bin".into())]), &Scope::default()).expect_err("no format");
        assert!(error.hint.is_some(), "{error:?}");
    }
}
