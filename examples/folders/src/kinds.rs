//! The two kinds: a folder, and a file in one.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::{Context, Error, Outcome, Reconciler, json_message};

/// The interval at which changes by people are found and undone.
const LOOK: Duration = Duration::from_secs(5);

/// A file as asked for.
#[derive(Serialize, Deserialize)]
pub(crate) struct File {
    pub(crate) folder: String,
    pub(crate) text: String,
}

/// The path that was made, so that a deletion removes that one, whatever the spec says by then.
#[derive(Serialize, Deserialize)]
pub(crate) struct Made(PathBuf);

json_message!(File, format = 1);
json_message!(Made, format = 1);

/// Keeps folders below a root. There is nothing to choose about a folder, and nothing to remember.
pub(crate) struct Folders(pub(crate) PathBuf);

impl Reconciler for Folders {
    type Spec = ();
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let path = self.0.join(context.name().as_str());
        if path.is_dir() {
            return Ok(Outcome::unchanged().requeue_after(LOOK));
        }
        tokio::fs::create_dir(&path).await.map_err(failed)?;
        Ok(Outcome::changed().requeue_after(LOOK))
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let path = self.0.join(context.name().as_str());
        absent(tokio::fs::remove_dir(path).await).map_err(failed)?;
        Ok(Outcome::changed())
    }
}

/// Keeps the files in them.
pub(crate) struct Files(pub(crate) PathBuf);

impl Reconciler for Files {
    type Spec = File;
    type State = Made;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let spec = context.spec();
        let path = self.0.join(&spec.folder).join(context.name().as_str());
        if let Some(Made(old)) = context.state().filter(|made| made.0 != path) {
            absent(tokio::fs::remove_file(old).await).map_err(failed)?;
        }
        let found = tokio::fs::read_to_string(&path).await;
        if found.is_ok_and(|text| text == spec.text) {
            return Ok(Outcome::unchanged().requeue_after(LOOK));
        }
        tokio::fs::write(&path, &spec.text).await.map_err(failed)?;
        context.set_state(&Made(path)).await?;
        Ok(Outcome::changed().requeue_after(LOOK))
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if let Some(Made(path)) = context.state() {
            absent(tokio::fs::remove_file(path).await).map_err(failed)?;
        }
        Ok(Outcome::changed())
    }
}

/// Ignores that a path to be removed is gone already.
fn absent(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::transient("disk", error.to_string())
}
