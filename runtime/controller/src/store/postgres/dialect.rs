//! Column types of Postgres, which has types of its own for uids and flags.
//!
//! Postgres takes no NUL in text. JSON escapes it by itself; in kinds and names it is written `\0`, and `\` as `\\`.

use std::borrow::{Borrow, Cow};

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, Row as _};
use uuid::Uuid;

use super::super::ColumnError;
use super::super::columns::{Cell, Column, Source, Type};

/// Returns the Postgres name of a type.
pub(super) fn name_of(of: Type) -> &'static str {
    match of {
        Type::Uid => "uuid",
        Type::Name | Type::Json | Type::Document => "text",
        Type::Integer => "bigint",
        Type::Flag => "boolean",
        Type::Bytes => "bytea",
    }
}

/// Binds one array per column, in order.
pub(super) fn bind<T>(
    columns: &[Column<T>],
    rows: &[impl Borrow<T>],
    arguments: &mut PgArguments,
) -> Result<(), ColumnError> {
    for column in columns {
        let mut array = Array::with_capacity(column.of, rows.len());
        for row in rows {
            array.push((column.get)(row.borrow())?)?;
        }
        match array {
            Array::Uids(values) => arguments.add(values),
            Array::Texts(values) => arguments.add(values),
            Array::Integers(values) => arguments.add(values),
            Array::Flags(values) => arguments.add(values),
            Array::Bytes(values) => arguments.add(values),
        }?;
    }
    Ok(())
}

/// The cells of one column, as an array.
enum Array<'a> {
    Uids(Vec<Option<Uuid>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Integers(Vec<Option<i64>>),
    Flags(Vec<bool>),
    Bytes(Vec<Option<&'a [u8]>>),
}

impl<'a> Array<'a> {
    fn with_capacity(of: Type, count: usize) -> Self {
        match of {
            Type::Uid => Self::Uids(Vec::with_capacity(count)),
            Type::Name | Type::Json | Type::Document => Self::Texts(Vec::with_capacity(count)),
            Type::Integer => Self::Integers(Vec::with_capacity(count)),
            Type::Flag => Self::Flags(Vec::with_capacity(count)),
            Type::Bytes => Self::Bytes(Vec::with_capacity(count)),
        }
    }

    /// Adds a cell of the column's type.
    fn push(&mut self, cell: Cell<'a>) -> Result<(), ColumnError> {
        match (self, cell) {
            (Self::Uids(values), Cell::Uid(uid)) => values.push(uid),
            (Self::Texts(values), Cell::Name(text)) => values.push(Some(escaped(&text).into())),
            (Self::Texts(values), Cell::Json(text)) => values.push(text),
            (Self::Integers(values), Cell::Integer(number)) => values.push(number),
            (Self::Flags(values), Cell::Flag(flag)) => values.push(flag),
            (Self::Bytes(values), Cell::Bytes(bytes)) => values.push(bytes),
            (_, other) => return other.mistyped(),
        }
        Ok(())
    }
}

impl Source for PgRow {
    fn cell(&self, index: usize, of: Type) -> Result<Cell<'_>, ColumnError> {
        Ok(match of {
            Type::Uid => Cell::Uid(self.try_get(index)?),
            Type::Name => Cell::Name(unescaped(self.try_get(index)?).into()),
            Type::Json | Type::Document => {
                let text: Option<&str> = self.try_get(index)?;
                Cell::Json(text.map(Cow::Borrowed))
            }
            Type::Integer => Cell::Integer(self.try_get(index)?),
            Type::Flag => Cell::Flag(self.try_get(index)?),
            Type::Bytes => Cell::Bytes(self.try_get(index)?),
        })
    }
}

/// Escapes NUL in a text, which Postgres can't store.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\0', "\\0")
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, false) => plain.push(letter),
            (_, true) => plain.push(if letters.next() == Some('0') { '\0' } else { '\\' }),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_whatever_is_in_them() {
        for name in ["", "plain", "a\0b", "\\0", "\\", "\0\\\0", "ü\\n"] {
            assert!(!escaped(name).contains('\0'));
            assert_eq!(unescaped(&escaped(name)), name);
        }
    }
}
