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
use watershed_controller::{Controller, Event, Handle, Key, Ref, Resource, Select};

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
        .kind("folder", Folders(root.into()))
        .kind("file", Files(root.into()))
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
        let new = Resource::declare(&kind, &name, &file).map_err(refused)?;
        new.with_refs([Ref::completed("folder", file.folder.as_str())])
    };
    handle.apply(new).settled(PATIENCE).await.map_err(refused)?;
    show(&handle, (kind, name))
}

/// Refuses names that lead out of the root.
fn below_root(name: &str) -> Result<(), Refused> {
    if name.starts_with('.') || name.contains('/') {
        return Err(refused(format!("`{name}` is no name for a file")));
    }
    Ok(())
}

/// Has a resource looked at again, waits until it and what is below it have settled, and shows it.
async fn reconcile(State(handle): State<Handle>, Path((kind, name)): Named) -> Result<Json<Value>, Refused> {
    let key = Key::new(kind.as_str(), name.as_str());
    let mut request = handle.reconcile(key).await.map_err(refused)?;
    request.settled(PATIENCE).await.map_err(refused)?;
    show(&handle, (kind, name))
}

fn show(handle: &Handle, (kind, name): (String, String)) -> Result<Json<Value>, Refused> {
    let found = handle
        .get(Key::new(kind.as_str(), name.as_str()))
        .map_err(refused)?;
    let error = found.row.error.as_ref().map(|error| &*error.message);
    Ok(Json(
        json!({ "resource": found.row.key().to_string(), "error": error }),
    ))
}

/// Deletes a resource, and answers when it has gone.
async fn remove(State(handle): State<Handle>, Path((kind, name)): Named) -> Result<StatusCode, Refused> {
    let key = Key::new(kind.as_str(), name.as_str());
    handle.delete(key).settled(PATIENCE).await.map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list(State(handle): State<Handle>) -> Json<Value> {
    let listing = handle.list(Select::new());
    let resources = listing.resources.iter().map(|found| found.row.key().to_string());
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
                    let gone = changes.removed.iter().map(|gone| gone.key.to_string());
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
