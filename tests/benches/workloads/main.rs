//! Costs of jobs and services: real processes below a real parent, a catalog on SQLite.
//!
//! ```
//! cargo bench -p watershed-tests --bench workloads -- --json
//! ```
//!
//! | figure | measures |
//! |---|---|
//! | `start_1k_s` | 1,000 services of one process, from one batch until all are ready, with the 0.75 s that a process has to live |
//! | `start_1k_over_floor` | the same without the 0.75 s, over a loop that spawns the same processes |
//! | `adopt_1k_s` | a controller on what another one has left: until all are adopted and settled; none is started |
//! | `idle_1k_cpu_ms_per_min` | CPU of this program and the parent of the processes in a minute, without checks |
//! | `checked_1k_cpu_ms_per_min` | the same with a TCP check of each every 10 s |
//! | `kib_per_service` | proportional memory of both at 1,000 services less that at none |
//! | `restart_p50_ms`, `restart_p99_ms` | from SIGKILL of one of 1,000 until its successor is there, without a wait in between |
//! | `rollout_100_s` | 100 replicas with a check, ten at a time, from the edit until the new release is complete |
//! | `docker_start_over_cli` | 20 containers, 8 at once, until they run, over the engine's own program in the same run |

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a measurement that goes wrong should end at once, and one that is left out be told of"
)]

mod containers;
mod many;
mod restarts;
mod rollout;
mod stand;
mod system;

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
        restarts::measure(&report).await;
        rollout::measure(&report).await;
        containers::measure(&report).await;
    });
}
