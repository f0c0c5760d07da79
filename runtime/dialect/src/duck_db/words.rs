//! Keywords, types and functions of DuckDB's statements.

use super::DuckDb;
use crate::{DataFormat, FileFunction, TableFunction, Words};

/// Table functions that read files, by name.
const FILES: [(&str, FileFunction); 18] = [
    ("glob", FileFunction::Whole),
    ("parquet_metadata", FileFunction::Whole),
    ("parquet_scan", FileFunction::Rows(DataFormat::Parquet)),
    ("parquet_schema", FileFunction::Whole),
    ("read_blob", FileFunction::Whole),
    ("read_csv", FileFunction::Rows(DataFormat::Csv)),
    ("read_csv_auto", FileFunction::Rows(DataFormat::Csv)),
    ("read_json", FileFunction::Rows(DataFormat::Json)),
    ("read_json_auto", FileFunction::Rows(DataFormat::Json)),
    ("read_json_objects", FileFunction::Documents),
    ("read_json_objects_auto", FileFunction::Documents),
    ("read_ndjson", FileFunction::Rows(DataFormat::Json)),
    ("read_ndjson_auto", FileFunction::Rows(DataFormat::Json)),
    ("read_ndjson_objects", FileFunction::Documents),
    ("read_parquet", FileFunction::Rows(DataFormat::Parquet)),
    ("read_text", FileFunction::Whole),
    ("read_xlsx", FileFunction::Rows(DataFormat::Xlsx)),
    ("sniff_csv", FileFunction::Whole),
];

const TEXT_TYPES: [&str; 5] = ["varchar", "text", "string", "char", "bpchar"];

const COMPUTED: [&str; 11] = [
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
];

const WITHOUT_ROWS: [&str; 22] = [
    "ALTER",
    "ANALYZE",
    "ATTACH",
    "BEGIN",
    "CHECKPOINT",
    "COMMENT",
    "COMMIT",
    "COPY",
    "CREATE",
    "DELETE",
    "DETACH",
    "DROP",
    "EXPORT",
    "IMPORT",
    "INSERT",
    "INSTALL",
    "LOAD",
    "MERGE",
    "SET",
    "UPDATE",
    "USE",
    "VACUUM",
];

/// File name extensions by which the engine reads a file that is named in a table's place.
const FILE_ENDS: [&str; 7] = [".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".xlsx"];

impl Words for DuckDb {
    fn table_function(&self, name: &str) -> TableFunction {
        let is_it = |known: &str| name.eq_ignore_ascii_case(known);
        match FILES.iter().find(|(known, _)| is_it(known)) {
            Some((_, files)) => TableFunction::Files(*files),
            None if is_it("query_table") => TableFunction::Table,
            None if is_it("query") => TableFunction::Query,
            None => TableFunction::Other,
        }
    }

    fn names_file(&self, table: &str) -> bool {
        let lower = table.to_lowercase();
        let plain = lower
            .strip_suffix(".gz")
            .or_else(|| lower.strip_suffix(".zst"))
            .unwrap_or(&lower);
        FILE_ENDS.iter().any(|end| plain.ends_with(end)) || table.contains('*') && table.contains('.')
    }

    fn is_text_type(&self, name: &str) -> bool {
        TEXT_TYPES.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    fn is_time_type(&self, name: &str) -> bool {
        name == "DATE" || name.starts_with("TIMESTAMP")
    }

    fn is_computed(&self, name: &str) -> bool {
        COMPUTED.iter().any(|known| name.eq_ignore_ascii_case(known))
    }

    fn yields_no_rows(&self, word: &str) -> bool {
        WITHOUT_ROWS.contains(&word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_known_by_what_their_first_argument_means() {
        let meaning = |name: &str| DuckDb.table_function(name);
        let rows = |format| TableFunction::Files(FileFunction::Rows(format));
        assert_eq!(meaning("READ_CSV_auto"), rows(DataFormat::Csv));
        assert_eq!(meaning("parquet_scan"), rows(DataFormat::Parquet));
        assert_eq!(meaning("glob"), TableFunction::Files(FileFunction::Whole));
        assert_eq!(meaning("query_table"), TableFunction::Table);
        assert_eq!(meaning("Query"), TableFunction::Query);
        assert_eq!(meaning("range"), TableFunction::Other);
    }

    #[test]
    fn names_of_tables_may_be_paths() {
        for path in [
            "a.csv",
            "data/A.PARQUET",
            "x.json.gz",
            "y.ndjson.zst",
            "data/*.dat",
        ] {
            assert!(DuckDb.names_file(path), "{path}");
        }
        for table in ["orders", "main.orders", "csv", "a.csv.bz2", "all*"] {
            assert!(!DuckDb.names_file(table), "{table}");
        }
    }
}
