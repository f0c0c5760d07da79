//! The public interface above the handle: a controller from start to end, and typed resources of a kind.

pub(crate) mod controller;
pub(crate) mod selected;
pub(crate) mod typed;
