//! Blocks of settings that several kinds have.

pub(crate) mod connector;
pub(crate) mod data;
pub(crate) mod intervals;
mod metrics_query;
pub(crate) mod notify;
pub(crate) mod query;
pub(crate) mod refs;
pub(crate) mod run_as;
pub(crate) mod schedule;
pub(crate) mod security;
pub(crate) mod selector;
pub(crate) mod time_range;
