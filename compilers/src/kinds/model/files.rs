//! Outputs that are files: where a model's rows are written to, beside its table.

use watershed_proto::{FileExport, ModelSpec};

use super::keys::{COMPRESSIONS, FILE_FORMATS, FILES};
use crate::{
    diagnostics::{At, Code, spot},
    file::is_relevant,
    kinds::reader::Reader,
    sql::is_local,
    template::is_template,
    yaml::{Fields, Map, word},
};

/// Drivers of files on this machine.
const LOCAL: [&str; 2] = ["local_file", "file"];

impl Reader<'_, '_> {
    /// Takes what an output says of files, if its connector is one of files, and returns its other settings.
    pub(super) fn output_files(&mut self, spec: &mut ModelSpec, settings: Map, at: At) -> Map {
        let driver = self.context.driver(&spec.output_connector).unwrap_or_default();
        if !LOCAL.contains(&driver) {
            return settings;
        }
        let connector = std::mem::replace(&mut spec.output_connector, self.context.olap.to_owned());
        let (mine, rest): (Map, Map) = settings
            .into_iter()
            .partition(|(key, _)| FILES.key(key).is_some());
        if let Some(entry) = mine.get("partition_by").filter(|_| spec.incremental) {
            let message = "`partition_by` of an output of files names folders, and the model is incremental";
            let hint = "leave it out here; new rows come into the table by `unique_key` or are added";
            let findings = self.fields.findings();
            findings.add_with_hint(entry.key_at, Code::ConflictingKeys, message, hint);
        }
        spec.export = self.files(connector, mine, at);
        rest
    }

    fn files(&mut self, connector: String, settings: Map, at: At) -> Option<FileExport> {
        for entry in settings.values() {
            self.templates_in(&entry.value);
        }
        let mut fields = Fields::new(settings, at, self.fields.findings());
        let path_at = fields.value_at("path").unwrap_or(at);
        let path = fields.text("path").unwrap_or_default();
        let format = word(&mut fields, "format", &FILE_FORMATS);
        let partition_by = fields.texts("partition_by").unwrap_or_default();
        let header_at = fields.value_at("header").or(fields.value_at("delimiter"));
        let header = fields.bool("header");
        let delimiter = fields.text("delimiter").unwrap_or_default();
        let compression = word(&mut fields, "compression", &COMPRESSIONS).unwrap_or_default();
        let format = format.or_else(|| ending(&path).map(str::to_owned));
        let findings = self.fields.findings();
        if path.trim().is_empty() {
            let message = "an output of files needs a `path`";
            let hint = "for example, add `path: exports/days.parquet`";
            findings.add_with_hint(at, Code::MissingKey, message, hint);
            return None;
        }
        if let Some(why) = refused(&path) {
            findings.add(
                path_at,
                Code::InvalidValue,
                format!("rows can't be written to \"{path}\": {why}"),
            );
            return None;
        }
        let Some(format) = format else {
            let message = format!("can't tell the format of \"{path}\"");
            let hint = "add `format: csv`, `json` or `parquet`";
            findings.add_with_hint(path_at, Code::MissingKey, message, hint);
            return None;
        };
        if let (Some(at), true) = (header_at, format != "csv") {
            let message = format!("`header` and `delimiter` are of CSV, and the files are {format}");
            findings.add(at, Code::ConflictingKeys, message);
        }
        Some(FileExport {
            connector,
            path,
            format,
            partition_by,
            header,
            delimiter,
            compression,
            at: spot(path_at),
        })
    }
}

/// The form that the ending of a path tells.
fn ending(path: &str) -> Option<&'static str> {
    let path = path.trim_end_matches(".gz").trim_end_matches(".zst");
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "csv" => Some("csv"),
        "json" | "jsonl" | "ndjson" => Some("json"),
        "parquet" => Some("parquet"),
        _ => None,
    }
}

/// Why a model writes no rows to a path; none if it may. What a template makes of it is looked at again in the run.
pub fn refused(path: &str) -> Option<&'static str> {
    if !is_local(path) {
        return Some("only files on this machine are written");
    }
    if is_template(path) {
        return None;
    }
    let path = path.trim_start_matches("./");
    let first = path.split('/').next().unwrap_or_default();
    if first == ".watershed" || first == ".git" {
        return Some("what stands in there is not the project's own");
    }
    if is_relevant(path) {
        return Some("it would be a file of the project");
    }
    (path.ends_with('/') || path.split('/').any(|part| part == ".."))
        .then_some("name a file or folder, without `..`")
}
