//! The public interface above the handle: a controller from its start to its end, and resources in terms of a kind's types.

pub(crate) mod controller;
pub(crate) mod selected;
pub(crate) mod typed;
