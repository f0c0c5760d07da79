//! The order of starts: what may start, what starts first, and what holds it back.

pub(crate) mod barrier;
pub(crate) mod kinds;
pub(crate) mod marks;
pub(crate) mod priority;
pub(crate) mod queue;
pub(crate) mod ready;
pub(crate) mod starvation;
