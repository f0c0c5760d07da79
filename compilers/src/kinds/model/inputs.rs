//! The settings of a model's input, the local files that it reads, and the kind of its output.

use std::collections::BTreeMap;

use watershed_proto::{LocalFiles, MapValue, ModelSpec, OutputKind, Value};

use super::{MODEL, keys::HOOKS, unknown::COLUMNS};
use crate::{
    diagnostics::{At, Code, Role, spot},
    kinds::{common::COMMON, reader::Reader},
    sql::is_local,
    template::{Scope, is_template, render_text},
    text::names,
    yaml::Map,
};

/// Variables that decide whether a model is a table by default.
const DEFAULT_MATERIALIZE: [&str; 2] = ["rill.models.default_materialize", "__materialize_default"];

/// Options of the engine's file readers that a source of files may set beside its `path`.
pub const READER_OPTIONS: &[&str] = &[
    "all_varchar",
    "allow_quoted_nulls",
    "auto_detect",
    "auto_type_candidates",
    "binary_as_string",
    "buffer_size",
    "can_have_nan",
    "column_names",
    "column_types",
    "columns",
    "comment",
    "compression",
    "convert_strings_to_integers",
    "date_format",
    "dateformat",
    "decimal_separator",
    "delim",
    "delimiter",
    "dtypes",
    "empty_as_varchar",
    "encoding",
    "encryption_config",
    "escape",
    "explicit_cardinality",
    "field_appearance_threshold",
    "file_row_number",
    "filename",
    "files_to_sniff",
    "force_not_null",
    "header",
    "hive_partitioning",
    "hive_types",
    "hive_types_autocast",
    "ignore_errors",
    "map_inference_threshold",
    "max_line_size",
    "maximum_depth",
    "maximum_line_size",
    "maximum_object_size",
    "maximum_sample_files",
    "names",
    "new_line",
    "normalize_names",
    "null_padding",
    "nullstr",
    "parallel",
    "parquet_version",
    "quote",
    "range",
    "records",
    "rejects_limit",
    "rejects_scan",
    "rejects_table",
    "sample_size",
    "schema",
    "sep",
    "sheet",
    "skip",
    "stop_at_empty",
    "store_rejects",
    "strict_mode",
    "thousands",
    "timestamp_format",
    "timestampformat",
    "types",
    "union_by_name",
];

impl Reader<'_, '_> {
    /// Passes all remaining keys to the input of the model, and reports those that resemble a known key.
    pub(super) fn input_properties(&mut self, spec: &mut ModelSpec) {
        let rest = self.fields.take_rest();
        let sql = spec.sql.as_ref().map(|sql| sql.text.clone());
        for (key, entry) in &rest {
            if let Some(near) = nearest(key) {
                let message = format!("unknown key \"{key}\" is passed on to the input");
                let hint = format!("did you mean `{near}`?");
                self.fields
                    .findings()
                    .add_with_hint(entry.key_at, Code::MisspelledKey, message, hint);
            }
        }
        self.unused_keys(spec, &rest);
        self.unknown_keys(spec, &rest, |key| {
            let is_option = READER_OPTIONS.contains(&key) && key != COLUMNS;
            is_known(key) || is_option || nearest(key).is_some()
        });
        self.hooks(spec, &rest);
        spec.encoding_at = rest.get("encoding").and_then(|entry| spot(entry.key_at));
        // Templates in them are read already.
        let (hooks, rest): (Map, Map) = rest
            .into_iter()
            .partition(|(key, _)| HOOKS.contains(&key.as_str()));
        let mut properties = self.properties(rest);
        properties.extend(
            hooks
                .into_iter()
                .map(|(key, entry)| (key, entry.value.to_value())),
        );
        if let Some(sql) = sql {
            properties.insert("sql".to_owned(), Value::from(sql));
        }
        let follows = !matches!(
            properties.get("invalidate_on_change"),
            Some(value) if value.as_bool() == Some(false) || value.as_str() == Some("false")
        );
        spec.local_files = self.input_files(spec, &properties, follows);
        spec.input_properties = Some(MapValue { fields: properties });
    }

