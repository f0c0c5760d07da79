//! A folder that is tried again until it can be made, comes back when somebody removes it, and goes when it is deleted.
//! No database, no project files.

use std::path::PathBuf;
use std::time::Duration;

use watershed_controller::{Context, Controller, Error, Key, KindOptions, Outcome, Reconciler, RunOutcome, json_message};

/// The desired state: a folder at this path.
#[derive(serde::Serialize, serde::Deserialize)]
struct Folder(PathBuf);

json_message!(Folder, format = 1);

struct Folders;

impl Reconciler for Folders {
    type Spec = Folder;
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if context.spec().0.is_dir() {
            return Ok(Outcome::unchanged());
        }
        std::fs::create_dir(&context.spec().0)?;
        Ok(Outcome::changed())
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        match std::fs::remove_dir(&context.spec().0) {
            // It went before, by an earlier run or by somebody else.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Outcome::unchanged()),
            removed => removed.map(|()| Outcome::changed()).map_err(Error::from),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::temp_dir().join(format!("watershed-{}", std::process::id()));
    let path = parent.join("mine");
    let options = KindOptions::new("folder").resync(Duration::from_millis(200)); // Drift is found that late.
    let controller = Controller::builder().kind(options, Folders).start().await?;
    let folders = controller.resources::<Folders>();

    // The folder above is missing: the run fails, and is tried again after a second, two, four, ...
    let first = folders.apply("mine", &Folder(path.clone())).outcome(None).await?;
    println!("the first run failed: {}", matches!(first, RunOutcome::Failed { .. }));
    std::fs::create_dir(&parent)?;
    let (key, waited) = (Key::new("folder", "mine"), path.clone());
    controller.wait_until(key.clone(), move |_| waited.is_dir(), None).await?;
    println!("{} is there", path.display());

    std::fs::remove_dir(&path)?;
    let waited = path.clone();
    controller.wait_until(key, move |_| waited.is_dir(), None).await?;
    println!("it is back");

    folders.delete("mine").settled(None).await?;
    println!("it is gone: {}", !path.exists());
    std::fs::remove_dir(&parent)?;
    Ok(controller.shutdown(Duration::from_secs(1)).await?)
}
