//! Export to Excel workbooks: one sheet of typed cells, in memory that does not grow with the rows.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rust_xlsxwriter::{ExcelDateTime, Format, Workbook, Worksheet, XlsxError};

use crate::duckdb::sys::Answer;
use crate::duckdb::transaction::Work;
use crate::olap::{Export, ExportError, Look, QueryError, Value, is_unwritten_sheet};

/// The most rows of a sheet in all common programs.
const MOST_ROWS: u32 = 1_048_576;
/// The most columns of a sheet.
const MOST_COLUMNS: usize = 16_384;
/// The most characters of a cell.
const LONGEST_TEXT: usize = 32_767;
/// Number of significant digits that a sheet preserves.
const DIGITS: usize = 15;
/// Number of first rows from which the widths of columns are determined.
const MEASURED_ROWS: u32 = 100;

/// Writes the rows of an answer to a workbook. Returns their number.
pub(super) fn write(
    work: &Work<'_>,
    export: &Export,
    answer: &mut Answer<'_>,
    file: &Path,
) -> Result<u64, ExportError> {
    // The workbook is dropped by the panic, and nothing else was under way.
    let written = catch_unwind(AssertUnwindSafe(|| try_write(work, export, answer, file)));
    written.unwrap_or_else(|panic| Err(unwritten_rows(panic, export)))
}

/// Converts the library's panic about rows that can't be written to an error; resumes other panics.
fn unwritten_rows(panic: Box<dyn Any + Send>, export: &Export) -> ExportError {
    let Some(said) = panic
        .downcast_ref::<String>()
        .filter(|said| is_unwritten_sheet(said))
    else {
        resume_unwind(panic)
    };
    // It tells the kind by name alone: `Couldn't write to xml file: Os { code: 28, kind: StorageFull, .. }`.
    let kinds = [
        io::ErrorKind::StorageFull,
        io::ErrorKind::QuotaExceeded,
        io::ErrorKind::FileTooLarge,
    ];
    let kind = kinds
        .into_iter()
        .find(|kind| said.contains(&format!("kind: {kind:?}")))
        .unwrap_or(io::ErrorKind::Other);
    super::unwritable(&export.file, &io::Error::new(kind, said.clone()))
}

fn try_write(
    work: &Work<'_>,
    export: &Export,
    answer: &mut Answer<'_>,
    file: &Path,
) -> Result<u64, ExportError> {
    let unwritten = |error: XlsxError| match error {
        XlsxError::IoError(error) => super::unwritable(&export.file, &error),
        XlsxError::ZipError(error) => super::unwritable(&export.file, &error.into()),
        error => ExportError::Sheet(error.to_string()),
    };
    let columns: Vec<(String, String)> = answer
        .columns()
        .iter()
        .map(|(name, shape)| (name.clone(), shape.name.clone()))
        .collect();
    if columns.len() > MOST_COLUMNS {
        let message = format!("a sheet has at most {MOST_COLUMNS} columns");
        return Err(ExportError::Sheet(message));
    }
    let mut book = Workbook::new();
    // Rows wait in a file without a name, on the volume of the workbook.
    if let Some(folder) = file.parent() {
        book.set_tempdir(folder).map_err(unwritten)?;
    }
    let sheet = book.add_worksheet_with_constant_memory().map_err(unwritten)?;
    let mut sheet = Sheet::begin(sheet, export, &columns).map_err(unwritten)?;
    let most = export.query.limit.unwrap_or(u64::MAX);
    let mut count = 0;
    let fail = |raw| QueryError::Failed(work.fail(&raw, None));
    'chunks: while let Some(chunk) = answer.next_chunk().map_err(fail)? {
        work.check_cancelled()?;
        for row in chunk.rows() {
            if count == most {
                break 'chunks;
            }
            if sheet.row >= MOST_ROWS {
                let hint = "set a limit, or write a .csv or .parquet file";
                return Err(ExportError::Sheet(format!(
                    "a sheet has at most {MOST_ROWS} rows: {hint}"
                )));
            }
            sheet.write(&row).map_err(unwritten)?;
            count += 1;
        }
    }
    // An interrupt can end a streamed answer as if it were whole.
    work.check_cancelled()?;
    sheet.end().map_err(unwritten)?;
    book.save(file).map_err(unwritten)?;
    Ok(count)
}

/// A column of the sheet.
struct Column {
    format: Option<Format>,
    /// Time zone in which the column's times are shown; none if they have none.
    zone: Option<TimeZone>,
    /// Length of the longest text in the first rows, in characters.
    width: usize,
}

/// A sheet being written row by row.
struct Sheet<'b> {
    sheet: &'b mut Worksheet,
    columns: Vec<Column>,
    /// Index of the next row.
    row: u32,
}