    /// Returns the files of a `local_file` input; files that SQL reads are added once it is parsed.
    fn input_files(
        &self,
        spec: &ModelSpec,
        properties: &BTreeMap<String, Value>,
        invalidate_on_change: bool,
    ) -> Vec<LocalFiles> {
        let driver = self.context.driver(&spec.input_connector);
        let reads_files = matches!(driver, Some("local_file" | "file"));
        let paths = ["path", "uri"]
            .into_iter()
            .find_map(|key| properties.get(key))
            .filter(|_| reads_files);
        let texts: Vec<&str> = match paths {
            Some(value) => match value.as_list() {
                Some(list) => list.iter().filter_map(Value::as_str).collect(),
                None => value.as_str().into_iter().collect(),
            },
            None => Vec::new(),
        };
        let format = properties.get("format").and_then(Value::as_str);
        let rendered = texts.into_iter().filter_map(|text| self.rendered(text));
        rendered
            .filter(|path| is_local(path))
            .map(|path| lakehouse_log(&path, format).unwrap_or(path))
            .map(|pattern| LocalFiles {
                pattern,
                invalidate_on_change,
                partitions: false,
            })
            .collect()
    }

    /// Returns a path with its variables inserted; none if a variable is not set.
    pub(super) fn rendered(&self, text: &str) -> Option<String> {
        if !is_template(text) {
            return Some(text.to_owned());
        }
        let scope = Scope {
            environment: self.context.environment.to_owned(),
            variables: self.context.variables.clone(),
            ..Scope::default()
        };
        render_text(text, &scope).ok()
    }

    /// Decides whether the output is a table or a view, by what the model needs, its settings and the project's
    /// default.
    pub(super) fn output_kind(&mut self, spec: &mut ModelSpec, materialize_at: Option<At>) {
        let materialize = spec
            .output_properties
            .as_ref()
            .and_then(|all| all.get("materialize"));
        let said = materialize.and_then(Value::as_bool);
        let must = if spec.incremental {
            Some("it is incremental")
        } else if spec.partitions.is_some() {
            Some("it has partitions")
        } else if let Some(export) = &spec.export {
            Some(match export.database.is_empty() {
                true => "its rows are written to files",
                false => "its rows are written to another database",
            })
        } else if spec.sql.is_none() && reads_table(spec) {
            Some("its rows come from another database")
        } else if spec.input_connector != spec.output_connector {
            Some("its input is another connector than its output")
        } else {
            None
        };
        let at = materialize_at.unwrap_or(self.fields.at());
        // The manifest's default is for models that can be either.
        if let (Some(reason), Some(false)) = (must, said)
            && at.role != Role::Manifest
        {
            let message = format!("the model can't be a view: {reason}");
            self.fields.findings().add_with_hint(
                at,
                Code::ConflictingKeys,
                message,
                "leave out `materialize: false`",
            );
        }
        let default = || {
            let value = DEFAULT_MATERIALIZE
                .into_iter()
                .find_map(|name| self.context.variables.get(name));
            value.is_some_and(|value| matches!(value.as_str(), "true" | "1" | "t" | "TRUE" | "True"))
        };
        let table = must.is_some() || said.unwrap_or_else(default);
        if said.is_none() && must.is_none() {
            self.uses.decisive.extend(DEFAULT_MATERIALIZE.map(str::to_owned));
        }
        spec.output_kind = if table {
            OutputKind::Table
        } else {
            OutputKind::View
        }
        .into();
    }
}

/// Returns true if the input names a table of a database.
fn reads_table(spec: &ModelSpec) -> bool {
    let properties = spec.input_properties.as_ref();
    properties.is_some_and(|all| all.get("table").is_some())
}

/// Returns the known key that an unknown key resembles.
fn nearest(key: &str) -> Option<&'static str> {
    if is_known(key) || READER_OPTIONS.contains(&key) {
        return None;
    }
    let options = READER_OPTIONS.iter().copied();
    names::nearest(key, COMMON.names().chain(MODEL.names()).chain(options))
}

/// Returns true if a key is one that models take.
pub(crate) fn is_known(key: &str) -> bool {
    COMMON.key(key).is_some() || MODEL.key(key).is_some()
}

/// Returns the pattern of a lakehouse table's log files, which change whenever the table does; none for other formats.
pub fn lakehouse_log(path: &str, format: Option<&str>) -> Option<String> {
    let table = path.trim_end_matches('/');
    match format?.to_ascii_lowercase().as_str() {
        "delta" => Some(format!("{table}/_delta_log/*")),
        // One file of metadata is one state of the table.
        "iceberg" if !table.ends_with(".json") => Some(format!("{table}/metadata/*")),
        _ => None,
    }
}
