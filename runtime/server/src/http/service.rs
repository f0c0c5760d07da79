//! The service: the instances that a process serves over HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use watershed_api::documents::Health;
use watershed_api::http::{InstanceEntry, ProblemDocument};
use watershed_api::{Code, Problem};
use watershed_callers::state::State;
use watershed_callers::{Grant, Tokens};
use watershed_locks::Unpoisoned;

use super::caller::Caller;
use super::files;
use super::keys::Keys;
use super::limits::{Counts, Gate, Limits};
use super::meters::Meters;
use super::requests::Requests;
#[cfg(feature = "pgwire")]
use super::sessions::Sessions;
use super::source::Source;
use super::texts::Texts;
use super::visibility::Visibility;
use crate::instance::Instance;
use crate::report::health::own_error;
use crate::report::kinds::PROJECT_PARSER;
use crate::report::{Hidden, hints};

/// The most editors that are connected to an instance: each has a thread and a compilation of the project's files.
pub(super) const MOST_EDITORS: usize = 16;

/// The most files of an instance's reports that are sent at the same time.
const MOST_SENT: usize = 64;

/// The instances that a process serves over HTTP, by name. Clones share them.
#[derive(Clone)]
pub struct Service {
    instances: Arc<RwLock<BTreeMap<String, Served>>>,
    /// Path prefix of the API, without a slash at its end.
    base: Arc<str>,
    /// Host names under which the service is reached, besides loopback.
    hosts: Arc<[String]>,
    /// Limits on what callers may use.
    gate: Arc<Gate>,
    /// State of the service; none if the service keeps none.
    state: Option<Arc<State>>,
    /// Tokens that the service accepts; none if it has no tokens of its own.
    tokens: Option<Arc<Tokens>>,
    /// Idempotency keys that the process works on.
    keys: Keys,
    /// Sources of the instances whose files are fetched, by the instance's name.
    sources: Arc<RwLock<BTreeMap<String, Arc<dyn Source>>>>,
    /// Meters of the API.
    meters: Meters,
    /// Sessions of SQL clients.
    #[cfg(feature = "pgwire")]
    sessions: Sessions,
    stopping: CancellationToken,
    /// True if assistants are let in.
    #[cfg(feature = "mcp")]
    has_assistants: bool,
    /// Issuer of the provider at which people sign in; none if they sign in at none.
    #[cfg(feature = "mcp")]
    issuer: Option<Arc<str>>,
}

/// An instance under its name, open or not.
#[derive(Clone)]
pub(super) enum Served {
    /// The instance is still being opened.
    Opening,
    /// The instance is open and answers.
    Open(Open),
    /// The instance could not be opened, for this reason.
    Failed(Problem),
}

/// An open instance with its requests.
#[derive(Clone)]
pub(super) struct Open {
    /// The instance that answers calls.
    pub(super) instance: Arc<Instance>,
    /// The instance's stored requests.
    pub(super) requests: Requests,
    /// Token that is cancelled when streams on the instance have to end.
    pub(super) ending: CancellationToken,
    /// Tracker of the calls under way, which hold clones of this.
    calls: TaskTracker,
    /// Place of this clone among the calls under way.
    _call: TaskTrackerToken,
    /// The compilation of the instance's files for unsaved texts.
    pub(super) texts: Texts,
    /// Places for editors that are connected to the instance.
    pub(super) editors: Arc<Semaphore>,
    /// Places for files of the instance's reports that are being sent.
    pub(super) sending: Arc<Semaphore>,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            instances: Arc::default(),
            base: Arc::default(),
            hosts: Arc::default(),
            gate: Arc::default(),
            state: None,
            tokens: None,
            keys: Keys::default(),
            sources: Arc::default(),
            meters: Meters::default(),
            #[cfg(feature = "pgwire")]
            sessions: Sessions::default(),
            stopping: CancellationToken::new(),
            #[cfg(feature = "mcp")]
            has_assistants: false,
            #[cfg(feature = "mcp")]
            issuer: None,
        }
    }
}

impl Service {
    /// Creates a service without instances.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an instance under a name.
    #[must_use]
    pub fn with(self, name: impl Into<String>, instance: impl Into<Arc<Instance>>) -> Self {
        self.put(name, instance);
        self
    }

    /// Sets the path prefix, which links and addresses include.
    #[must_use]
    pub fn below(mut self, base: &str) -> Self {
        self.base = base.trim_end_matches('/').into();
        self
    }

    /// Sets the host names under which the service is reached, besides loopback.
    #[must_use]
    pub fn known_as(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts = hosts.into_iter().collect();
        self
    }

