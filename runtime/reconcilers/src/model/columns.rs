//! Columns of outputs, which show that a view still fits its inputs without asking the engine.
//!
//! The engine binds a view whenever it is read, to what stands under the names in it. So a view whose inputs were built again is
//! right as it stands. It is made again only where their columns may be others: then its SQL may fit no more, which is to be said
//! of the view and not of whoever reads it next.

use watershed_outputs::digest::digest;
use watershed_proto::{Message, ModelState};

/// A digest of the names and types of an output's columns. Equal digests mean equal columns; different ones prove
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns([u8; 16]);

impl Columns {
    /// Adds the digest of columns, as the engine describes them, to an encoded record.
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

    /// Returns a digest derived from everything that a view's columns depend on.
    #[must_use]
    pub(super) fn following<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        Self(digest("watershed 2026 columns of a view", parts))
    }

    /// Returns the digest as bytes, as an input of further digests.
    #[must_use]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads a digest from a state; none if the state has none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Returns a digest as states store it; empty for none.
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
