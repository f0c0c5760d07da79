//! A task that follows the catalog: it lists, then watches from the revision of the listing, and lists again when it
//! has missed changes.

use std::collections::BTreeMap;
use std::time::Duration;

use watershed_controller::{
    Context, Controller, Error, Event, Handle, KindOptions, Outcome, Reconciler, Resource, Select, Uid, Work,
    json_message,
};

#[derive(serde::Serialize, serde::Deserialize)]
struct Text(String);

json_message!(Text, format = 1);

/// Reconciler that stores the text of the spec in capitals as the state.
struct Capitals;

impl Reconciler for Capitals {
    type Spec = Text;
    type State = Text;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let capitals = Text(context.spec().0.to_uppercase());
        context.set_state(&capitals).await?;
        Ok(Outcome::from_work(Work::Built))
    }
}

/// Keeps a copy of all states until `count` have arrived. It may read slowly without holding up the controller.
async fn copy(handle: Handle, count: usize) -> BTreeMap<Uid, String> {
    'list: loop {
        let listing = handle.list(Select::new().with_deleted());
        let mut watch = handle.watch(listing.revision);
        let rows = listing.resources.into_iter().map(|resource| resource.row);
        let mut copy: BTreeMap<Uid, String> = rows.filter_map(|row| text(&row)).collect();
        while copy.len() < count {
            match watch.next().await {
                Some(Event::Changed(changes)) => {
                    copy.extend(changes.rows.iter().filter_map(|row| text(row)));
                    for removed in changes.removed {
                        copy.remove(&removed.uid);
                    }
                }
                Some(Event::Status(_)) => {}
                Some(Event::Lagged) => continue 'list,
                None => return copy,
            }
        }
        return copy;
    }
}

fn text(row: &watershed_controller::resource::Row) -> Option<(Uid, String)> {
    let state = watershed_controller::Resource::state_of::<Text>(row).ok()??;
    Some((row.uid, state.0))
}

#[tokio::main(flavor = "current_thread")]
#[allow(clippy::print_stdout, reason = "an example shows what happens")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Controller::builder().kind(KindOptions::new("text"), Capitals);
    let controller = builder.start().await?;
    let copied = tokio::spawn(copy(controller.handle(), 3));
    for name in ["one", "two", "three"] {
        controller
            .create(Resource::declare("text", name, &Text(name.into()))?)
            .await?;
    }
    let copied = tokio::time::timeout(Duration::from_secs(10), copied).await??;
    println!("{}", copied.into_values().collect::<Vec<_>>().join(" "));
    Ok(())
}