impl<'b> Sheet<'b> {
    /// Begins a sheet with the lines above the table and the column names.
    fn begin(
        sheet: &'b mut Worksheet,
        export: &Export,
        columns: &[(String, String)],
    ) -> Result<Self, XlsxError> {
        let bold = Format::new().set_bold();
        let mut row = 0;
        for line in &export.layout.above {
            sheet.write_string(row, 0, cut(line))?;
            row += 1;
        }
        for ((name, _), place) in columns.iter().zip(0..) {
            sheet.write_string_with_format(row, place, cut(name), &bold)?;
        }
        row += 1;
        sheet.set_freeze_panes(row, 0)?;
        let plain = Look::default();
        let looks = export.layout.columns.iter().chain(std::iter::repeat(&plain));
        let columns = columns.iter().zip(looks);
        let columns = columns.map(|((name, data_type), look)| Column::of(name, data_type, look));
        Ok(Self {
            columns: columns.collect(),
            sheet,
            row,
        })
    }

    fn write(&mut self, row: &[Value]) -> Result<(), XlsxError> {
        let at = self.row;
        self.row += 1;
        for ((value, column), place) in row.iter().zip(&mut self.columns).zip(0..) {
            if at < MEASURED_ROWS {
                column.measure(value);
            }
            column.write(self.sheet, (at, place), value)?;
        }
        Ok(())
    }

    /// Completes a sheet by setting the widths of its columns.
    fn end(self) -> Result<(), XlsxError> {
        for (column, place) in self.columns.iter().zip(0..) {
            let width = u32::try_from(column.width.clamp(8, 60)).unwrap_or(8);
            self.sheet.set_column_width(place, f64::from(width) + 1.0)?;
        }
        Ok(())
    }
}

impl Column {
    fn of(name: &str, data_type: &str, look: &Look) -> Self {
        let own = match data_type {
            "DATE" => Some("yyyy-mm-dd"),
            kind if kind.starts_with("TIMESTAMP") => Some("yyyy-mm-dd hh:mm:ss"),
            _ => None,
        };
        Self {
            format: match look.zone {
                Some(_) => look.format.as_deref().or(own),
                None => own.or(look.format.as_deref()),
            }
            .map(|format| Format::new().set_num_format(format)),
            zone: look.zone.clone(),
            width: name.chars().count(),
        }
    }

    fn measure(&mut self, value: &Value) {
        if !matches!(value, Value::Null) {
            self.width = self.width.max(value.to_string().chars().count());
        }
    }

    fn write(
        &self,
        sheet: &mut Worksheet,
        (row, column): (u32, u16),
        value: &Value,
    ) -> Result<(), XlsxError> {
        let number = match value {
            Value::Null => return Ok(()),
            Value::Boolean(flag) => return sheet.write_boolean(row, column, *flag).map(drop),
            Value::Integer(number) => exact(&number.to_string()),
            Value::Float(number) => exact(&number.to_string()),
            Value::Double(number) => Some(*number).filter(|number| number.is_finite()),
            Value::Decimal { .. } => exact(&value.to_string()),
            Value::Date { .. } => value.day().and_then(|day| days(day.at(0, 0, 0, 0))),
            Value::Timestamp { .. } => {
                let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
                let instant = value.instant();
                instant.and_then(|instant| days(zone.to_datetime(instant)))
            }
            Value::Text(_)
            | Value::Time { .. }
            | Value::Blob(_)
            | Value::List(_)
            | Value::Struct(_)
            | Value::Map(_) => None,
        };
        match (number, &self.format) {
            (Some(number), Some(format)) => sheet.write_number_with_format(row, column, number, format),
            (Some(number), None) => sheet.write_number(row, column, number),
            // What a number of a sheet can't hold keeps its digits as text.
            (None, _) => sheet.write_string(row, column, cut(&value.to_string())),
        }
        .map(drop)
    }
}

/// Returns a number if a sheet preserves all of its digits.
fn exact(text: &str) -> Option<f64> {
    let digits = text.trim_start_matches(['-', '0', '.']);
    let digits = digits.bytes().filter(u8::is_ascii_digit).count();
    let number: f64 = text.parse().ok()?;
    (digits <= DIGITS && number.is_finite()).then_some(number)
}

/// Returns a time in the unit of sheets, days; none if out of their range.
fn days(time: DateTime) -> Option<f64> {
    let part = |part: i8| u8::try_from(part).ok();
    let day = ExcelDateTime::from_ymd(
        u16::try_from(time.year()).ok()?,
        part(time.month())?,
        part(time.day())?,
    );
    let second = f64::from(time.second()) + f64::from(time.subsec_nanosecond()) / 1e9;
    let time = day
        .ok()?
        .and_hms(u16::from(part(time.hour())?), part(time.minute())?, second);
    Some(time.ok()?.to_excel())
}

/// Truncates a text to the capacity of a cell.
fn cut(text: &str) -> String {
    // Letters are counted as UTF-16 does, of which one here is at most two.
    match text.len() <= LONGEST_TEXT {
        true => text.to_owned(),
        false => text.chars().take(LONGEST_TEXT / 2 - 1).chain(['…']).collect(),
    }
}
