//! The cost of the controller itself: reconcilers that do nothing, on graphs of different shapes.
//!
//! | module | measures |
//! |---|---|
//! | `alone` | the core without its host, which the others can't go below |
//! | `graphs` | from a start on a stored catalog until everything is idle, and requests when it is |
//! | `edits` | edits and requests one by one, and large batches |
//! | `durable` | acknowledged writes on SQLite, beside raw inserts of the same rows |
//! | `explain` | explanations beside a busy loop |
//! | `handover` | how long nobody holds an instance on Postgres that is handed over |
//! | `reads` | readers beside a busy loop |
//! | `rest` | memory and an idle controller |
//! | `world` | the catalogs that all of them use |
//!
//! `--json` prints one object a line, `--only NAME` measures one figure. Figures of peak memory are of the process so
//! far.

use watershed_tests::measure::Report;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod alone;
mod durable;
mod edits;
mod explain;
mod graphs;
mod handover;
mod reads;
mod rest;
mod world;

#[tokio::main]
async fn main() {
    // On a thread of the runtime, as a server's own tasks are.
    tokio::spawn(measure(Report::from_args()))
        .await
        .expect("everything is measured");
}

async fn measure(report: Report) {
    graphs::measure(&report).await;
    edits::measure(&report).await;
    durable::measure(&report).await;
    handover::measure(&report).await;
    reads::measure(&report).await;
    explain::measure(&report).await;
    rest::measure(&report).await;
    alone::measure(&report);
}
