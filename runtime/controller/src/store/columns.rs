//! Columns of the catalog's tables: one list for every database, with how each value is written and read.
//!
//! Columns that are compared or searched have a plain type; lists, maps and errors are JSON text with ordered keys, so
//! that a person can read them in any shell. A database maps the few [types](Type) to its own: see `dialect` of each.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use uuid::Uuid;
use watershed_core::{
    Epoch, Error, HistoryRow, Intents, InvocationId, Kind, LastRun, Name, Ref, RetryPolicy, Revision, Row,
    SpecVersion, StateVersion, StoredRow, Timestamp, Uid,
};

use super::{ColumnError, StoreError};

/// Type of a column, mapped by each database to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    /// A uid; may be null.
    Uid,
    /// The text of a kind or a name.
    Name,
    /// JSON that people may read; may be null.
    Json,
    /// JSON too long for people to read; may be null.
    Document,
    /// A signed integer; may be null.
    Integer,
    /// A boolean value; never null.
    Flag,
    /// An encoded message; may be null.
    Bytes,
}

/// A value that is written to or read from a column.
#[derive(Debug)]
pub(super) enum Cell<'a> {
    Uid(Option<Uuid>),
    Name(Cow<'a, str>),
    /// A text of either JSON type.
    Json(Option<Cow<'a, str>>),
    Integer(Option<i64>),
    Flag(bool),
    Bytes(Option<&'a [u8]>),
}

/// A row of a database, read cell by cell.
pub(super) trait Source {
    /// Returns the cell at `index`, read as this type.
    fn cell(&self, index: usize, of: Type) -> Result<Cell<'_>, ColumnError>;
}

/// A column of a table, with functions that read a `T`'s value and set it.
pub(super) struct Column<T> {
    pub(super) name: &'static str,
    pub(super) of: Type,
    pub(super) get: fn(&T) -> Result<Cell<'_>, ColumnError>,
    set: fn(&mut T, Cell<'_>) -> Result<(), ColumnError>,
}

/// Defines the column of a field.
macro_rules! column {
    ($name:expr, $table:ident.$($field:ident).+) => {
        Column {
            name: $name,
            of: type_of(|it: &$table| &it.$($field).+),
            get: |it| it.$($field).+.to_cell(),
            set: |it, cell| {
                it.$($field).+ = Value::from_cell(cell)?;
                Ok(())
            },
        }
    };
}

/// Columns of a resource after `instance` and `epoch`, in the order in which they are written and read.
pub(super) const RESOURCE: [Column<Row>; 29] = [
    column!("uid", Row.uid),
    column!("kind", Row.kind),
    column!("name", Row.name),
    column!("refs", Row.refs),
    column!("owner_uid", Row.owner),
    column!("paths", Row.paths),
    column!("labels", Row.labels),
    column!("marks", Row.intents),
    column!("revision", Row.revision),
    column!("spec_version", Row.spec_version),
    column!("state_version", Row.state_version),
    column!("error", Row.error),
    column!("next_reconcile", Row.next_reconcile),
    column!("attempts", Row.attempts),
    column!("paused", Row.paused),
    column!("hidden", Row.hidden),
    column!("refresh_plain", Row.refreshes.plain),
    column!("refresh_full", Row.refreshes.full),
    column!("created_at", Row.created_at),
    column!("updated_at", Row.updated_at),
    column!("spec_format", Row.spec_format),
    column!("state_format", Row.state_format),
    column!("runs_total", Row.runs_total),
    column!("last_run", Row.last_run),
    column!("last_success", Row.last_success),
    column!("spec", Row.spec),
    column!("state", Row.state),
    column!("retry", Row.retry),
    column!("unready", Row.unready),
];

/// Columns of a history entry after `instance`, `epoch` and `revision`. The last has the whole entry; the others are
/// for searches.
pub(super) const HISTORY: [Column<HistoryRow>; 6] = [
    column!("uid", HistoryRow.uid),
    column!("invocation", HistoryRow.invocation),
    column!("kind", HistoryRow.key.kind),
    column!("name", HistoryRow.key.name),
    column!("ended_at", HistoryRow.ended_at),
    Column {
        name: "entry",
        of: Type::Json,
        get: |entry| Ok(Cell::Json(Some(serde_json::to_string(entry)?.into()))),
        set: |entry, cell| {
            *entry = from_json(cell)?;
            Ok(())
        },
    },
];

/// Joins the names of columns with commas, for a statement.
pub(super) fn names<T>(columns: &[Column<T>]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    names.join(", ")
}

/// Reads a resource from the columns of [`RESOURCE`].
///
/// A row without a readable identity is an error of the whole catalog. Where a column of JSON can't be read, the row
/// comes without it and says so, and the controller leaves what is stored as it is.
pub(super) fn resource(source: &impl Source) -> Result<StoredRow, ColumnError> {
    let mut row = Row::new(Uid(Uuid::nil()), "", "");
    let mut unreadable = None;
    for (index, column) in RESOURCE.iter().enumerate() {
        let read = source.cell(index, column.of);
        let Err(error) = read.and_then(|cell| (column.set)(&mut row, cell)) else {
            continue;
        };
        if !matches!(column.of, Type::Json | Type::Document) {
            return Err(error);
        }
        let message = format!("column `{}` can't be read: {error}", column.name);
        unreadable.get_or_insert_with(|| Error::permanent("unreadable", message));
    }
    Ok(StoredRow {
        row: Arc::new(row),
        unreadable,
        may_rest: false,
    })
}

/// Reads history entries from rows of an epoch and an entry.
pub(super) fn history(rows: &[impl Source]) -> Result<Vec<HistoryRow>, StoreError> {
    let entries = rows.iter().map(|row| {
        Ok(HistoryRow {
            // Entries that were written long ago don't repeat the epoch in their text.
            epoch: value(row, 0)?,
            ..from_json(row.cell(1, Type::Json)?)?
        })
    });
    let entries: Result<_, ColumnError> = entries.collect();
    entries.map_err(unreadable("read the history"))
}

/// Reads the value of a column.
pub(super) fn value<T: Value>(source: &impl Source, index: usize) -> Result<T, ColumnError> {
    T::from_cell(source.cell(index, T::TYPE)?)
}

/// Returns a converter to the error of a column that can't be read.
pub(super) fn unreadable(doing: &'static str) -> impl Fn(ColumnError) -> StoreError {
    move |source| StoreError::Database { doing, source }
}

/// Converts a counter to a database's signed integer, saturating; no counter comes near that.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A value with a column of its own.
pub(super) trait Value: Sized {
    /// Column type, which decides how a database stores the value.
    const TYPE: Type;

    /// Converts the value to a cell.
    fn to_cell(&self) -> Result<Cell<'_>, ColumnError>;

    /// Converts a cell of the right type to the value.
    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError>;
}

const fn type_of<T, V: Value>(_field: fn(&T) -> &V) -> Type {
    V::TYPE
}

impl Cell<'_> {
    fn present<T>(value: Option<T>) -> Result<T, ColumnError> {
        value.ok_or_else(|| "a value is missing".into())
    }

    /// Returns the error of a cell whose type is not the requested one.
    pub(super) fn mistyped<T>(&self) -> Result<T, ColumnError> {
        Err(format!("a cell of another type: {self:?}").into())
    }

    fn integer(&self) -> Result<Option<i64>, ColumnError> {
        match self {
            Cell::Integer(number) => Ok(*number),
            other => other.mistyped(),
        }
    }

    fn json(&self) -> Result<Option<&str>, ColumnError> {
        match self {
            Cell::Json(text) => Ok(text.as_deref()),
            other => other.mistyped(),
        }
    }

    fn bytes(&self) -> Result<Option<&[u8]>, ColumnError> {
        match self {
            Cell::Bytes(bytes) => Ok(*bytes),
            other => other.mistyped(),
        }
    }
}

fn from_json<T: DeserializeOwned>(cell: Cell<'_>) -> Result<T, ColumnError> {
    Ok(serde_json::from_str(Cell::present(cell.json()?)?)?)
}

impl Value for Option<Uid> {
    const TYPE: Type = Type::Uid;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Uid(self.map(|uid| uid.0)))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        match cell {
            Cell::Uid(uid) => Ok(uid.map(Uid)),
            other => other.mistyped(),
        }
    }
}

