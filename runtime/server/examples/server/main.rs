//! A web server that keeps projects converged and lets its callers take part.
//!
//! ```text
//! cargo run --example server -- testdata/projects/flights
//! curl localhost:8080/flights/resources
//! curl -X POST localhost:8080/flights/reconcile/model/best_hours
//! curl -N localhost:8080/flights/events
//! ```
//!
//! `main.rs` is what every embedder writes: open, serve, close. `routes.rs` has the routes, `events.rs` the stream
//! of changes, `view.rs` what callers get to see. `docs/embedding.md` goes through them.

mod events;
mod routes;
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
