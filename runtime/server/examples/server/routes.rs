//! The routes: read, ask, tell, follow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watershed::Instance;
use watershed::api::{Answer, Code, Problem, Request};
use watershed_controller::Select;

use crate::{door, events, trees, view};

/// The time for which a caller waits for the outcome of its request. The work goes on after that.
const PATIENCE: Duration = Duration::from_secs(60);

/// The projects that this server keeps, by name. Clones are handles to the same ones.
#[derive(Clone, Default)]
pub(crate) struct Projects {
    instances: BTreeMap<String, Arc<Instance>>,
    /// Ends the streams of events, which would otherwise keep connections open for ever.
    pub(crate) stopping: CancellationToken,
}

/// The answer to a call that can't be served.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Problem);

pub(crate) fn routes(projects: Projects) -> Router {
    Router::new()
        .route("/{project}/resources", get(resources))
        .route("/{project}/reconcile/{*name}", post(reconcile))
        .route("/{project}/operations", post(operate))
        .route("/{project}/events", get(events::stream).post(door::receive))
        .route("/{project}/trees/{name}", get(trees::stream))
        .with_state(projects)
}

impl Projects {
    /// Adds a project under its folder's name.
    pub(crate) fn add(&mut self, instance: Instance) {
        self.instances
            .insert(instance.name().to_owned(), Arc::new(instance));
    }

    pub(crate) fn find(&self, name: &str) -> Result<&Arc<Instance>, Refused> {
        let unknown = || Problem::new(Code::UnknownName, format!("no project \"{name}\""));
        self.instances.get(name).ok_or_else(|| Refused(unknown()))
    }

    /// Completes with `stop`, having told the streams to end.
    pub(crate) fn stopped_by<F: Future<Output = ()>>(&self, stop: F) -> impl Future<Output = ()> + use<F> {
        let stopping = self.stopping.clone();
        async move {
            stop.await;
            stopping.cancel();
        }
    }

    /// Closes all, at the same time, and reports the first that did not end in order.
    pub(crate) async fn close(self, grace: Duration) -> anyhow::Result<()> {
        let closing = self.instances.values().map(|instance| instance.close(grace));
        for closed in futures::future::join_all(closing).await {
            closed?;
        }
        Ok(())
    }
}

/// `GET /PROJECT/resources`: all resources at one revision, from which `events` can be followed.
async fn resources(
    State(projects): State<Projects>,
    Path(project): Path<String>,
) -> Result<Json<Value>, Refused> {
    let listing = projects.find(&project)?.controller().list(Select::new());
    let resources: Vec<_> = listing.resources.iter().map(|one| view::row(&one.row)).collect();
    Ok(Json(
        json!({ "revision": listing.revision.0, "resources": resources }),
    ))
}

/// `POST /PROJECT/reconcile/NAME` (or `KIND/NAME`): looks at it again, and answers with the outcome of a run that began
/// after the request. A caller that goes away takes nothing back.
async fn reconcile(
    State(projects): State<Projects>,
    Path((project, name)): Path<(String, String)>,
) -> Result<Json<Value>, Refused> {
    let instance = projects.find(&project)?;
    let mut request = instance.reconcile(&name).await.map_err(Refused)?;
    let outcome = request.outcome(PATIENCE).await;
    let outcome = outcome.map_err(|error| Refused(watershed::unfinished(&error)))?;
    Ok(Json(view::outcome(&outcome)))
}

/// `POST /PROJECT/operations`: any operation, as `{"pause": {"names": ["daily"]}}`, and its document.
async fn operate(
    State(projects): State<Projects>,
    Path(project): Path<String>,
    Json(request): Json<Request>,
) -> Result<Json<Answer>, Refused> {
    let answer = projects.find(&project)?.answer(request).await;
    answer.map(Json).map_err(Refused)
}
