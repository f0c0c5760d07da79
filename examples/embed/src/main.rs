//! A controller with one kind of our own: folders. No database, no project files.

use std::time::Duration;

use watershed_controller::{Context, Controller, Error, KindOptions, Outcome, Reconciler, Work, json_message};

/// The desired state: a folder at this path.
#[derive(serde::Serialize, serde::Deserialize)]
struct Folder {
    path: String,
}

json_message!(Folder, format = 1);

struct Folders;

impl Reconciler for Folders {
    type Spec = Folder;
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if std::fs::exists(&context.spec().path).unwrap_or(false) {
            return Ok(Outcome::unchanged());
        }
        std::fs::create_dir(&context.spec().path).map_err(|e| Error::transient("create", e.to_string()))?;
        Ok(Outcome::changed())
    }

    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        std::fs::remove_dir(&context.spec().path).map_err(|e| Error::transient("remove", e.to_string()))?;
        Ok(Outcome::of(Work::Dropped))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir()
        .join(format!("watershed-{}", std::process::id()))
        .display()
        .to_string();
    let controller = Controller::builder()
        .kind(KindOptions::new("folder"), Folders)
        .start()
        .await?;

    let folders = controller.of::<Folders>();
    folders.apply("mine", &Folder { path: path.clone() }).await?;
    controller.wait_until_idle(Duration::from_secs(10)).await?;
    println!("{} is there: {}", path, std::fs::exists(&path)?);

    folders.delete("mine").await?;
    controller.wait_until_idle(Duration::from_secs(10)).await?;
    println!("{} is there: {}", path, std::fs::exists(&path)?);
    Ok(controller.shutdown(Duration::from_secs(1)).await?)
}
