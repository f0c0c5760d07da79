//! Reading: the committed catalog with the status of each resource, and the changes to it.

pub(crate) mod ring_log;
pub(crate) mod view;
pub(crate) mod watch;
