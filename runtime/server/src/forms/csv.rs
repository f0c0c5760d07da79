//! Rows as comma-separated values in UTF-8; NULL is an empty field.

use std::io;

use csv::{Writer, WriterBuilder};

use super::Cell;

/// Writes the header line.
///
/// # Errors
/// Never for memory; the error is that of the writer beneath.
pub fn write_header<'a>(out: &mut Vec<u8>, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
    let mut writer = writer(out);
    writer.write_record(names)?;
    writer.flush()
}

/// Writes a line for each row.
///
/// # Errors
/// Never for memory; the error is that of the writer beneath.
pub fn write_rows<C: Cell>(out: &mut Vec<u8>, rows: &[Vec<C>]) -> io::Result<()> {
    let mut writer = writer(out);
    let mut field = Vec::new();
    for row in rows {
        for cell in row {
            field.clear();
            cell.write_plain(&mut field);
            writer.write_field(&field)?;
        }
        // The end of the line.
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

fn writer(out: &mut Vec<u8>) -> Writer<&mut Vec<u8>> {
    WriterBuilder::new().flexible(true).from_writer(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn csv_quotes_what_needs_it_and_leaves_null_empty() {
        let mut out = Vec::new();
        write_header(&mut out, ["carrier", "flights"].into_iter()).unwrap();
        let rows = [
            vec![json!("a,\"b\""), json!(null)],
            vec![json!("x\ny"), json!(1.5)],
        ];
        write_rows(&mut out, &rows).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "carrier,flights\n\"a,\"\"b\"\"\",\n\"x\ny\",1.5\n"
        );
    }

    #[test]
    fn csv_of_one_column_keeps_its_empty_lines() {
        let mut out = Vec::new();
        write_header(&mut out, ["a"].into_iter()).unwrap();
        write_rows(&mut out, &[vec![json!(null)], vec![json!("NULL")]]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "a\n\"\"\nNULL\n");
    }
}
