//! Several processes over one Postgres: one holds the instance and runs the reconcilers. The others send their calls to
//! it, and take over when it ends.
//!
//! `failover URL` runs until the end of its input: it creates a page, prints its role, and repeats both for each line.
//! Start it in two terminals, and end the first process however you like.

use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use watershed_controller::store::{PostgresStore, TablePrefix};
use watershed_controller::{
    Context, Controller, Error, KindOptions, Outcome, Reconciler, Resource, Select, Work, json_message,
};

#[derive(serde::Serialize, serde::Deserialize)]
struct Page(String);

json_message!(Page, format = 1);

/// Reconciler that publishes pages, each with the epoch. Receivers should refuse an epoch lower than the last.
struct Publisher;

impl Reconciler for Publisher {
    type Spec = Page;
    type State = Page;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let published = Page(format!("{} (epoch {})", context.spec().0, context.epoch()));
        if context.state().is_some() {
            return Ok(Outcome::default());
        }
        context.set_state(&published).await?;
        Ok(Outcome::from_work(Work::Built))
    }
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows what happens")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1) {
        Some(url) => take_part(&url).await,
        None => {
            println!("skipped: no server was named, expected `failover postgres://USER@HOST/DATABASE`");
            Ok(())
        }
    }
}

/// Creates a page for each line of the input, whichever process holds the instance.
#[allow(clippy::print_stdout, reason = "an example shows what happens")]
pub(crate) async fn take_part(url: &str) -> Result<(), Box<dyn std::error::Error>> {
    let pool = PgPoolOptions::new().max_connections(4).connect(url).await?;
    let store = PostgresStore::new(pool, TablePrefix::new("failover_")?).await?;
    let store = store.term(Duration::from_secs(1));
    let builder = Controller::builder()
        .store(store)
        .kind(KindOptions::new("page"), Publisher);
    let controller = builder.join().await?;

    loop {
        let name = Resource::fresh_uid().to_string();
        controller
            .create(Resource::declare("page", &name, &Page("hello".into()))?)
            .await?;
        controller.wait_until_idle(Duration::from_secs(60)).await?;
        let count = controller.list(Select::new().with_deleted()).resources.len();
        let part = if controller.holds_instance() {
            "holds"
        } else {
            "asks"
        };
        println!("{part}: {count} pages");
        let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next()).await?;
        if line.is_none() {
            return Ok(controller.shutdown(Duration::from_secs(5)).await?);
        }
    }
}
