//! Rows of a query, for other programs.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::Value;

use watershed_api::documents::{Column, ExportDocument, GuessedDocument};
use watershed_drivers::volume::Bytes;

use super::units::count;

/// Renders a value as text: strings without quotes, null as an empty text, everything else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Renders the result of an export in one line.
pub(crate) fn exported(document: &ExportDocument) -> String {
    let size = Bytes(document.bytes);
    match document.rows {
        Some(rows) => format!("{} written to {} ({size})\n", count(rows, "row"), document.file),
        None => format!("{} written ({size})\n", document.file),
    }
}

/// Renders the guessed options of a file in one line.
pub(crate) fn guessed(document: &GuessedDocument) -> String {
    let option = |(name, value): (&String, &String)| match (name.as_str(), value.as_str()) {
        ("header", "false") => "header false (names of columns are made up)".to_owned(),
        ("header" | "skip", value) => format!("{name} {value}"),
        (_, value) => format!("{name} {value:?}"),
    };
    let options: Vec<String> = document.options.iter().map(option).collect();
    format!("guessed of {}: {}", document.file, options.join(", "))
}

/// Returns true if rows are the engine's plan of a query: `EXPLAIN`.
pub(crate) fn is_plan(columns: &[Column]) -> bool {
    columns
        .iter()
        .map(|column| column.name.as_str())
        .eq(["explain_key", "explain_value"])
}

/// Renders the engine's plan as the engine draws it.
pub(crate) fn plan(rows: &[Vec<Value>]) -> String {
    rows.iter()
        .filter_map(|row| row.last())
        .map(|drawn| format!("{}\n", plain(drawn).trim_end()))
        .collect()
}

/// Writes the header line of a CSV file.
pub(crate) fn csv_header(out: &mut dyn Write, columns: &[Column]) -> io::Result<()> {
    csv_record(out, columns.iter().map(|column| column.name.clone()))
}

/// Writes rows of a CSV file; null is an empty field.
pub(crate) fn csv_rows(out: &mut dyn Write, rows: &[Vec<Value>]) -> io::Result<()> {
    rows.iter()
        .try_for_each(|row| csv_record(out, row.iter().map(plain)))
}

fn csv_record(out: &mut dyn Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    writer.write_record(fields.map(String::into_bytes))?;
    out.write_all(
        &writer
            .into_inner()
            .map_err(|error| io::Error::other(error.to_string()))?,
    )
}

/// Writes rows as one JSON object per line, keys in the order of the columns.
pub(crate) fn jsonl_rows(out: &mut dyn Write, columns: &[Column], rows: &[Vec<Value>]) -> io::Result<()> {
    let names = unique_names(columns);
    for row in rows {
        serde_json::to_writer(&mut *out, &Object { names: &names, row })?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Returns unique keys for columns: the second `id` becomes `id_1`.
fn unique_names(columns: &[Column]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |column: &Column| {
        let mut candidates = std::iter::once(column.name.clone())
            .chain((1_u32..).map(|number| format!("{}_{number}", column.name)));
        candidates
            .find(|name| taken.insert(name.clone()))
            .unwrap_or_default()
    };
    columns.iter().map(name).collect()
}

/// A row with its keys, serialised without a copy.
struct Object<'a> {
    names: &'a [String],
    row: &'a [Value],
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.names.iter().zip(self.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn columns() -> Vec<Column> {
        let column = |name: &str, data_type: &str| Column {
            name: name.into(),
            data_type: data_type.into(),
        };
        vec![column("carrier", "VARCHAR"), column("flights", "BIGINT")]
    }

    #[test]
    fn csv_quotes_what_needs_it_and_leaves_null_empty() {
        let mut out = Vec::new();
        csv_header(&mut out, &columns()).unwrap();
        csv_rows(
            &mut out,
            &[
                vec![json!("a,\"b\""), json!(null)],
                vec![json!("x\ny"), json!(1.5)],
            ],
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "carrier,flights\n\"a,\"\"b\"\"\",\n\"x\ny\",1.5\n"
        );
    }

    #[test]
    fn jsonl_is_an_object_a_line_in_the_order_of_columns() {
        let mut out = Vec::new();
        let columns = [columns(), columns()].concat();
        jsonl_rows(
            &mut out,
            &columns[1..4],
            &[vec![json!("9007199254740993"), json!("UA"), json!(1)]],
        )
        .unwrap();
        let expected = "{\"flights\":\"9007199254740993\",\"carrier\":\"UA\",\"flights_1\":1}\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
