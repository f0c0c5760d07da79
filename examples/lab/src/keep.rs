//! The program: the four managers under one controller, told what to do by lines on its input.
//!
//! | line | does |
//! |---|---|
//! | `plan` | follows `plan.json` anew |
//! | a CloudEvent as JSON | stores it, and says how many it concerns |
//!
//! What it says are JSON objects: each change of a stage as soon as it is committed, and `cleared` when an empty plan
//! has come true. A change may be said again after a restart.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines, Stdin};
use watershed_controller::resource::Row;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, Error, Event, Handle, Resource, Select, Uid};
use watershed_managers::{
    CloudEvent, Desired, DiscoveredItem, Discovery, EventDoor, Managed, Manager, Transition, Wanted,
    record_of, set_desired,
};

use crate::Fallible;
use crate::part::Parts;
use crate::pod::Pods;
use crate::session::Sessions;
use crate::spec::{Plan, WORKER};
use crate::worker::Workers;

/// The kinds, in the order in which people read of them.
pub(crate) const KINDS: [&str; 4] = [Sessions::KIND, Parts::KIND, Pods::KIND, Workers::KIND];
/// The time in which what runs has to end when the program does.
const GRACE: Duration = Duration::from_secs(5);
/// The time that taking everything down may need.
const PATIENCE: Duration = Duration::from_secs(60);

/// One change of a stage, as it is said.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) change: Transition,
}

/// Keeps a lab until its input ends, or until an empty plan has come true.
pub(crate) async fn run(lab: &Path) -> Fallible<()> {
    let store = SqliteStore::open(lab.join("catalog.db")).await?;
    let lab = lab.to_owned();
    let pods = Managed::new(Pods { lab: lab.clone() });
    let discovery = pods.discovery();
    let mut builder = Controller::builder().store(store);
    builder = Managed::new(Sessions { lab: lab.clone() }).register(builder);
    builder = Managed::new(Parts).register(builder);
    builder = pods.register(builder);
    builder = Managed::new(Workers { lab: lab.clone() }).register(builder);
    let controller = builder.start().await?;
    let handle = controller.as_ref().clone();
    let lines = BufReader::new(tokio::io::stdin()).lines();
    let result = tokio::select! {
        result = obey(&handle, &lab, lines) => result,
        result = tell(handle.clone()) => result,
        () = look_for_orphans(discovery, handle.clone()) => Ok(()),
    };
    controller.shutdown(GRACE).await?;
    result
}

/// Does what the lines say, until there are no more.
async fn obey(handle: &Handle, lab: &Path, mut lines: Lines<BufReader<Stdin>>) -> Fallible<()> {
    let door = EventDoor::new(handle.clone(), KINDS);
    follow(handle, &Plan::read(lab)?).await?;
    while let Some(line) = lines.next_line().await? {
        if line == "plan" {
            follow(handle, &Plan::read(lab)?).await?;
            continue;
        }
        let event = CloudEvent::structured(line.as_bytes())?;
        let told = door.deliver(&event).await?;
        println!("{}", json!({"event": event.id, "told": told}));
    }
    Ok(())
}

/// Brings the catalog to what the plan says; the controller does the rest.
async fn follow(handle: &Handle, plan: &Plan) -> Fallible<()> {
    if let Some(worker) = &plan.worker {
        let wanted = Wanted::new(Desired::stage("active"), worker.clone());
        handle
            .resources::<Managed<Workers>>()
            .apply(WORKER, &wanted)
            .await?;
    }
    let sessions = handle.resources::<Managed<Sessions>>();
    for booking in &plan.sessions {
        sessions.apply(&booking.name, &booking.wanted()).await?;
    }
    if plan.worker.is_none() && plan.sessions.is_empty() {
        clear(handle).await?;
        println!("{}", json!({"cleared": true}));
    }
    Ok(())
}

/// Takes everything down in its order, and then deletes it.
async fn clear(handle: &Handle) -> Fallible<()> {
    for kind in [Sessions::KIND, Workers::KIND] {
        for found in handle.list(Select::kind(kind)).resources {
            let key = found.key();
            set_desired(handle, key.clone(), "gone".into()).await?;
            let is_gone = |found: Option<&Resource>| found.is_none_or(|found| is_gone(&found.row));
            handle.wait_until(key.clone(), is_gone, PATIENCE).await?;
            handle.delete(key.clone()).await?;
            handle.wait_until(key, |found| found.is_none(), PATIENCE).await?;
        }
    }
    Ok(())
}

fn is_gone(row: &Row) -> bool {
    let record = row.state.as_deref().and_then(|state| record_of(state).ok());
    record.is_none_or(|record| record.stage == *record.stages.last() && record.is_clean())
}

/// Says each change of a stage, once it is committed.
async fn tell(handle: Handle) -> Fallible<()> {
    let mut told: BTreeMap<Uid, Vec<Transition>> = BTreeMap::new();
    loop {
        let listing = handle.list(Select::all());
        for found in &listing.resources {
            changes_of(&found.row, &mut told);
        }
        let mut watch = handle.watch(listing.revision);
        loop {
            match watch.next().await {
                Some(Event::Changed(changes)) => {
                    changes.rows.iter().for_each(|row| changes_of(row, &mut told));
                }
                Some(Event::Status(_)) => {}
                // Whoever is too slow lists again.
                Some(Event::Lagged) => break,
                None => return Ok(()),
            }
        }
    }
}

fn changes_of(row: &Row, told: &mut BTreeMap<Uid, Vec<Transition>>) {
    let record = row.state.as_deref().and_then(|state| record_of(state).ok());
    let Some(record) = record.filter(|_| KINDS.contains(&row.kind.as_str())) else {
        return;
    };
    let before = told.entry(row.uid).or_default();
    for change in record
        .transitions
        .iter()
        .filter(|change| !before.contains(change))
    {
        let (kind, name) = (row.kind.to_string(), row.name.to_string());
        let said = json!(Change {
            kind,
            name,
            change: change.clone()
        });
        println!("{said}");
    }
    *before = record.transitions;
}

/// Says what belongs to no resource. It is left alone.
async fn look_for_orphans(discovery: Discovery<Pods>, handle: Handle) {
    let report = |found: Result<Vec<DiscoveredItem>, Error>| match found {
        Ok(orphans) => orphans
            .iter()
            .for_each(|orphan| eprintln!("nobody's: {}", orphan.name)),
        Err(error) => eprintln!("can't look for what is nobody's: {}", error.message),
    };
    discovery.run(handle, report).await;
}
