//! A managed resource with its parts, as server-sent events.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::StreamExt as _;
use serde_json::{Value, json};
use watershed::{Code, Instance, Problem};
use watershed_controller as controller;
use watershed_controller::resource::Revision;
use watershed_controller::watch::{Changes, Watch};
use watershed_controller::{Key, Select, Uid};
use watershed_managers::{Tree, tree};

use crate::routes::{Projects, Refused};

/// `GET /PROJECT/trees/NAME`: a managed resource with its parts, at once and whenever something of it has changed.
///
/// Trees are not stored: each is computed from one listing, whose revision is the event's id. It ends with `gone`.
pub(crate) async fn stream(
    State(projects): State<Projects>,
    Path((project, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Refused> {
    let instance = Arc::clone(projects.find(&project)?);
    let unknown = |_| {
        let message = format!("no managed resource \"{name}\"");
        Refused(Problem::new(Code::UnknownName, message))
    };
    let found = instance.controller().get(Key::new("managed", name.as_str()));
    let follower = Follower::new(instance, found.map_err(unknown)?.row.uid);
    let events = futures::stream::unfold(follower, async |mut follower| {
        Some((follower.next().await?, follower))
    });
    let events = events
        .map(Ok::<_, Infallible>)
        .take_until(projects.stopping.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// A reader of one tree.
struct Follower {
    instance: Arc<Instance>,
    root: Uid,
    /// All that the last tree had; empty before the first one.
    known: BTreeSet<Uid>,
    shown: Value,
    watch: Option<Watch>,
    is_over: bool,
}

impl Follower {
    fn new(instance: Arc<Instance>, root: Uid) -> Self {
        Self {
            instance,
            root,
            known: BTreeSet::new(),
            shown: Value::Null,
            watch: None,
            is_over: false,
        }
    }

    /// Waits until the tree differs from the one that was shown last.
    async fn next(&mut self) -> Option<Event> {
        while !self.is_over {
            let is_new = match &mut self.watch {
                None => true,
                Some(watch) => match watch.next().await? {
                    controller::Event::Changed(changes) => concerns(&changes, &self.known),
                    controller::Event::Status(_) => false,
                    // A slow reader has missed something: it lists again.
                    controller::Event::Lagged => {
                        self.watch = None;
                        true
                    }
                },
            };
            if is_new && let Some(event) = self.look() {
                return Some(event);
            }
        }
        None
    }

    fn look(&mut self) -> Option<Event> {
        let controller = self.instance.controller();
        let listing = controller.list(Select::kind("managed").with_hidden());
        let Revision(revision) = listing.revision;
        if self.watch.is_none() {
            self.watch = Some(controller.watch(listing.revision));
        }
        let Some(found) = tree(&listing.resources, self.root) else {
            self.is_over = true;
            return Some(Event::default().event("gone").data(""));
        };
        self.known.clear();
        remember(&found, &mut self.known);
        let mut shown = view(&found);
        shown["counts"] = json!(found.counts());
        shown["worst"] = json!(found.worst().key.name.as_str());
        if shown == self.shown {
            return None;
        }
        let event = Event::default().event("tree").id(revision.to_string());
        let event = event.data(shown.to_string());
        self.shown = shown;
        Some(event)
    }
}

fn remember(tree: &Tree, known: &mut BTreeSet<Uid>) {
    known.insert(tree.uid);
    tree.parts.iter().for_each(|part| remember(part, known));
}

/// Returns true if a change is about something of the tree, or something that one of it owns.
fn concerns(changes: &Changes, known: &BTreeSet<Uid>) -> bool {
    let is_known = |uid: Option<Uid>| uid.is_some_and(|uid| known.contains(&uid));
    let changed = changes
        .rows
        .iter()
        .any(|row| is_known(Some(row.uid)) || is_known(row.owner));
    changed || changes.removed.iter().any(|removed| is_known(Some(removed.uid)))
}

fn view(tree: &Tree) -> Value {
    json!({
        "name": tree.key.name.as_str(),
        "stage": tree.stage,
        "goal": tree.goal,
        "health": format!("{:?}", tree.health).to_lowercase(),
        "message": tree.message,
        "parts": tree.parts.iter().map(view).collect::<Vec<_>>(),
    })
}