impl Value for Uid {
    const TYPE: Type = Type::Uid;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Uid(Some(self.0)))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        Cell::present(Option::from_cell(cell)?)
    }
}

impl Value for bool {
    const TYPE: Type = Type::Flag;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Flag(*self))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        match cell {
            Cell::Flag(flag) => Ok(flag),
            other => other.mistyped(),
        }
    }
}

impl Value for Option<Arc<[u8]>> {
    const TYPE: Type = Type::Bytes;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Bytes(self.as_deref()))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        Ok(cell.bytes()?.map(Arc::from))
    }
}

impl Value for Arc<[u8]> {
    const TYPE: Type = Type::Bytes;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Bytes(Some(self)))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        Cell::present(Option::from_cell(cell)?)
    }
}

/// Stored as the largest integer if there is none: a forced delete has no invocation, and is the last entry of its
/// resource.
impl Value for Option<InvocationId> {
    const TYPE: Type = Type::Integer;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Integer(Some(self.map_or(i64::MAX, |id| integer(id.0)))))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        match Cell::present(cell.integer()?)? {
            i64::MAX => Ok(None),
            id => Ok(Some(InvocationId(u64::try_from(id)?))),
        }
    }
}

impl Value for Option<Timestamp> {
    const TYPE: Type = Type::Integer;

    fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
        Ok(Cell::Integer(self.map(|time| time.0)))
    }

    fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
        Ok(cell.integer()?.map(Timestamp))
    }
}

macro_rules! names {
    ($($value:ident)*) => {$(
        impl Value for $value {
            const TYPE: Type = Type::Name;

            fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
                Ok(Cell::Name(self.as_str().into()))
            }

            fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
                match cell {
                    Cell::Name(text) => Ok($value::new(&*text)),
                    other => other.mistyped(),
                }
            }
        }
    )*};
}

names!(Kind Name);

/// Implements [`Value`] for integer types, by their conversions.
macro_rules! integers {
    ($($value:ty: |$it:ident| $to:expr, |$integer:ident| $from:expr;)*) => {$(
        impl Value for $value {
            const TYPE: Type = Type::Integer;

            fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
                let $it = self;
                Ok(Cell::Integer(Some($to)))
            }

            fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
                let $integer = Cell::present(cell.integer()?)?;
                Ok($from)
            }
        }
    )*};
}

integers! {
    u64: |it| integer(*it), |number| u64::try_from(number)?;
    u32: |it| i64::from(*it), |number| u32::try_from(number)?;
    Timestamp: |it| it.0, |number| Timestamp(number);
    Epoch: |it| integer(it.0), |number| Epoch(u64::try_from(number)?);
    Revision: |it| integer(it.0), |number| Revision(u64::try_from(number)?);
    SpecVersion: |it| integer(it.0), |number| SpecVersion(u64::try_from(number)?);
    StateVersion: |it| integer(it.0), |number| StateVersion(u64::try_from(number)?);
}

/// Implements [`Value`] for types with one JSON text per value. Maps of the core are ordered, so equal values have
/// equal texts.
macro_rules! json {
    ($($value:ty)*) => {$(
        impl Value for $value {
            const TYPE: Type = Type::Json;

            fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
                Ok(Cell::Json(Some(serde_json::to_string(self)?.into())))
            }

            fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
                from_json(cell)
            }
        }
    )*};
}

json!(Arc<[Ref]> Arc<[Arc<str>]> Arc<BTreeMap<Arc<str>, Arc<str>>> Intents);

