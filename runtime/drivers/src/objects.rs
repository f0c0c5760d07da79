//! Objects in stores: the ones that a pattern matches, and whether they are those that were read before, without reading
//! them. Their contents are read by the engine. Objects are written here too, from files that the engine wrote.
//!
//! - [`Access`]: a store's driver and credentials.
//! - [`Location`]: the parts of an address.
//! - [`look`]: the objects of an address or pattern.
//! - [`put`]: an object written whole, over nothing that is somebody else's; [`find`] and [`remove`] go with it.
//! - [`StoreError`]: the reason why a store can't be asked, in words for people.

mod access;
mod client;
mod error;
mod listing;
mod location;
mod write;

pub use access::{Access, Driver};
pub use error::StoreError;
pub use listing::{Object, look, try_access};
pub use location::Location;
pub use write::{Over, Standing, find, find_below, put, remove};

/// The most objects that one pattern may match: each is held against what was read.
pub const MAX_OBJECTS: usize = 100_000;
