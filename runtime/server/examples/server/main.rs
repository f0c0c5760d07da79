//! A web server that keeps projects converged, with the HTTP API below a path of its own.
//!
//! ```text
//! cargo run --example server --features http -- testdata/projects/flights
//! curl localhost:8080/data/v1/instances/flights/resources
//! curl -X POST localhost:8080/data/v1/instances/flights/resources/model/best_hours/reconcile
//! curl -N localhost:8080/data/v1/instances/flights/watch
//! ```
//!
//! This is what every embedder writes: open, say who asks, serve, close. `docs/embedding.md` goes through it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::request::Parts;
use watershed::http::{Caller, Service, router};
use watershed::{Code, Options, Problem, Runtime};

/// The time that invocations have to end when the server stops.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::main]
#[expect(clippy::print_stderr, reason = "a program says where it listens")]
async fn main() -> anyhow::Result<()> {
    let (runtime, mut service, mut instances) = (Runtime::new(), Service::new().below("/data"), Vec::new());
    for folder in std::env::args_os().skip(1) {
        let opened = runtime.open(Options::new(&folder)).await;
        let instance = Arc::new(opened.with_context(|| format!("can't open `{}`", folder.display()))?);
        service = service.with(instance.name(), Arc::clone(&instance));
        instances.push(instance);
    }

    let app = axum::Router::new().nest("/data", router(service.clone(), who));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    eprintln!("listening on {}", listener.local_addr()?);
    let stop = async move {
        drop(tokio::signal::ctrl_c().await);
        // Streams would keep their connections open for ever.
        service.stop();
    };
    axum::serve(listener, app).with_graceful_shutdown(stop).await?;
    for instance in instances {
        instance.close(GRACE).await?;
    }
    Ok(())
}

/// Returns the caller of a request. A real server knows callers by a session, a token, or a header of its proxy.
fn who(head: &Parts) -> Result<Caller, Problem> {
    match head.headers.get("x-user").map(|name| name.to_str()) {
        None => Ok(Caller::owner("somebody")),
        Some(Ok(name)) => Ok(Caller::owner(name)),
        Some(Err(_)) => Err(Problem::new(Code::NotAllowed, "the name of the user is no text")),
    }
}
