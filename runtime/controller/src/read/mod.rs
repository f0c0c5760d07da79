//! Reads of the committed catalog with the status of each resource, and of its changes.

pub(crate) mod ring_log;
pub(crate) mod view;
pub(crate) mod watch;
