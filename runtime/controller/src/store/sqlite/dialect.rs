//! Column types of SQLite: uids and long documents are blobs.

use std::borrow::Cow;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Row as _};
use uuid::Uuid;
use watershed_core::Uid;

use super::super::ColumnError;
use super::super::columns::{Cell, Column, Source, Type};

/// Binds the columns of one row, in order.
pub(super) fn bind<T>(
    columns: &[Column<T>],
    row: &T,
    arguments: &mut SqliteArguments,
) -> Result<(), ColumnError> {
    for column in columns {
        match (column.get)(row)? {
            Cell::Uid(uid) => arguments.add(uid.map(|uid| uid_bytes(Uid(uid)))),
            Cell::Name(text) => arguments.add(&*text),
            Cell::Json(text) if column.of == Type::Document => {
                arguments.add(text.map(|text| text.into_owned().into_bytes()))
            }
            Cell::Json(text) => arguments.add(text.map(Cow::into_owned)),
            Cell::Integer(number) => arguments.add(number),
            Cell::Flag(flag) => arguments.add(flag),
            Cell::Bytes(bytes) => arguments.add(bytes),
        }?;
    }
    Ok(())
}

impl Source for SqliteRow {
    fn cell(&self, index: usize, of: Type) -> Result<Cell<'_>, ColumnError> {
        Ok(match of {
            Type::Uid => {
                let bytes: Option<&[u8]> = self.try_get(index)?;
                Cell::Uid(bytes.map(Uuid::from_slice).transpose()?)
            }
            Type::Name => Cell::Name(Cow::Borrowed(self.try_get(index)?)),
            Type::Json | Type::Document => {
                let bytes: Option<&[u8]> = self.try_get(index)?;
                let text = bytes.map(std::str::from_utf8).transpose()?;
                Cell::Json(text.map(Cow::Borrowed))
            }
            Type::Integer => Cell::Integer(self.try_get(index)?),
            Type::Flag => Cell::Flag(self.try_get(index)?),
            Type::Bytes => Cell::Bytes(self.try_get(index)?),
        })
    }
}

pub(super) fn uid_bytes(uid: Uid) -> Vec<u8> {
    uid.0.as_bytes().to_vec()
}
