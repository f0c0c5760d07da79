//! Messages of resources and of the API, and their Rust types.
//!
//! The types in [`v1`] are generated from the `.proto` files beside this crate. Maps are [`BTreeMap`]s, so equal
//! messages have equal bytes. [`Value`] has constructors and a conversion to JSON; the rest is plain data.
//!
//! [`BTreeMap`]: std::collections::BTreeMap
//! [`Value`]: v1::Value

mod values;

/// The first version of the messages.
#[allow(
    missing_docs,
    clippy::all,
    reason = "generated; what is documented there carries over"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/watershed.v1.rs"));
}

pub use prost::Message;
pub use v1::*;
