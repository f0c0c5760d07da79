//! Change detection for the part of a DuckLake that a source reads, by its snapshots and without reading rows.
//!
//! Of a table those snapshots count that say they changed it; of a query, all that changed any table. What can't be told is a
//! change: a snapshot that was read and has been expired since, one of another lake of that name, or a change of a sort that
//! is not known here.

use watershed_drivers::files::FileNow;
use watershed_drivers::olap::{NamedRow, Snapshot, Statement, TableName, Value};

/// The prefix of addresses that stand for parts of a lake.
const SCHEME: &str = "ducklake://";

/// The part of a lake that a source reads.
pub(super) struct Part<'a> {
    /// The name of the connector of the lake.
    pub(super) connector: &'a str,
    /// The name under which the lake is attached.
    pub(super) attached: &'a str,
    /// The schema of the lake in the database of its catalog; none for the usual one.
    pub(super) schema: Option<&'a str>,
    /// The table that is read; none for any tables, if a query is run.
    pub(super) table: Option<TableName>,
    /// The snapshot that is read; none for the newest.
    pub(super) snapshot: Option<&'a Snapshot>,
}

impl Part<'_> {
    /// Returns the address that stands for the part in records.
    pub(super) fn address(&self) -> String {
        let table = self.table.as_ref().map_or_else(String::new, |table| {
            let schema = table.schema.as_deref().unwrap_or("main");
            format!("{schema}.{}", table.table)
        });
        format!("{SCHEME}{}/{table}", self.connector)
    }

    /// Returns the statement that asks for changes since a recorded snapshot.
    pub(super) fn question(&self, then: Option<&FileNow>) -> Statement<'_> {
        Statement::Changes {
            lake: self.attached,
            schema: self.schema,
            table: self.table.as_ref(),
            snapshot: self.snapshot,
            then: then.map_or(-1, |then| i64::try_from(then.size).unwrap_or(i64::MAX)),
        }
    }

    /// Returns the part as recorded then if nothing changed, else as it is now; none if the answer can't be read.
    pub(super) fn now(&self, then: Option<&FileNow>, row: &NamedRow) -> Option<FileNow> {
        let value = |wanted: &str| {
            let (_, value) = row.iter().find(|(name, _)| name == wanted)?;
            match value {
                Value::Integer(value) => i64::try_from(*value).ok(),
                Value::Boolean(value) => Some(i64::from(*value)),
                _ => None,
            }
        };
        let (id, at) = (value("id")?, value("made_ns")?);
        if let Some(then) = then {
            let before = i64::try_from(then.size).ok()?;
            let is_whole = value("later")? == id.saturating_sub(before);
            if value("then_ns") == Some(then.modified_ns) && is_whole && value("touched")? == 0 {
                return Some(then.clone());
            }
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&id.to_le_bytes()).update(&at.to_le_bytes());
        Some(FileNow {
            path: self.address(),
            modified_ns: at,
            size: u64::try_from(id).ok()?,
            content: Some(hasher.finalize().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part() -> Part<'static> {
        Part {
            connector: "lake",
            attached: "_watershed_orders",
            schema: None,
            table: TableName::parse("orders"),
            snapshot: None,
        }
    }

    fn row(id: i128, at: i128, then_at: Option<i128>, later: i128, touched: bool) -> NamedRow {
        let number = |value: Option<i128>| value.map_or(Value::Null, Value::Integer);
        vec![
            ("id".into(), Value::Integer(id)),
            ("made_ns".into(), Value::Integer(at)),
            ("then_ns".into(), number(then_at)),
            ("later".into(), Value::Integer(later)),
            ("touched".into(), Value::Boolean(touched)),
        ]
    }

    #[test]
    fn only_what_is_known_to_be_the_same_is_the_same() {
        let part = part();
        let then = part.now(None, &row(3, 30, None, 4, true)).unwrap();
        assert_eq!(
            (then.path.as_str(), then.size),
            ("ducklake://lake/main.orders", 3)
        );
        let now = |row| part.now(Some(&then), &row).unwrap();
        assert_eq!(now(row(3, 30, Some(30), 0, false)), then);
        assert_eq!(now(row(5, 50, Some(30), 2, false)), then, "others changed");
        for changed in [
            row(5, 50, Some(30), 2, true),
            row(5, 50, Some(30), 1, false),
            row(5, 50, None, 2, false),
            row(3, 31, Some(31), 0, false),
            row(2, 20, None, 0, false),
        ] {
            assert_ne!(now(changed).content, then.content);
        }
        assert_eq!(part.now(None, &Vec::new()), None);
    }

    #[test]
    fn all_of_a_lake_has_an_address_without_a_table() {
        let all = Part {
            table: None,
            ..part()
        };
        assert_eq!(all.address(), "ducklake://lake/");
    }
}
