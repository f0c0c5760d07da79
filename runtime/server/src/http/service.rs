//! The instances that a process serves.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::Health;
use watershed_api::http::{InstanceEntry, ProblemDocument};
use watershed_api::{Code, Problem};
use watershed_locks::Unpoisoned;

use super::requests::Requests;
use crate::instance::Instance;
use crate::report::health::own_error;
use crate::report::kinds::PROJECT_PARSER;
use crate::report::{Hidden, hints};

/// The time in which a body has to come.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The instances that are served, by name. Clones serve the same ones.
#[derive(Clone)]
pub struct Service {
    instances: Arc<RwLock<BTreeMap<String, Served>>>,
    /// The path below which the API stands, without a slash at its end.
    base: Arc<str>,
    /// Names under which the service is reached, besides those of this machine itself.
    hosts: Arc<[String]>,
    /// The time in which a body has to come.
    body_within: Duration,
    stopping: CancellationToken,
}

/// An instance, or the reason why there is none.
#[derive(Clone)]
enum Served {
    /// It is being opened.
    Opening,
    /// It is open.
    Open(Open),
    /// It could not be opened.
    Failed(Problem),
}

/// An instance that is open.
#[derive(Clone)]
pub(super) struct Open {
    /// The instance.
    pub(super) instance: Arc<Instance>,
    /// The work that was asked of it.
    pub(super) requests: Requests,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            instances: Arc::default(),
            base: Arc::default(),
            hosts: Arc::default(),
            body_within: BODY_WITHIN,
            stopping: CancellationToken::new(),
        }
    }
}

impl Service {
    /// A service without instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more instance.
    #[must_use]
    pub fn with(self, name: impl Into<String>, instance: impl Into<Arc<Instance>>) -> Self {
        self.put(name, instance);
        self
    }

    /// The same below a path, which links and addresses follow.
    #[must_use]
    pub fn below(mut self, base: &str) -> Self {
        self.base = base.trim_end_matches('/').into();
        self
    }

    /// The same under other names of hosts, besides those of loopback.
    #[must_use]
    pub fn known_as(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts = hosts.into_iter().collect();
        self
    }

    /// The same with another time in which a body has to come; 30 seconds unless set.
    #[must_use]
    pub fn bodies_within(mut self, time: Duration) -> Self {
        self.body_within = time;
        self
    }

    /// Serves an instance from now on, in the place of what had the name.
    pub fn put(&self, name: impl Into<String>, instance: impl Into<Arc<Instance>>) {
        let instance = instance.into();
        let requests = Requests::open(&instance);
        self.set(name.into(), Served::Open(Open { instance, requests }));
    }

    /// Says that an instance is being opened: until it is, or has failed, the service is not ready.
    pub fn put_opening(&self, name: impl Into<String>) {
        self.set(name.into(), Served::Opening);
    }

    /// Says that an instance could not be opened: it costs the others nothing, and says why.
    pub fn put_failed(&self, name: impl Into<String>, problem: Problem) {
        self.set(name.into(), Served::Failed(problem));
    }

    fn set(&self, name: String, served: Served) {
        self.instances.write().unpoisoned().insert(name, served);
    }

    /// Tells streams to end: the service is about to stop.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Resolves when the service is about to stop.
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns the path below which the API stands.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the names of hosts that are known.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the time in which a body has to come.
    pub(super) fn body_within(&self) -> Duration {
        self.body_within
    }

    /// Finds an instance.
    ///
    /// # Errors
    /// `unknown-name`, `unavailable` while it is being opened, and the reason of one that could not be.
    pub(super) fn find(&self, name: &str) -> Result<Open, Problem> {
        let instances = self.instances.read().unpoisoned();
        match instances.get(name) {
            Some(Served::Open(open)) => Ok(open.clone()),
            Some(Served::Opening) => Err(opening(name)),
            Some(Served::Failed(problem)) => Err(problem.clone()),
            None => {
                let unknown = Problem::new(Code::UnknownName, format!("there is no instance `{name}`"));
                let names = instances.keys().map(String::as_str);
                Err(match hints::nearest(name, names) {
                    Some(near) => unknown.hint(format!("did you mean `{near}`?")),
                    None => unknown,
                })
            }
        }
    }

    /// Returns the names of all instances, each with the reason why it is not open, and whether that may end soon.
    pub(super) fn states(&self) -> Vec<(String, State)> {
        let instances = self.instances.read().unpoisoned();
        let states = instances.iter().map(|(name, served)| {
            let state = match served {
                Served::Opening => State::Opening,
                Served::Open(_) => State::Open,
                Served::Failed(problem) => State::Failed(problem.clone()),
            };
            (name.clone(), state)
        });
        states.collect()
    }

    /// Returns what is told of all instances.
    pub(super) async fn entries(&self) -> Vec<InstanceEntry> {
        let all: Vec<(String, Served)> = {
            let instances = self.instances.read().unpoisoned();
            instances
                .iter()
                .map(|(name, served)| (name.clone(), served.clone()))
                .collect()
        };
        let mut entries = Vec::with_capacity(all.len());
        for (name, served) in all {
            let closed = |problem: Problem| InstanceEntry {
                name: name.clone(),
                project: None,
                environment: None,
                health: None,
                problem: Some(ProblemDocument::new(problem, &self.base)),
            };
            entries.push(match served {
                Served::Open(open) => InstanceEntry {
                    name,
                    project: Some(open.instance.project.name.clone()),
                    environment: Some(open.instance.project.environment.clone()),
                    health: worst(&open.instance).await,
                    problem: None,
                },
                Served::Opening => closed(opening(&name)),
                Served::Failed(problem) => closed(problem),
            });
        }
        entries
    }
}

/// The state of an instance of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// It is being opened.
    Opening,
    /// It answers.
    Open,
    /// It could not be opened.
    Failed(Problem),
}

fn opening(name: &str) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("the instance `{name}` is being opened"),
    )
    .hint("ask again in a moment")
}

/// Returns the health of an instance that needs a person most, as readers see its resources.
async fn worst(instance: &Instance) -> Option<Health> {
    let projection = instance.projection().await;
    let table = projection.table();
    let mut worst = None;
    for (_, slot) in table.after(None) {
        let is_parser = slot.entry.row.kind.as_str() == PROJECT_PARSER;
        if is_parser && own_error(&slot.entry.row).is_some() {
            // What the files declare was not applied.
            return Some(Health::Failed);
        }
        let health = slot.standing.health;
        if slot.entry.is_listed(Hidden::Leave) && health != Health::Unsupported {
            worst = Some(worst.map_or(health, |worst: Health| worst.min(health)));
        }
    }
    worst
}
