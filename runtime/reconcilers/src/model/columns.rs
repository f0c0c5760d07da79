//! Columns of outputs, by which a view is known to fit what it reads without asking the engine.
//!
//! The engine binds a view whenever it is read, to what stands under the names in it. So a view whose inputs were built again is
//! right as it stands. It is made again only where their columns may be others: then its SQL may fit no more, which is to be said
//! of the view and not of whoever reads it next.

use watershed_outputs::digest::digest;
use watershed_proto::{Message, ModelState};

/// Stands for the names and types of the columns of an output. Equal ones mean equal columns; different ones mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns([u8; 16]);

impl Columns {
    /// Puts columns, as the engine describes them, into an encoded record.
    #[must_use]
    pub(super) fn put(record: &[u8], columns: Vec<(String, String)>) -> Vec<u8> {
        let Ok(state) = ModelState::decode(record) else {
            return record.to_vec();
        };
        ModelState {
            columns: Self::to_bytes(Some(Self::described(&columns))),
            ..state
        }
        .encode_to_vec()
    }

    fn described(columns: &[(String, String)]) -> Self {
        let parts = columns
            .iter()
            .flat_map(|(name, kind)| [name.as_bytes(), kind.as_bytes()]);
        Self(digest("watershed 2026 columns", parts))
    }

    /// The columns that follow from some parts, which are all that they depend on.
    #[must_use]
    pub(super) fn following<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(digest("watershed 2026 columns of a view", parts))
    }

    /// As a part of what other columns follow from.
    #[must_use]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads what a state has; none if it has none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// As states carry it.
    #[must_use]
    pub fn to_bytes(columns: Option<Self>) -> Vec<u8> {
        columns.map_or_else(Vec::new, |it| it.0.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str) -> (String, String) {
        (name.to_owned(), kind.to_owned())
    }

    #[test]
    fn columns_are_told_apart_by_names_types_and_order() {
        let [a, b] = [column("a", "INTEGER"), column("b", "VARCHAR")];
        let of = Columns::described;
        assert_eq!(of(&[a.clone(), b.clone()]), of(&[a.clone(), b.clone()]));
        assert_ne!(of(&[a.clone(), b.clone()]), of(&[b.clone(), a.clone()]));
        assert_ne!(of(std::slice::from_ref(&a)), of(&[column("a", "BIGINT")]));
        assert_ne!(of(std::slice::from_ref(&a)), of(&[column("A", "INTEGER")]));
        assert_ne!(of(&[a, b]), of(&[column("aINTEGER", "bVARCHAR")]));
    }

    #[test]
    fn columns_are_put_into_a_record_and_nothing_else_of_it_is_touched() {
        let state = ModelState {
            result_table: "a".to_owned(),
            ..ModelState::default()
        };
        let columns = [column("a", "INTEGER")];
        let put = Columns::put(&state.encode_to_vec(), columns.to_vec());
        let expected = ModelState {
            columns: Columns::to_bytes(Some(Columns::described(&columns))),
            ..state
        };
        assert_eq!(ModelState::decode(put.as_slice()), Ok(expected));
        assert_eq!(Columns::put(b"\xff\xff", columns.to_vec()), b"\xff\xff");
    }
}
