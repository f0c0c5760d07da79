//! A kind whose specs say how its runs go.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::store::Store;
use watershed_controller::{
    Builder, Context, Controller, Error, Key, KindOptions, NewResource, Outcome, Reconciler, Ref, Refusal,
    Resource, Work, json_message,
};

/// Longer than anything here takes; in virtual time where nothing else would happen.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// The behaviour of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Nothing to do.
    Rest,
    /// Writes its text as state, if that is not there yet.
    Build(String),
    /// Fails with this message.
    Fail(String),
    /// Panics with this message.
    Panic(String),
    /// Sleeps so many milliseconds, then builds the text.
    Sleep(u64, String),
    /// Runs until it is cancelled; then does what the ending says.
    Hang(Ending),
    /// Waits for a reconcile of this task, which is refused.
    WaitFor(String),
    /// Creates this task, and names it in its state.
    Create(String),
    /// Deletes itself.
    DeleteItself,
}

/// The behaviour of a hanging run that is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ending {
    /// Writes this state, then returns.
    Write(String),
    /// Tries to create this task, and writes the refusal as state.
    Create(String),
    /// Does not return.
    Stay,
}

/// The state that a run stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Built(pub String);

json_message!(Task, format = 1);
json_message!(Built, format = 1);

/// Runs tasks.
#[derive(Debug)]
pub(crate) struct Tasks;

impl Reconciler for Tasks {
    type Spec = Task;
    type State = Built;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        match context.spec().clone() {
            Task::Rest => Ok(Outcome::default()),
            Task::Build(text) => build(&context, text).await,
            Task::Fail(message) => Err(Error::permanent("failed", message)),
            Task::Panic(message) => panic!("{message}"),
            Task::Sleep(ms, text) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                build(&context, text).await
            }
            Task::Hang(ending) => hang(&context, ending).await,
            Task::WaitFor(other) => wait_for(&context, &other).await,
            Task::Create(other) => {
                let created = context.controller().create(task(&other, &Task::Rest)).await;
                created.map_err(|e| Error::permanent("create", e.to_string()))?;
                build(&context, other).await
            }
            Task::DeleteItself => {
                let controller = context.controller();
                let deleted = controller.delete(context.uid());
                deleted
                    .await
                    .map_err(|e| Error::permanent("delete", e.to_string()))?;
                Ok(Outcome::default())
            }
        }
    }
}

async fn build(context: &Context<Tasks>, text: String) -> Result<Outcome, Error> {
    let built = Built(text);
    if context.state() == Some(&built) {
        return Ok(Outcome::default());
    }
    context
        .set_state(&built)
        .await
        .map_err(|e| Error::permanent("state", e.to_string()))?;
    Ok(Outcome::from_work(Work::Built))
}

async fn hang(context: &Context<Tasks>, ending: Ending) -> Result<Outcome, Error> {
    context.progress("hanging");
    context.cancellation().cancelled().await;
    match ending {
        Ending::Write(text) => build(context, text).await,
        Ending::Create(other) => {
            let refused = context
                .controller()
                .create(task(&other, &Task::Rest))
                .await
                .unwrap_err();
            build(context, refused.to_string()).await
        }
        Ending::Stay => std::future::pending().await,
    }
}

async fn wait_for(context: &Context<Tasks>, other: &str) -> Result<Outcome, Error> {
    let controller = context.controller();
    let mut request = controller
        .reconcile(key(other))
        .await
        .map_err(|e| Error::permanent("ask", e.to_string()))?;
    let waits = [
        request.outcome(SOON).await.map(drop),
        request.settled(SOON).await.map(drop),
        controller.wait_until_idle(SOON).await,
        controller.wait_until(key(other), |_| true, SOON).await.map(drop),
    ];
    let refused = waits
        .into_iter()
        .all(|wait| wait == Err(Refusal::FromInside.into()));
    build(context, if refused { "refused" } else { "waited" }.to_owned()).await
}

pub(crate) fn key(name: &str) -> Key {
    Key::new("task", name)
}

pub(crate) fn task(name: &str, task: &Task) -> NewResource {
    Resource::declare("task", name, task).expect("tasks have bytes")
}

pub(crate) fn reading(name: &str, spec: &Task, parents: &[&str]) -> NewResource {
    let refs: Vec<Ref> = parents
        .iter()
        .map(|parent| Ref::completed("task", *parent))
        .collect();
    task(name, spec).with_refs(refs)
}

pub(crate) fn builder(store: impl Store) -> Builder {
    Controller::builder()
        .store(store)
        .kind(KindOptions::new("task"), Tasks)
}

pub(crate) async fn start(store: impl Store) -> Controller {
    builder(store).start().await.expect("the controller starts")
}

/// The state of a task, as text.
pub(crate) fn state_of(controller: &Controller, name: &str) -> Option<String> {
    let resource = controller.get(key(name)).expect("the task is there");
    resource
        .state::<Built>()
        .expect("its state can be read")
        .map(|built| built.0)
}
