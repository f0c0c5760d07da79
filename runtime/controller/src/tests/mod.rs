//! Tests of the controller as a whole.

mod blocking;
mod drops;
pub(crate) mod support;
