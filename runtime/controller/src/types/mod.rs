//! Values of the public interface: errors, messages, resources, options of a kind, clocks.

pub(crate) mod clock;
pub(crate) mod error;
pub(crate) mod kind;
pub mod message;
pub(crate) mod observer;
pub(crate) mod resource;
pub(crate) mod select;
