//! Scheduling: eligibility, the order of starts, and the limits that hold starts back.

pub(crate) mod barrier;
pub(crate) mod concurrency;
pub(crate) mod decision;
pub(crate) mod delete_order;
mod ready;
pub(crate) mod retries;
pub(crate) mod scheduler;
pub(crate) mod starvation;
