//! Tests with real processes that share one store.
//!
//! | module | shows |
//! |---|---|
//! | `crash` | processes that are killed at any moment |
//! | `examples` | the examples of the documentation, run |
//! | `shared` | any process may ask, whoever holds the instance |
//! | `stopped` | a holder that stands still, and the handing over of an instance |
//! | `soak` | minutes of edits, cancels and restarts, by hand |
//! | `task` | a kind whose specs say how its runs go |
//! | `server` | a Postgres server of a test's own |

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]
#![allow(
    clippy::print_stdout,
    reason = "processes tell the tests that start them how far they are"
)]

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use watershed_controller::store::{PostgresStore, TablePrefix};

mod cancelled;
mod crash;
mod examples;
#[path = "../../../../tests/src/postgres.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is written for others too")]
mod server;
mod shared;
mod soak;
mod stopped;
#[path = "../../../../tests/tests/host/task.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is written for others too")]
mod task;

/// Opens the store with a pool of its own, as a process would.
async fn store(url: &str, term: Duration) -> PostgresStore {
    let pool = PgPoolOptions::new().max_connections(4).connect(url).await;
    let store = PostgresStore::new(
        pool.expect("the server takes connections"),
        TablePrefix::default(),
    )
    .await;
    store.expect("the store opens").term(term)
}
