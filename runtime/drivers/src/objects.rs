//! Objects in stores: the ones that a pattern matches, and whether they are those that were read before, without reading
//! them. Their contents are read by the engine.
//!
//! - [`Access`]: a store's driver and credentials.
//! - [`Location`]: the parts of an address.
//! - [`look`]: the objects of an address or pattern.
//! - [`StoreError`]: the reason why a store can't be asked, in words for people.

mod access;
mod error;
mod location;
mod look;

pub use access::{Access, Driver};
pub use error::StoreError;
pub use location::Location;
pub use look::{Object, look, try_access};

/// The most objects that one pattern may match: each is held against what was read.
pub const MAX_OBJECTS: usize = 100_000;
