//! The instances that a process serves.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::Health;
use watershed_api::http::{InstanceEntry, ProblemDocument};
use watershed_api::{Code, Problem};

use super::requests::Requests;
use crate::instance::Instance;
use crate::report::health::{HealthReport, own_error};
use crate::report::kinds::PROJECT_PARSER;
use crate::report::{Entry, Hidden, hints};

/// The instances that are served, by name. Clones serve the same ones.
#[derive(Clone, Default)]
pub struct Service {
    instances: Arc<BTreeMap<String, Served>>,
    /// The path below which the API stands, without a slash at its end.
    base: Arc<str>,
    /// Names under which the service is reached, besides those of this machine itself.
    hosts: Arc<[String]>,
    stopping: CancellationToken,
}

/// An instance, or the reason why there is none.
#[derive(Clone)]
pub(super) enum Served {
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

impl Service {
    /// A service without instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more instance.
    #[must_use]
    pub fn with(self, name: impl Into<String>, instance: impl Into<Arc<Instance>>) -> Self {
        let instance = instance.into();
        let requests = Requests::open(&instance);
        self.add(name.into(), Served::Open(Open { instance, requests }))
    }

    /// The same with an instance that could not be opened: it costs the others nothing, and says why.
    #[must_use]
    pub fn with_failed(self, name: impl Into<String>, problem: Problem) -> Self {
        self.add(name.into(), Served::Failed(problem))
    }

    fn add(mut self, name: String, served: Served) -> Self {
        let instances = Arc::make_mut(&mut self.instances);
        instances.insert(name, served);
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

    /// Finds an instance.
    ///
    /// # Errors
    /// `unknown-name`, and the reason of one that could not be opened.
    pub(super) fn find(&self, name: &str) -> Result<&Open, Problem> {
        match self.instances.get(name) {
            Some(Served::Open(open)) => Ok(open),
            Some(Served::Failed(problem)) => Err(problem.clone()),
            None => {
                let unknown = Problem::new(Code::UnknownName, format!("there is no instance `{name}`"));
                let names = self.instances.keys().map(String::as_str);
                Err(match hints::nearest(name, names) {
                    Some(near) => unknown.hint(format!("did you mean `{near}`?")),
                    None => unknown,
                })
            }
        }
    }

    /// Returns what is told of all instances.
    pub(super) fn entries(&self) -> Vec<InstanceEntry> {
        let told = |(name, served): (&String, &Served)| match served {
            Served::Open(open) => InstanceEntry {
                name: name.clone(),
                project: Some(open.instance.project.name.clone()),
                environment: Some(open.instance.project.environment.clone()),
                health: worst(&open.instance),
                problem: None,
            },
            Served::Failed(problem) => InstanceEntry {
                name: name.clone(),
                project: None,
                environment: None,
                health: None,
                problem: Some(ProblemDocument::new(problem.clone(), &self.base)),
            },
        };
        self.instances.iter().map(told).collect()
    }
}

/// Returns the health of an instance that needs a person most.
fn worst(instance: &Instance) -> Option<Health> {
    let entries: Vec<Entry> = instance.entries();
    let report = HealthReport::from_entries(&entries);
    let parsers = entries
        .iter()
        .filter(|entry| entry.row.kind.as_str() == PROJECT_PARSER);
    if parsers.clone().any(|entry| own_error(&entry.row).is_some()) {
        // What the files declare was not applied.
        return Some(Health::Failed);
    }
    let listed = entries.iter().filter(|entry| entry.is_listed(Hidden::Leave));
    let healths = listed.filter_map(|entry| report.get(&entry.row).map(|it| it.health));
    healths.filter(|health| *health != Health::Unsupported).min()
}
