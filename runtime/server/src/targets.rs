//! Targets of spans that traces take.

/// Target of the spans of requests, which `tracing` makes at its level TRACE: nobody pays for them who has no use for them.
pub(crate) const REQUESTS: &str = "watershed::request";
