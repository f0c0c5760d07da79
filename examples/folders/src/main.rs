//! A web server that keeps folders and files as it was asked to: `folders CATALOG ROOT ADDRESS`.
//!
//! ```sh
//! curl -X PUT localhost:8080/folder/notes
//! curl -X PUT localhost:8080/file/today -d '{"folder": "notes", "text": "hello"}'
//! curl localhost:8080/resources
//! curl -N localhost:8080/watch
//! curl -X DELETE localhost:8080/file/today
//! ```

mod kinds;

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde_json::{Value, json};
use watershed_controller::store::SqliteStore;
use watershed_controller::{
    Controller, EditError, Event, Handle, Key, KindOptions, Ref, Refusal, Resource, RetryPolicy, Select,
    Update,
};

use crate::kinds::{File, Files, Folders};

/// The longest that a request waits for its result.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
#[allow(clippy::print_stdout, reason = "it says where it listens")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [catalog, root, address] = &arguments[..] else {
        return Err("usage: folders CATALOG ROOT ADDRESS".into());
    };
    let controller = Controller::builder()
        .store(SqliteStore::open(catalog).await?)
        .kind(options("folder"), Folders(root.into()))
        .kind(options("file"), Files(root.into()))
        .start()
        .await?;
    let routes = Router::new()
        .route("/{kind}/{name}", put(apply).post(reconcile).delete(remove))
        .route("/resources", get(list))
        .route("/watch", get(watch))
        .with_state(controller.handle());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    tokio::select! {
        served = axum::serve(listener, routes) => served?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(controller.shutdown(PATIENCE).await?)
}

/// Returns options with retries, from a tenth of a second to a minute apart.
fn options(kind: &str) -> KindOptions {
    let mut options = KindOptions::new(kind);
    options = options.retry(RetryPolicy::Backoff {
        base: Duration::from_millis(100),
        cap: Duration::from_secs(60),
        attempts: 20,
        reset_after: Duration::from_secs(600),
    });
    options
}

type Named = Path<(String, String)>;
type Refused = (StatusCode, String);

/// Creates a resource or gives it a new spec, and waits until it is as wanted.
async fn apply(
    State(handle): State<Handle>,
    Path((kind, name)): Named,
    body: String,
) -> Result<Json<Value>, Refused> {
    below_root(&name)?;
    let new = if kind == "folder" {
        Resource::declare("folder", &name, &()).map_err(refused)?
    } else {
        let file: File = serde_json::from_str(&body).map_err(refused)?;
        below_root(&file.folder)?;
        // It is written once its folder is there.
        Resource::declare(&kind, &name, &file)
            .map_err(refused)?
            .with_refs([Ref::completed("folder", file.folder.as_str())])
    };
    let update = Update {
        spec: Some((new.spec.clone(), new.spec_format)),
        refs: Some(new.refs.clone()),
        ..Update::default()
    };
    match handle.create(new).await {
        Err(EditError::Refused(Refusal::NameTaken { .. })) => {
            let key = Key::new(kind.as_str(), name.as_str());
            handle.update(key, update).await.map_err(refused)?;
        }
        created => drop(created.map_err(refused)?),
    }
    reconcile(State(handle), Path((kind, name))).await
}

/// Refuses names that lead out of the root.
fn below_root(name: &str) -> Result<(), Refused> {
    if name.starts_with('.') || name.contains('/') {
        return Err(refused(format!("`{name}` is no name for a file")));
    }
    Ok(())
}

/// Waits until a resource and what is below it have settled, and shows it.
async fn reconcile(State(handle): State<Handle>, Path((kind, name)): Named) -> Result<Json<Value>, Refused> {
    let key = Key::new(kind.as_str(), name.as_str());
    let mut request = handle.reconcile(key.clone()).await.map_err(refused)?;
    request.settled(PATIENCE).await.map_err(refused)?;
    let error = handle
        .get(key.clone())
        .map_err(refused)?
        .error
        .as_ref()
        .map(|error| error.message.clone());
    Ok(Json(json!({ "resource": key.to_string(), "error": error })))
}

async fn remove(State(handle): State<Handle>, Path((kind, name)): Named) -> Result<StatusCode, Refused> {
    let key = Key::new(kind.as_str(), name.as_str());
    handle.delete(key).await.map_err(refused)?;
    Ok(StatusCode::ACCEPTED)
}

async fn list(State(handle): State<Handle>) -> Json<Value> {
    let listing = handle.list(Select::new());
    let resources = listing
        .resources
        .iter()
        .map(|resource| resource.key().to_string());
    Json(json!({ "revision": listing.revision.0, "resources": Vec::from_iter(resources) }))
}

/// Sends what changes from now on, an event for each batch. A client that is too slow is cut off, and asks again.
async fn watch(State(handle): State<Handle>) -> Sse<impl futures::Stream<Item = Result<Sent, Infallible>>> {
    let watch = handle.watch(handle.list(Select::new()).revision);
    let events = futures::stream::unfold(watch, |mut watch| async {
        loop {
            match watch.next().await? {
                Event::Changed(changes) => {
                    let changed = changes.rows.iter().map(|row| row.key().to_string());
                    let gone = changes.gone.iter().map(|gone| gone.key.to_string());
                    let data = json!({ "changed": Vec::from_iter(changed), "gone": Vec::from_iter(gone) });
                    return Some((Ok(Sent::default().data(data.to_string())), watch));
                }
                Event::Lagged => return None,
                Event::Status(_) => {}
            }
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// Returns the answer to a request that is impossible.
fn refused(error: impl std::fmt::Display) -> Refused {
    (StatusCode::CONFLICT, error.to_string())
}
