//! A web server that keeps projects converged and lets its callers take part.
//!
//! ```text
//! cargo run --example server -- testdata/projects/flights
//! curl localhost:8080/flights/resources
//! curl -X POST localhost:8080/flights/reconcile/model/best_hours
//! curl -N localhost:8080/flights/events
//!
//! cargo run --example server -- testdata/projects/lab
//! curl -N localhost:8080/lab/trees/monday
//! curl localhost:8080/lab/events -H 'ce-specversion: 1.0' -H 'ce-id: 1' -H 'ce-source: /exams' \
//!     -H 'ce-type: lab.submitted' -H 'ce-subject: monday' -X POST
//! ```
//!
//! `main.rs` is what every embedder writes: open, serve, close. `routes.rs` has the routes, `events.rs` the stream
//! of changes, `trees.rs` that of a managed resource with its parts, `door.rs` takes events in, `view.rs` is what callers
//! get to see. `docs/embedding.md` goes through them.

mod door;
mod events;
mod routes;
mod trees;
mod view;

use std::time::Duration;

use anyhow::Context as _;
use routes::Projects;
use watershed::{Options, Runtime};

/// The time in which invocations have to end when the server stops.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::main]
#[expect(clippy::print_stderr, reason = "a program says where it listens")]
async fn main() -> anyhow::Result<()> {
    let runtime = Runtime::new();
    let mut projects = Projects::default();
    for folder in std::env::args_os().skip(1) {
        let opened = runtime.open(Options::new(&folder)).await;
        projects.add(opened.with_context(|| format!("can't open `{}`", folder.display()))?);
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    eprintln!("listening on {}", listener.local_addr()?);
    let stop = async { drop(tokio::signal::ctrl_c().await) };
    axum::serve(listener, routes::routes(projects.clone()))
        .with_graceful_shutdown(projects.stopped_by(stop))
        .await?;

    projects.close(GRACE).await
}
