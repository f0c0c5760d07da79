//! Samples: runs that read a part of every source, in a separate environment.

use std::fmt;
use std::str::FromStr;

use watershed_compilers::parse_seconds;
use watershed_dialect::{ENGINE, Words as _};
use watershed_drivers::olap::{Statement, Statements as _};
use watershed_proto::ModelSpec;

/// The largest number of sampled rows that may be requested; more is likely a typing error.
const MOST_ROWS: u64 = 1_000_000_000;

/// The part of every source that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// The largest number of rows to read.
    Rows(u64),
    /// The rows of the last seconds (their number), by the first time column.
    Last(u32),
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(rows) = text.parse::<u64>() {
            return match rows {
                1..=MOST_ROWS => Ok(Self::Rows(rows)),
                _ => Err(format!("a number of rows from 1 to {MOST_ROWS} was expected")),
            };
        }
        match parse_seconds(text) {
            Some(seconds) if seconds > 0 => Ok(Self::Last(seconds)),
            _ => Err("a number of rows, or a span of time such as `P3D` or `36h`, was expected".to_owned()),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(f, "{rows}"),
            Self::Last(seconds) => write!(f, "PT{seconds}S"),
        }
    }
}

impl Sample {
    /// Returns true if a model's rows come from outside, so that they are sampled.
    #[must_use]
    pub fn is_of(spec: &ModelSpec) -> bool {
        spec.defined_as_source || (spec.inputs.is_empty() && !spec.local_files.is_empty())
    }

    /// Returns the statement that reads the sampled part of `sql`, which has the given columns by name and type.
    /// Without a time column, a sample by time reads all rows.
    pub(super) fn limited(self, sql: &str, columns: &[(String, String)]) -> String {
        match self {
            Self::Rows(rows) => format!("SELECT * FROM ({sql}\n) AS sampled LIMIT {rows}"),
            Self::Last(seconds) => match time_column(columns) {
                None => sql.to_owned(),
                Some(column) => ENGINE.write(&Statement::Latest { sql, column, seconds }),
            },
        }
    }
}

/// Returns the name of the first time column, if there is one.
fn time_column(columns: &[(String, String)]) -> Option<&str> {
    let mut times = columns.iter().filter(|(_, kind)| ENGINE.is_time_type(kind));
    times.next().map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_number_of_rows_or_a_span_of_time() {
        assert_eq!("1000".parse(), Ok(Sample::Rows(1000)));
        assert_eq!("P3D".parse(), Ok(Sample::Last(3 * 24 * 3600)));
        assert_eq!("36h".parse(), Ok(Sample::Last(36 * 3600)));
        for text in ["0", "-1", "", "few", "P0D", "99999999999"] {
            assert!(text.parse::<Sample>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_days_are_told_by_the_first_column_of_times() {
        let columns = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter()
                .map(|(name, kind)| ((*name).to_owned(), (*kind).to_owned()))
                .collect()
        };
        let flights = columns(&[
            ("id", "BIGINT"),
            ("day", "DATE"),
            ("at", "TIMESTAMP WITH TIME ZONE"),
        ]);
        assert_eq!(time_column(&flights), Some("day"));
        let ports = columns(&[("id", "BIGINT"), ("name", "VARCHAR")]);
        assert_eq!(Sample::Last(60).limited("FROM x", &ports), "FROM x");
        assert!(Sample::Rows(5).limited("FROM x", &ports).ends_with("LIMIT 5"));
    }
}
