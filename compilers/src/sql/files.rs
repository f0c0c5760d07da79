//! Files of data that SQL names.

/// The meaning of the first argument of a call in a table's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    /// Paths.
    Reader,
    /// Names of tables.
    Table,
    /// A statement.
    Query,
    /// Nothing that is known here.
    Other,
}

pub(super) fn called(function: &str) -> Called {
    match function.to_lowercase().as_str() {
        "query_table" => Called::Table,
        "query" => Called::Query,
        name if reads_files(name) => Called::Reader,
        _ => Called::Other,
    }
}

/// Returns true if a table function's first argument is a path.
fn reads_files(function: &str) -> bool {
    const READERS: [&str; 17] = [
        "read_csv",
        "read_csv_auto",
        "sniff_csv",
        "read_parquet",
        "parquet_scan",
        "parquet_metadata",
        "parquet_schema",
        "read_json",
        "read_json_auto",
        "read_json_objects",
        "read_json_objects_auto",
        "read_ndjson",
        "read_ndjson_auto",
        "read_ndjson_objects",
        "read_text",
        "read_blob",
        "glob",
    ];
    READERS.iter().any(|reader| function.eq_ignore_ascii_case(reader))
}

/// Returns true if a type is that of texts.
pub(super) fn is_text_type(name: &str) -> bool {
    ["varchar", "text", "string", "char", "bpchar"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns true if a name without quotes is a value that the engine computes.
pub(super) fn is_computed(name: &str) -> bool {
    [
        "current_catalog",
        "current_date",
        "current_role",
        "current_schema",
        "current_time",
        "current_timestamp",
        "current_user",
        "localtime",
        "localtimestamp",
        "session_user",
        "user",
    ]
    .iter()
    .any(|known| name.eq_ignore_ascii_case(known))
}

/// Returns true if a path stands for files of this machine.
pub(crate) fn is_local(path: &str) -> bool {
    !path.is_empty() && !path.contains("://")
}

/// Drivers of stores of objects, with the schemes of their addresses.
pub(crate) const STORES: [(&str, &[&str]); 3] = [
    ("s3", &["s3", "s3a", "s3n"]),
    ("gcs", &["gs", "gcs"]),
    ("azure", &["azure", "az"]),
];

/// Returns the driver of the store in which an address lies; none if it lies in none.
pub(crate) fn store_of(address: &str) -> Option<&'static str> {
    let (scheme, _) = address.split_once("://")?;
    let is_its = |(_, schemes): &&(&str, &[&str])| schemes.contains(&scheme.to_ascii_lowercase().as_str());
    STORES.iter().find(is_its).map(|(driver, _)| *driver)
}

/// Returns true if a table's name is a path that the engine reads as a file when no table has the name.
pub(super) fn looks_like_file(name: &str) -> bool {
    let lower = name.to_lowercase();
    let plain = lower
        .strip_suffix(".gz")
        .or_else(|| lower.strip_suffix(".zst"))
        .unwrap_or(&lower);
    [".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx"]
        .iter()
        .any(|end| plain.ends_with(end))
        || name.contains('*') && name.contains('.')
}
