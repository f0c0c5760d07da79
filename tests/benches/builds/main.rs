//! The speed of builds: `cargo bench -p watershed-tests --bench builds -- [--json] [--only NAME]`.
//!
//! Whole processes of the program beside the floor: the same statements on two raw connections of the same engine, in the
//! same run.
//!
//! | figure | what is measured |
//! |---|---|
//! | `cold_1k_over_floor2`, `cold_5k_over_floor2` | a build of 1,000 and 5,000 models from nothing, over the floor |
//! | `noop_1k_ms`, `noop_5k_ms` | nothing changed |
//! | `noop_1k_asked_ms` | nothing changed, asked of a running `start` |
//! | `leaf_1k_above_floor_ms`, `mid_1k_above_floor_ms` | one edit of a model that nothing reads, and of one in the middle, less the floor |
//! | `plan_1k_ms` | `watershed plan` after an edit in the middle |
//! | `switch_back_1k_ms` | 200 of 1,000 models are as they were on a branch before: nothing is built |
//! | `rss_above_engine_mb` | the peak of a cold build's memory beyond that of the floor |
//! | `append_1pct_over_raw` | 1 % of 10 million rows added to an incremental model, over the raw statement |
//! | `partition_overhead_ms` | 100 new of 10,000 partitions: for each, the time beyond its statement |

#![allow(
    clippy::cast_precision_loss,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs
)]

mod added;
mod floor;
mod mix;
mod mixed;
mod program;

use std::path::Path;

use watershed_tests::measure::Report;

/// The argument that makes this program the engine alone.
pub(crate) const CHILD: &str = "--engine-alone";

/// Rounds of each figure, and of those of the largest project.
const SAMPLES: usize = 5;
const FEW: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != CHILD);
    if let (Some(_), Some(project)) = (arguments.next(), arguments.next()) {
        return mixed::child(Path::new(&project));
    }
    let report = Report::from_args();
    mixed::measure(&report, 1_000, "1k", SAMPLES);
    mixed::memory(&report, FEW);
    added::append(&report, SAMPLES);
    added::partitions(&report, SAMPLES);
    mixed::measure(&report, 5_000, "5k", FEW);
}