macro_rules! optional_json {
    ($($value:ty: $type:ident;)*) => {$(
        impl Value for Option<Arc<$value>> {
            const TYPE: Type = Type::$type;

            fn to_cell(&self) -> Result<Cell<'_>, ColumnError> {
                let text = self.as_ref().map(serde_json::to_string).transpose()?;
                Ok(Cell::Json(text.map(Cow::from)))
            }

            fn from_cell(cell: Cell<'_>) -> Result<Self, ColumnError> {
                Ok(cell.json()?.map(serde_json::from_str).transpose()?)
            }
        }
    )*};
}

optional_json! {
    Error: Json;
    RetryPolicy: Json;
    str: Json;
    LastRun: Document;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written cells, which a test reads back as from a database.
    struct Written<'a>(Vec<Cell<'a>>);

    impl Source for Written<'_> {
        fn cell(&self, index: usize, of: Type) -> Result<Cell<'_>, ColumnError> {
            Ok(match (&self.0[index], of) {
                (Cell::Uid(uid), Type::Uid) => Cell::Uid(*uid),
                (Cell::Name(text), Type::Name) => Cell::Name(text.clone()),
                (Cell::Json(text), Type::Json | Type::Document) => Cell::Json(text.clone()),
                (Cell::Integer(number), Type::Integer) => Cell::Integer(*number),
                (Cell::Flag(flag), Type::Flag) => Cell::Flag(*flag),
                (Cell::Bytes(bytes), Type::Bytes) => Cell::Bytes(*bytes),
                (other, of) => return Err(format!("{other:?} in a column of {of:?}").into()),
            })
        }
    }

    fn written(row: &Row) -> Written<'_> {
        let cells = RESOURCE.iter().map(|column| (column.get)(row));
        Written(cells.collect::<Result<_, _>>().unwrap())
    }

    /// Returns a row without a single default value.
    fn full() -> Row {
        let text = |text: &str| Arc::<str>::from(text);
        Row {
            refs: [Ref::completed("thing", "other")].into(),
            owner: Some(Uid(Uuid::from_u128(2))),
            paths: [text("things/one.yaml")].into(),
            labels: Arc::new([(text("team"), text("data"))].into()),
            intents: Intents {
                deletion: None,
                former_names: [Name::new("before")].into(),
            },
            revision: Revision(3),
            spec_version: SpecVersion(4),
            state_version: StateVersion(5),
            error: Some(Arc::new(Error::transient("away", "it is away"))),
            unready: Some("it starts".into()),
            next_reconcile: Some(Timestamp(6)),
            attempts: 7,
            retry: Some(Arc::new(RetryPolicy::Never)),
            paused: true,
            hidden: true,
            refreshes: watershed_core::Refreshes { plain: 8, full: 9 },
            created_at: Timestamp(10),
            updated_at: Timestamp(11),
            spec_format: 12,
            state_format: 13,
            runs_total: 14,
            last_run: None,
            last_success: Some(Timestamp(15)),
            spec: [1, 2].into(),
            state: Some([3].into()),
            ..Row::new(Uid(Uuid::from_u128(1)), "thing", "one")
        }
    }

    #[test]
    fn every_field_comes_back_as_it_was() {
        for row in [full(), Row::new(Uid(Uuid::from_u128(1)), "thing", "one")] {
            let read = resource(&written(&row)).unwrap();
            assert_eq!((&*read.row, read.unreadable), (&row, None));
        }
    }

    #[test]
    fn json_that_cannot_be_read_is_left_out_and_reported() {
        let row = full();
        let broken = |column: &str| {
            let mut cells = written(&row);
            let index = RESOURCE.iter().position(|it| it.name == column).unwrap();
            cells.0[index] = Cell::Json(Some("{".into()));
            resource(&cells)
        };
        for column in ["refs", "labels", "error", "last_run"] {
            let read = broken(column).unwrap();
            let message = read.unreadable.unwrap().message;
            assert!(message.contains(&format!("`{column}`")), "{message}");
        }
        assert!(broken("refs").unwrap().row.refs.is_empty());
        assert!(broken("attempts").is_err(), "a number is not left out");
    }
}