    /// Sets the limits on what callers may use, now or while the service answers. Rates begin anew.
    ///
    /// A [`Door`](super::Door), which bounds heads and connections, has limits of its own.
    pub fn set_limits(&self, limits: Limits) {
        self.gate.set(limits);
    }

    /// Returns the limits on what callers may use.
    pub fn limits(&self) -> Limits {
        self.gate.limits()
    }

    /// Sets the state, in which the audit log and the answers to calls with an idempotency key are kept. Without a state there
    /// is no audit log, and such answers are kept until the process ends.
    #[must_use]
    pub fn keeping(mut self, state: Arc<State>) -> Self {
        self.state = Some(state);
        self
    }

    /// Sets the tokens that admins list, make and revoke. Who is let in by them decides the routes' [`Identify`].
    ///
    /// [`Identify`]: super::Identify
    #[must_use]
    pub fn with_tokens(mut self, tokens: Arc<Tokens>) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Lets assistants in, at `/mcp`.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn with_assistants(self, has_assistants: bool) -> Self {
        Self {
            has_assistants,
            ..self
        }
    }

    /// Sets the issuer of the provider at which people sign in, to which clients of assistants are sent.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn signed_in_at(self, issuer: &str) -> Self {
        Self {
            issuer: Some(issuer.into()),
            ..self
        }
    }

    /// Returns the issuer to which clients of assistants are sent; none if nobody signs in or no assistant is let in.
    #[cfg(feature = "mcp")]
    pub(super) fn issuer(&self) -> Option<&str> {
        self.issuer.as_deref().filter(|_| self.has_assistants)
    }

    /// Returns true if assistants are let in.
    #[cfg(feature = "mcp")]
    pub(super) fn has_assistants(&self) -> bool {
        self.has_assistants
    }

    /// Adds an instance, or replaces the instance of this name.
    pub fn put(&self, name: impl Into<String>, instance: impl Into<Arc<Instance>>) {
        let instance = instance.into();
        files::remove_leftovers(&instance);
        // One journal of requests, whoever else serves the instance.
        let opened = || Requests::open(&instance, Arc::clone(&self.gate));
        let requests = instance.common(opened);
        let calls = TaskTracker::new();
        let open = Open {
            instance,
            requests,
            texts: Texts::default(),
            editors: Arc::new(Semaphore::new(MOST_EDITORS)),
            sending: Arc::new(Semaphore::new(MOST_SENT)),
            ending: self.stopping.child_token(),
            _call: calls.token(),
            calls,
        };
        self.set(name.into(), Served::Open(open));
    }

    /// Removes an instance. Its streams end, and for new calls it does not exist. The result waits until the calls that are
    /// under way have ended; the instance may be closed then.
    pub fn remove(&self, name: &str) -> impl Future<Output = ()> + Send + 'static + use<> {
        ended(self.instances.write().unpoisoned().remove(name))
    }

    /// Withdraws an instance that will be opened anew, as [`remove`](Self::remove) does; new calls are told to ask again.
    pub fn withdraw(&self, name: &str) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut instances = self.instances.write().unpoisoned();
        ended(instances.insert(name.to_owned(), Served::Opening))
    }

    /// Sets the source of an instance's files. Callers can't write the files then, and may have them fetched anew.
    pub fn set_source(&self, name: impl Into<String>, source: impl Source) {
        self.sources
            .write()
            .unpoisoned()
            .insert(name.into(), Arc::new(source));
    }

    /// Removes the source of an instance's files, which are those of a folder from now on.
    pub fn remove_source(&self, name: &str) {
        self.sources.write().unpoisoned().remove(name);
    }

    /// Returns the source of an instance's files; none if they are those of a folder.
    pub(super) fn source(&self, name: &str) -> Option<Arc<dyn Source>> {
        self.sources.read().unpoisoned().get(name).cloned()
    }

    /// Announces an instance that is being opened. The service is not ready before that has succeeded or failed.
    pub fn put_opening(&self, name: impl Into<String>) {
        self.set(name.into(), Served::Opening);
    }

    /// Records that an instance could not be opened; its calls are answered with the problem.
    pub fn put_failed(&self, name: impl Into<String>, problem: Problem) {
        self.set(name.into(), Served::Failed(problem));
    }

    fn set(&self, name: String, served: Served) {
        self.instances.write().unpoisoned().insert(name, served);
    }

    /// Ends all streams, before the service stops.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Returns the token that is cancelled when the service is about to stop.
    pub(super) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Returns the path prefix of the API.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Returns the configured host names.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns the counts of what passed the limits, for a [`Door`](super::Door).
    pub fn counts(&self) -> Counts {
        self.gate.passed().clone()
    }

    /// Returns the meters of the API.
    pub(super) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// Returns the sessions of SQL clients.
    #[cfg(feature = "pgwire")]
    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the limits with what is in use.
    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns the state of the service; none if the service keeps none.
    pub(super) fn state(&self) -> Option<&Arc<State>> {
        self.state.as_ref()
    }

    /// Returns the tokens of the service; none if it has no tokens of its own.
    pub(super) fn tokens(&self) -> Option<&Arc<Tokens>> {
        self.tokens.as_ref()
    }

    /// Returns the idempotency keys that the process works on.
    pub(super) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the caller's access to an instance, whether or not the instance is open.
    ///
    /// # Errors
    /// `unknown-name`, the same for an instance that does not exist and for one on which the caller has no role. Only
    /// names that the caller may know are suggested.
    pub(super) fn grant(&self, caller: &Caller, name: &str) -> Result<Grant, Problem> {
        let instances = self.instances.read().unpoisoned();
        let own = instances
            .keys()
            .map(String::as_str)
            .filter(|name| caller.on(name).is_some());
        let grant = caller.on(name).filter(|_| instances.contains_key(name));
        grant.ok_or_else(|| {
            let unknown = Problem::new(Code::UnknownName, format!("there is no instance `{name}`"));
            match hints::nearest(name, own) {
                Some(near) => unknown.hint(format!("did you mean `{near}`?")),
                None => unknown,
            }
        })
    }

    /// Refuses a change of an instance's files by anybody but the user who started the service, where files may run
    /// programs and the operator has not allowed it. The caller's role is checked before.
    ///
    /// # Errors
    /// `owned-by-git`, `remote-edit-off`, and those of an instance that is not open.
    pub fn allows_edit(&self, instance: &str, caller: &Caller) -> Result<(), Problem> {
        let open = self.find(instance)?;
        if self.source(instance).is_some() {
            let message = format!("the files of `{instance}` come from git, and are changed there");
            return Err(Problem::new(Code::OwnedByGit, message)
                .hint("push a commit to the repository, then call `checkout`"));
        }
        if caller.is_of_machine() || open.instance.allows_remote_edit() {
            return Ok(());
        }
        let message =
            format!("files of `{instance}` may run programs: only the service's own user changes them");
        Err(Problem::new(Code::RemoteEditOff, message)
            .hint("the operator can allow it by `remote_edit: true` in the configuration"))
    }

    /// Finds an open instance by name.
    ///
    /// # Errors
    /// `unknown-name`, `unavailable` while it is being opened, and the reason of one that could not be.
    pub(super) fn find(&self, name: &str) -> Result<Open, Problem> {
        let instances = self.instances.read().unpoisoned();
        match instances.get(name) {
            Some(Served::Open(open)) => Ok(open.clone()),
            Some(Served::Opening) => Err(opening(name)),
            Some(Served::Failed(problem)) => Err(problem.clone()),
            None => Err(Problem::new(
                Code::UnknownName,
                format!("there is no instance `{name}`"),
            )),
        }
    }

    /// Returns all instances, by name.
    pub(super) fn all(&self) -> Vec<(String, Served)> {
        let instances = self.instances.read().unpoisoned();
        let all = instances.iter();
        all.map(|(name, served)| (name.clone(), served.clone())).collect()
    }

    /// Returns the documents of the instances on which the caller has a role.
    pub(super) async fn entries(&self, caller: &Caller) -> Vec<InstanceEntry> {
        let mut entries = Vec::new();
        for (name, served) in self.all() {
            let Some(visibility) = caller.on(&name).map(Visibility::of) else {
                continue;
            };
            let closed = |problem: Problem| InstanceEntry {
                name: name.clone(),
                project: None,
                environment: None,
                trust: None,
                health: None,
                problem: Some(ProblemDocument::new(visibility.problem(problem), &self.base)),
            };
            entries.push(match served {
                Served::Open(open) => InstanceEntry {
                    name,
                    project: Some(open.instance.project.name.clone()),
                    environment: Some(open.instance.project.environment.clone()),
                    trust: Some(open.instance.trust()),
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

/// Ends the streams on an instance that the service does not have any more, and waits for the calls that are under way.
fn ended(served: Option<Served>) -> impl Future<Output = ()> + Send + 'static {
    let calls = match served {
        Some(Served::Open(open)) => {
            open.ending.cancel();
            open.calls.close();
            Some(open.calls.clone())
        }
        _ => None,
    };
    async move {
        if let Some(calls) = calls {
            calls.wait().await;
        }
    }
}

fn opening(name: &str) -> Problem {
    Problem::new(
        Code::Unavailable,
        format!("the instance `{name}` is being opened"),
    )
    .hint("ask again in a moment")
}

/// Returns the worst health among an instance's visible resources.
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
