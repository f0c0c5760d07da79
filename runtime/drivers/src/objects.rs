//! Objects in stores: listing the matches of a pattern, detecting changes without reading, and writing. The engine
//! reads their content; for a confined project, which has no network, they are fetched first.
//!
//! - [`Access`]: a store's driver and credentials.
//! - [`Location`]: the parts of an address.
//! - [`look`]: the objects of an address or pattern.
//! - [`fetch`]: an object as a file of this machine; [`Prefix`] bounds what a confined project may fetch.
//! - [`put`]: an object written whole, over nothing that is somebody else's; [`find`] and [`remove`] go with it.
//! - [`StoreError`]: the reason why a store can't be asked, in words for people.

mod access;
mod client;
mod error;
mod fetch;
mod listing;
mod location;
mod prefix;
mod write;

pub use access::{Access, Driver};
pub use error::StoreError;
pub use fetch::fetch;
pub use listing::{Object, look, try_access};
pub use location::Location;
pub use prefix::{Prefix, PrefixError, is_within};
pub use write::{Over, Standing, find, find_below, put, remove};

/// The most objects that one pattern may match, since each is compared with the ones read before.
pub const MAX_OBJECTS: usize = 100_000;
