//! Outputs of models to files and to tables of other databases.

use watershed_proto::{FileExport, ModelSpec};

use super::keys::{COMPRESSIONS, FILE_FORMATS, FILES};
use crate::{
    diagnostics::{At, Code, spot},
    engine::Need,
    file::is_relevant,
    kinds::reader::Reader,
    sql::{STORES, is_local},
    template::is_template,
    yaml::{Fields, Map, word},
};

/// The driver names that stand for files on the local disk.
const LOCAL: [&str; 2] = ["local_file", "file"];

impl Reader<'_, '_> {
    /// Takes the settings for files or for another database, if the output's connector is of that sort, and returns the
    /// remaining settings.
    pub(super) fn output_files(&mut self, spec: &mut ModelSpec, settings: Map, at: At) -> Map {
        let driver = self.context.driver(&spec.output_connector).unwrap_or_default();
        if self.is_other_database(driver, &spec.output_connector) {
            self.context.needs(Need::Elsewhere, at, self.fields.findings());
            let driver = driver.to_owned();
            return self.output_table(spec, driver, settings, at);
        }
        let store = STORES.iter().find(|(name, _)| *name == driver);
        if !LOCAL.contains(&driver) && store.is_none() {
            return settings;
        }
        self.context.needs(Need::Elsewhere, at, self.fields.findings());
        let store = store.map(|(name, _)| *name).unwrap_or_default();
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
        spec.export = self.files(connector, store, mine, at);
        rest
    }

    /// Returns true if the output's connector is a database other than the engine that models are built in.
    fn is_other_database(&self, driver: &str, connector: &str) -> bool {
        match driver {
            "postgres" => true,
            "duckdb" => connector != "duckdb" && connector != self.context.olap,
            "ducklake" => connector != self.context.olap,
            _ => false,
        }
    }

    /// Takes the table of another database that the output names, and returns the remaining settings.
    fn output_table(&mut self, spec: &mut ModelSpec, database: String, settings: Map, at: At) -> Map {
        let connector = std::mem::replace(&mut spec.output_connector, self.context.olap.to_owned());
        let (mine, rest): (Map, Map) = settings.into_iter().partition(|(key, _)| key == "table");
        for entry in mine.values() {
            self.templates_in(&entry.value);
        }
        let mut fields = Fields::new(mine, at, self.fields.findings());
        let table_at = fields.value_at("table").unwrap_or(at);
        let table = fields.text("table").unwrap_or_default();
        let findings = self.fields.findings();
        if table.trim().is_empty() {
            let message = "an output to another database needs a `table`";
            let hint = "for example, add `table: public.days`";
            findings.add_with_hint(at, Code::MissingKey, message, hint);
            return rest;
        }
        let parts: Vec<&str> = table.split('.').collect();
        if !is_template(&table) && (parts.len() > 2 || parts.iter().any(|part| part.is_empty())) {
            let message =
                format!("rows can't be written to \"{table}\": name a table, or a schema and a table");
            findings.add(table_at, Code::InvalidValue, message);
            return rest;
        }
        spec.export = Some(FileExport {
            connector,
            path: table,
            database,
            at: spot(table_at),
            ..FileExport::default()
        });
        rest
    }

    fn files(&mut self, connector: String, store: &str, settings: Map, at: At) -> Option<FileExport> {
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
            let hint = match store {
                "" => "for example, add `path: exports/days.parquet`",
                "azure" => "for example, add `path: azure://container/days.parquet`",
                "gcs" => "for example, add `path: gs://bucket/days.parquet`",
                _ => "for example, add `path: s3://bucket/days.parquet`",
            };
            findings.add_with_hint(at, Code::MissingKey, message, hint);
            return None;
        }
        let why = match store {
            "" => refused(&path),
            store => refused_object(store, &path),
        };
        if let Some(why) = why {
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
            store: store.to_owned(),
            ..FileExport::default()
        })
    }
}

/// Returns the file format that a path's extension implies.
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

/// Returns the reason why a model can't write to a path; none if it can. Paths with templates are checked again at run
/// time.
pub fn refused(path: &str) -> Option<&'static str> {
    if !is_local(path) {
        return Some("the connector is one of files on this machine");
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

/// Returns the reason why a model can't write to an address in an object store; none if it can. Addresses with
/// templates are checked again at run time.
pub fn refused_object(store: &str, address: &str) -> Option<&'static str> {
    if is_template(address) {
        return None;
    }
    let schemes = STORES.iter().find(|(name, _)| *name == store);
    let schemes = schemes.map(|(_, schemes)| *schemes).unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else {
        return Some("it is no address, as `s3://bucket/days.parquet` is one");
    };
    if !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
        return Some("it is the address of another store than its connector's");
    }
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() || key.is_empty() {
        return Some("name a bucket and a key in it");
    }
    if key.contains(['*', '?', '[', '{', '\\']) {
        return Some("it would be a pattern for whoever reads it");
    }
    key.split('/')
        .any(|part| matches!(part, "" | "." | ".."))
        .then_some("name an object or a folder of objects, without `..` and a slash at its end")
}
