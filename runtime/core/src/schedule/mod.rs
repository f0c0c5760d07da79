//! The order of starts: what may start, what starts first, and what holds it back.

pub(crate) mod barrier;
pub(crate) mod delete_order;
pub(crate) mod places;
mod ready;
pub(crate) mod retries;
pub(crate) mod scheduler;
pub(crate) mod starvation;
pub(crate) mod verdict;
