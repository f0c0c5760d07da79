//! Text for people: tables, summaries, findings, progress.
//!
//! Everything here returns styled text; whoever writes it strips the styles where they don't belong.

pub(crate) mod alert_test;
pub(crate) mod alerts;
pub(crate) mod backup;
pub(crate) mod calls;
pub(crate) mod care;
pub(crate) mod chart;
pub(crate) mod check;
pub(crate) mod ci;
mod columns;
pub(crate) mod conform;
pub(crate) mod data_tests;
pub(crate) mod declared;
pub(crate) mod diagnostics;
pub(crate) mod engine;
pub(crate) mod explain;
pub(crate) mod fields;
pub(crate) mod graph;
pub(crate) mod logs;
mod managed;
pub(crate) mod metrics;
pub(crate) mod operate;
pub(crate) mod palette;
pub(crate) mod paragraph;
pub(crate) mod partitions;
pub(crate) mod plan;
mod programs;
pub(crate) mod progress;
pub(crate) mod repeats;
pub(crate) mod rows;
pub(crate) mod status;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod tokens;
pub(crate) mod told;
pub(crate) mod trash;
pub(crate) mod units;
pub(crate) mod words;

/// The use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// With colours.
    On,
    /// Without colours.
    Off,
}
