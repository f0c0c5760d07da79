//! A resource as readers get it.

use std::ops::Deref;
use std::sync::Arc;

use watershed_core::{NewResource, Row, Status, Uid, Update};

use crate::message::{DecodeError, EncodeError, Message};

/// One resource whole: its committed row, and where it stood when it was read.
///
/// The columns of the [`Row`] are reached directly, by deref.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    /// What is stored of it.
    pub row: Arc<Row>,
    /// Where it stands: not stored, and of the moment of the read.
    pub status: Status,
}

impl Resource {
    /// What is wanted, decoded.
    pub fn spec<S: Message>(&self) -> Result<S, DecodeError> {
        spec_of(&self.row)
    }

    /// What was last achieved, decoded; none before the first state was written.
    pub fn state<S: Message>(&self) -> Result<Option<S>, DecodeError> {
        state_of(&self.row)
    }
}

impl Deref for Resource {
    type Target = Row;

    fn deref(&self) -> &Row {
        &self.row
    }
}

/// Decodes the spec of a row.
pub fn spec_of<S: Message>(row: &Row) -> Result<S, DecodeError> {
    S::decode(row.spec_format, &row.spec)
}

/// Decodes the state of a row; none before the first state was written.
pub fn state_of<S: Message>(row: &Row) -> Result<Option<S>, DecodeError> {
    row.state
        .as_deref()
        .map(|bytes| S::decode(row.state_format, bytes))
        .transpose()
}

/// A fresh identity: a UUID that sorts by the time of its making.
///
/// It draws randomness. Where that is handed in instead (seeded tests), make the [`Uid`] there.
pub fn fresh_uid() -> Uid {
    Uid(uuid::Uuid::now_v7())
}

/// A resource to be created, with a [`fresh_uid`] and this spec; its fields say the rest.
pub fn declare<S: Message>(kind: &str, name: &str, spec: &S) -> Result<NewResource, EncodeError> {
    let mut new = NewResource::new(fresh_uid(), kind, name, spec.encode()?);
    new.spec_format = S::FORMAT;
    Ok(new)
}

/// An update of nothing but the spec; its fields say the rest.
pub fn new_spec<S: Message>(spec: &S) -> Result<Update, EncodeError> {
    Ok(Update {
        spec: Some((spec.encode()?.into(), S::FORMAT)),
        ..Update::default()
    })
}
