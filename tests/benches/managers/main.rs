//! Costs of managed resources, on SQLite.
//!
//! ```
//! cargo bench -p watershed-tests --bench managers -- --json
//! ```
//!
//! | figure | measures |
//! |---|---|
//! | `start_10k_s` | 10,000 resources with three steps each that do nothing, from one batch until all are at rest |
//! | `restart_10k_s` | a start on that catalog, until all were observed; nothing is written |
//! | `idle_10k_cpu_ms_per_min` | CPU of a minute in which windows are set and no look is due |
//! | `observe_10k_cpu_ms` | CPU of one look at each, which finds nothing new |
//! | `kib_per_resource` | memory of a resource after ten changes of its stage, above its spec and details |
//! | `cascade_1k_ms` | one owner, 10 parts in two orders, 100 leaves each: from the change at the top until all are active |
//! | `leaf_change_p99_ms` | in a tree of 10,000: from a leaf's failure until its owner has seen it |
//! | `event_p50_ms`, `event_p99_ms` | from an event until it is stored, with 8 senders |
//! | `goals_per_s_m` | goals of resources with windows, decided on one thread |
//! | `command_overhead_ms` | a step by a command, beyond the command itself |

#![allow(
    clippy::unwrap_used,
    reason = "a measurement that goes wrong should end at once"
)]

mod command;
mod events;
mod many;
mod thing;
mod tree;

use watershed_tests::measure::Report;

fn main() {
    let report = Report::from_args();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        many::measure(&report).await;
        tree::measure(&report).await;
        events::measure(&report).await;
        command::measure(&report).await;
    });
    thing::goals(&report);
}
