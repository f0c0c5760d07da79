//! A controller whose catalog is in SQLite: what was declared and achieved survives the process.

use std::time::Duration;

use watershed_controller::store::SqliteStore;
use watershed_controller::{Context, Controller, Error, KindOptions, Outcome, Reconciler, Resource, Select, json_message};

/// The number of times that something was done: wanted in the spec, achieved in the state.
#[derive(serde::Serialize, serde::Deserialize)]
struct Times(u32);

json_message!(Times, format = 1);

struct Counter;

impl Reconciler for Counter {
    type Spec = Times;
    type State = Times;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let achieved = context.state().map_or(0, |times| times.0);
        if achieved >= context.spec().0 {
            return Ok(Outcome::unchanged());
        }
        let state = Times(achieved + 1);
        context.set_state(&state).await?;
        Ok(Outcome::changed())
    }
}

async fn open(path: &std::path::Path) -> Result<Controller, Box<dyn std::error::Error>> {
    let store = SqliteStore::open(path).await?;
    Ok(Controller::builder()
        .store(store)
        .kind(KindOptions::new("counter"), Counter)
        .start()
        .await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("watershed-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = folder.join("catalog.db");
    let controller = open(&path).await?;
    controller.create(Resource::declare("counter", "mine", &Times(2))?).await?;
    controller.wait_until_idle(Duration::from_secs(10)).await?;
    controller.shutdown(Duration::from_secs(1)).await?;

    // Started again, it finds its resource, and asks for it as every start does.
    let controller = open(&path).await?;
    controller.wait_until_idle(Duration::from_secs(10)).await?;
    for resource in controller.list(Select::new()).resources {
        let times = resource.state::<Times>()?.map_or(0, |times| times.0);
        println!("{} \"{}\" was done {times} times", resource.kind(), resource.name());
    }
    for run in controller.history("mine", 10).await? {
        println!("- {}: {:?}", run.reason.trigger, run.result);
    }
    controller.shutdown(Duration::from_secs(1)).await?;
    Ok(std::fs::remove_dir_all(&folder)?)
}
