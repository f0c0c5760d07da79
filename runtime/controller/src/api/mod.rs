//! The public interface: what embedders implement, what they call, and what they get back.

pub(crate) mod clock;
pub(crate) mod controller;
pub(crate) mod error;
pub(crate) mod handle;
pub(crate) mod kind;
pub mod message;
pub(crate) mod reconciler;
pub(crate) mod request;
pub(crate) mod resource;
pub(crate) mod select;
pub(crate) mod selected;
pub(crate) mod typed;
