//! The smallest program with a controller: folders that are there because they are declared.

use watershed_controller::{Context, Controller, Error, Outcome, Reconciler, RunOutcome, json_message};

#[derive(serde::Serialize, serde::Deserialize)]
struct Folder(String);
json_message!(Folder, format = 1);
struct Folders;

impl Reconciler for Folders {
    type Spec = Folder;
    type State = ();

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if std::fs::exists(&context.spec().0)? {
            return Ok(Outcome::unchanged());
        }
        std::fs::create_dir(&context.spec().0)?;
        Ok(Outcome::changed())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of a folder")?;
    let controller = Controller::builder().kind("folder", Folders).start().await?;
    match controller.resources::<Folders>().apply("mine", &Folder(path)).outcome(None).await? {
        RunOutcome::Done { .. } => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
