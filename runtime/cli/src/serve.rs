//! The command `serve`: keeps many projects converged in one process, and serves them over HTTP.

mod configuration;
mod confinement;
mod git;
mod masking;
mod network;
mod people;
mod registry;
mod reload;
mod tokens;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use watershed::http::{Bearers, ExportLinks, Service, State, Tokens};
use watershed::program::{Stop, chain, forget_early_end, log_runs, state_problem};
use watershed::{Files, Instance, MemoryShare, Options, Runtime, Slots};
use watershed_api::{Code, Exit, Problem};
use watershed_callers::state::StateError;
use watershed_compilers::configuration::Trust;
use watershed_outside::http::Egress;

use self::configuration::Served;
use self::confinement::Confinement;
use self::git::Repository;
use self::people::{Chain, People, Seen};
use self::reload::Reload;
use super::args::{Format, Serve, Shared};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::listen::{Gate, Listening, Place};
use super::{memory, session, signals};
use watershed::socket::Listener;

/// Name of the file of the service's state.
const STATE: &str = "service.db";
/// Delay before a project that failed to open is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// The time that calls of an instance have to end before it is closed.
const CALLS_WITHIN: Duration = Duration::from_secs(30);

/// Runs the command `serve`.
pub(super) fn serve(console: &mut Console, shared: &Shared, args: &Serve) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    refuse_options_of_one(shared)?;
    let Some(file) = &args.config else {
        let hint =
            "name a file: `watershed serve -c FILE`; for one project there is `watershed start --listen`";
        return Err(Failure::usage("a service needs a configuration").hint(hint));
    };
    let mut checked = match configuration::check(console, file, args.check, format)? {
        Some(checked) => checked,
        None => return Ok(Exit::Usage),
    };
    if args.check {
        if checked.has_warnings {
            return Ok(Exit::Converged);
        }
        note_check(console, file, checked.instances.len());
        return Ok(Exit::Converged);
    }
    let mut place = Place::new(
        checked.network.clone(),
        &checked.base,
        &checked.hosts,
        &args.reached,
    )?;
    if checked.tokens.is_some() && args.reached.auth.is_some() {
        let message = "`--auth` says that one person is let in, and the configuration's `auth` that callers have tokens";
        return Err(Failure::usage(message).hint("leave one of them out"));
    }
    // From here on relative paths lead nowhere.
    let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
    let confinement = Confinement::begin(checked.instances.iter().map(|served| served.project.as_path()))?;
    let slots = Slots::new(jobs(shared));
    let egress = checked.egress.clone();
    let weights = AtomicU64::new(weights_of(&checked.instances));
    let options = |served: &Served| {
        let (weight, of) = (served.weight, weights.load(Ordering::Relaxed));
        Options {
            working_folder: Some(confinement.folder.clone()),
            share: Some(slots.share(weight)),
            memory_share: Some(MemoryShare { weight, of }),
            ..options(shared, served, &egress)
        }
    };
    super::block_on(async {
        let stop = Stop::default();
        signals::stop_on_signals_but_hangup(stop.clone())?;
        let mut reload = Reload::new(file, &checked)?;
        let mut service = place.service().with_assistants(checked.mcp);
        service.set_limits(checked.limits);
        let mut runtime = console.runtime.clone();
        if let Some(folder) = &checked.state {
            let state = Arc::new(open_state(folder).await?);
            service = service.keeping(Arc::clone(&state));
            let people = match checked.people.take() {
                Some(people) => {
                    if let Some(issuer) = people.issuer() {
                        service = service.signed_in_at(issuer);
                    }
                    runtime = runtime.with_directory(Seen(Arc::clone(&state)));
                    let opened = People::new(people, Arc::clone(&state), &place.base).await;
                    Some(Arc::new(opened.map_err(|error| state_failure(folder, error))?))
                }
                None => None,
            };
            if let Some(of_file) = checked.tokens.clone() {
                let opened = Tokens::open(state, of_file).await;
                let tokens = Arc::new(opened.map_err(|error| state_failure(folder, error))?);
                let chain = Chain::new(Bearers::new(Arc::clone(&tokens)), people.clone());
                place.gate = Some(Gate(Arc::new(move |service| chain.routes(service))));
                (reload.tokens, reload.people) = (Some(Arc::clone(&tokens)), people);
                service = service.with_tokens(tokens);
            }
        }
        for served in &checked.instances {
            // Before the first answer.
            service.put_opening(&served.name);
        }
        let listening = Listening::begin(console, &place, service.clone(), &stop).await?;
        let (page_of, address) = (listening.pages(), listening.known_address());
        let closing = closed_after(stop.clone(), listening);
        let keeping = Keeping {
            runtime,
            service,
            closing,
            opening: Arc::new(Semaphore::new(2 * cores())),
            options: &options,
            page_of: &page_of,
            address: address.as_deref(),
            kept: BTreeMap::new(),
            weights: &weights,
        };
        keeping.keep_all(console, &checked.instances, reload).await;
        Ok(stop.exit().unwrap_or(Exit::Interrupted))
    })
}

/// Returns the token of the end of all instances. Requests that are under way end before what they ask is closed.
fn closed_after(stop: Stop, listening: Listening) -> CancellationToken {
    let closing = CancellationToken::new();
    let token = closing.clone();
    tokio::spawn(async move {
        stop.asked().await;
        listening.end().await;
        closing.cancel();
    });
    token
}

/// Says that a configuration has no mistake.
fn note_check(console: &mut Console, file: &Path, number: usize) {
    let projects = if number == 1 { "project" } else { "projects" };
    let file = file.display();
    console.note(&format!("{file} is as it should be: {number} {projects}\n"));
}

/// Opens the state of the service, in a folder of its own.
async fn open_state(folder: &Path) -> Result<State, Failure> {
    let mut making = std::fs::DirBuilder::new();
    making.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut making, 0o700);
    making.create(folder).map_err(|error| Failure {
        exit: Exit::StateFolder,
        error: anyhow::Error::new(error).context(format!("can't make the folder `{}`", folder.display())),
        hint: Some("name another folder by `state` in the configuration".to_owned()),
    })?;
    let opened = State::open(&folder.join(STATE)).await;
    opened.map_err(|error| state_failure(folder, error))
}

fn state_failure(folder: &Path, error: StateError) -> Failure {
    let (exit, hint) = match error {
        StateError::InUse { .. } => (
            Exit::NotNow,
            "end the other service, or name another folder by `state`",
        ),
        StateError::Newer { .. } => (Exit::StateFolder, "run the newer version again"),
        _ => (
            Exit::StateFolder,
            "look at the folder's disk and owner, or restore it from a backup",
        ),
    };
    Failure {
        exit,
        error: anyhow::Error::new(error).context(format!("can't open the state in `{}`", folder.display())),
        hint: Some(hint.to_owned()),
    }
}

/// Refuses options that apply to a single project.
fn refuse_options_of_one(shared: &Shared) -> Result<(), Failure> {
    let given = [
        (shared.dir.is_some(), "--project", "project"),
        (shared.environment != "dev", "--environment", "environment"),
        (!shared.variables.is_empty(), "--env", "env_file"),
        (shared.state_dir.is_some(), "--state-dir", "project"),
        (shared.sandbox, "--sandbox", "trust"),
        (shared.sample.is_some(), "--sample", "environment"),
    ];
    match given.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, key)) => {
            let message = format!("`{option}` is about one project, and a service may have many");
            Err(Failure::usage(message).hint(format!("say `{key}` of each in the configuration")))
        }
        None => Ok(()),
    }
}

/// A change of an instance's state.
enum News {
    Open(String),
    Failed(String, Problem),
}

impl News {
    fn tell(self, console: &mut Console) {
        match self {
            Self::Open(name) => console.note(&format!("{name}: open\n")),
            Self::Failed(name, problem) => {
                console.say(&format!("{name}: failed: {}\n", problem.message));
                if let Some(hint) = problem.hint {
                    console.say(&format!("  hint: {hint}\n"));
                }
            }
        }
    }
}

/// Returns the number of cores. Opening reads files and a catalog: more at once than cores wait for each other.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get)
}

/// The instances that the program keeps open.
struct Keeping<'a> {
    runtime: Runtime,
    service: Service,
    /// Token that is cancelled when all instances must be closed.
    closing: CancellationToken,
    opening: Arc<Semaphore>,
    options: &'a dyn Fn(&Served) -> Options,
    /// The sum of the weights of the instances that the configuration has.
    weights: &'a AtomicU64,
    page_of: &'a (dyn Fn(&str) -> String + Sync),
    /// Address of the service for receivers of reports; none if others do not reach the service.
    address: Option<&'a str>,
    /// Instances that are kept or being closed, by name.
    kept: BTreeMap<String, Kept>,
}

/// An instance that is kept.
struct Kept {
    /// The instance as the configuration has it.
    served: Served,
    /// Token that is cancelled when the instance must be closed.
    closing: CancellationToken,
    /// The instance as it is opened once this one is closed; none if it is removed then.
    next: Option<Served>,
    is_leaving: bool,
}

/// The end of the task that keeps an instance, under its name.
type Ended = (String, Result<(), tokio::task::JoinError>);

impl Keeping<'_> {
    /// Keeps all instances open until the program stops, and closes them in time.
    async fn keep_all(mut self, console: &mut Console, instances: &[Served], mut reload: Reload) {
        let (tell, mut news) = tokio::sync::mpsc::channel(16);
        let mut tasks = FuturesUnordered::new();
        for served in instances {
            tasks.push(self.begin(served.clone(), &tell));
        }
        loop {
            // All are cancel-safe: what was not taken stays.
            tokio::select! {
                Some(told) = news.recv() => told.tell(console),
                () = reload.asked() => if let Some(instances) = reload.read(console, &self.service) {
                    for served in self.change(console, instances) {
                        tasks.push(self.begin(served, &tell));
                    }
                },
                ended = tasks.next() => match ended {
                    Some(ended) => if let Some(served) = self.end(console, ended) {
                        tasks.push(self.begin(served, &tell));
                    },
                    None => break,
                },
            }
        }
        while let Ok(told) = news.try_recv() {
            told.tell(console);
        }
    }

    /// Begins to keep an instance.
    fn begin(&mut self, served: Served, tell: &tokio::sync::mpsc::Sender<News>) -> BoxFuture<'static, Ended> {
        let name = served.name.clone();
        self.service.put_opening(&name);
        let closing = self.closing.child_token();
        let options = (self.options)(&served);
        let repository = served
            .git
            .as_ref()
            .map(|origin| Repository::new(origin.clone(), served.project.clone()));
        match &repository {
            Some(repository) => self.service.set_source(&name, repository.clone()),
            None => self.service.remove_source(&name),
        }
        let keeper = Keeper {
            runtime: linking(&self.runtime, &options, &name, self.address),
            options,
            page: (self.page_of)(&name),
            name: name.clone(),
            repository,
            service: self.service.clone(),
            closing: closing.clone(),
            opening: Arc::clone(&self.opening),
            tell: tell.clone(),
        };
        let kept = Kept {
            served,
            closing,
            next: None,
            is_leaving: false,
        };
        self.kept.insert(name.clone(), kept);
        let task = tokio::spawn(keeper.keep());
        Box::pin(async move { (name, task.await) })
    }

    /// Lets instances go that the configuration has no more or has otherwise, and returns the instances to begin.
    fn change(&mut self, console: &mut Console, instances: Vec<Served>) -> Vec<Served> {
        self.weights.store(weights_of(&instances), Ordering::Relaxed);
        let mut wanted: BTreeMap<String, Served> = instances
            .into_iter()
            .map(|served| (served.name.clone(), served))
            .collect();
        for (name, kept) in &mut self.kept {
            let next = wanted.remove(name);
            if !kept.is_leaving && next.as_ref() == Some(&kept.served) {
                continue;
            }
            console.say(&match &next {
                None => format!("{name}: removed\n"),
                Some(_) => format!("{name}: closed, to be opened as the configuration has it now\n"),
            });
            let drained: BoxFuture<'static, ()> = match &next {
                None => Box::pin(self.service.remove(name)),
                Some(_) => Box::pin(self.service.withdraw(name)),
            };
            kept.next = next;
            if !std::mem::replace(&mut kept.is_leaving, true) {
                let closing = kept.closing.clone();
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(CALLS_WITHIN, drained).await;
                    closing.cancel();
                });
            }
        }
        wanted.into_values().collect()
    }

    /// Notes that an instance is kept no more, and returns the instance that follows under its name.
    fn end(&mut self, console: &mut Console, (name, ended): Ended) -> Option<Served> {
        let kept = self.kept.remove(&name)?;
        if let Err(panic) = ended {
            console.say(&format!(
                "{name}: served no more, by a defect of the program: {panic}\n"
            ));
            let problem = Problem::new(Code::Defect, "the instance has failed by a defect of the program");
            self.service.put_failed(&name, problem);
        }
        if kept.is_leaving && kept.next.is_none() {
            // It may have been opened since it was removed.
            drop(self.service.remove(&name));
        }
        kept.next.filter(|_| !self.closing.is_cancelled())
    }
}

/// Returns the runtime of an instance, whose reports have links to their files if others reach the service.
fn linking(runtime: &Runtime, options: &Options, name: &str, address: Option<&str>) -> Runtime {
    let links = address.and_then(|address| ExportLinks::new(options, name, address).ok());
    match links {
        Some(links) => runtime.clone().with_links(links),
        None => runtime.clone(),
    }
}

/// Returns the largest number of builds that run at once, in all instances together.
fn jobs(shared: &Shared) -> NonZeroUsize {
    // A build that commits waits for the disk, and another one has its core meanwhile.
    let usual = || NonZeroUsize::MIN.saturating_add(cores()).saturating_add(1);
    shared.jobs.map_or_else(usual, super::values::Limit::get)
}

/// Returns the sum of the weights of instances.
fn weights_of(instances: &[Served]) -> u64 {
    instances
        .iter()
        .map(|served| u64::from(served.weight.get()))
        .sum()
}

/// Returns the options for opening a project's instance.
fn options(shared: &Shared, served: &Served, egress: &Egress) -> Options {
    let whole = |folder: &PathBuf| std::path::absolute(folder).unwrap_or(folder.clone());
    Options {
        environment: served.environment.clone(),
        variables: served.variables.clone(),
        jobs: shared.jobs.map(super::values::Limit::get),
        engine_threads: shared.engine_threads.map(super::values::Limit::get),
        memory_limit: shared.memory_limit.map(|size| size.0),
        extensions: shared.extensions.as_ref().map(whole),
        sandbox: served.trust == Trust::Sandbox,
        reach: served.reach.clone(),
        loads: served.extensions.clone(),
        // Fetched files are swapped as a whole, and what is built from them stays.
        state_dir: served.git.as_ref().map(|origin| origin.folder.join("state")),
        remote_edit: served.remote_edit,
        egress: egress.clone(),
        installs: !shared.no_extension_install,
        files: Files::Watched,
        // A program that looks at the tables closes them again, and nobody waits for this process to end.
        engine_patience: Duration::MAX,
        shim: std::env::current_exe().unwrap_or_else(|_| Options::new("").shim),
        ..Options::new(&served.project)
    }
}

/// The task that keeps one instance open: retries a failed opening, and reopens an instance that has lost its state.
struct Keeper {
    runtime: Runtime,
    options: Options,
    name: String,
    /// Repository of the instance; none if its files are those of a folder.
    repository: Option<Repository>,
    /// URL of the instance's console page.
    page: String,
    service: Service,
    /// Token that is cancelled when instances must be closed.
    closing: CancellationToken,
    opening: Arc<Semaphore>,
    tell: tokio::sync::mpsc::Sender<News>,
}

impl Keeper {
    async fn keep(self) {
        let mut last = None;
        loop {
            let opened = tokio::select! {
                biased;
                () = self.closing.cancelled() => return,
                opened = self.open() => opened,
            };
            let problem = match opened {
                Ok((instance, listener)) => {
                    last = None;
                    instance.answers_at(self.page.clone());
                    self.service.put(&self.name, Arc::clone(&instance));
                    self.say(News::Open(self.name.clone())).await;
                    match self.stay(&instance, listener).await {
                        Some(problem) => problem,
                        None => return,
                    }
                }
                Err(problem) => problem,
            };
            self.service
                .put_failed(&self.name, self.without_folder(problem.clone()));
            // Said once, however often it is tried again.
            if last.as_ref() != Some(&problem) {
                self.say(News::Failed(self.name.clone(), problem.clone())).await;
            }
            last = Some(problem);
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(AGAIN) => {}
            }
        }
    }

    /// Replaces the path of the project's folder in a problem by the instance's name, for HTTP responses.
    fn without_folder(&self, mut problem: Problem) -> Problem {
        let root = self.options.root.display().to_string();
        problem.message = problem.message.replace(&root, &self.name);
        let hint = problem.hint.map(|hint| hint.as_str().replace(&root, &self.name));
        problem.hint = hint.map(Into::into);
        problem
    }

    async fn say(&self, news: News) {
        // Nobody reads when the program ends.
        let _ = self.tell.send(news).await;
    }

    async fn open(&self) -> Result<(Arc<Instance>, Option<Listener>), Problem> {
        // Never closed.
        let _permit = self.opening.acquire().await;
        let root = &self.options.root;
        if let Some(repository) = &self.repository {
            repository.begin().await?;
        }
        if !super::project::is_project(root) {
            let message = format!("no project in `{}`: it has no `watershed.yaml`", root.display());
            return Err(
                Problem::new(Code::Unavailable, message).hint("the folder is tried again every few seconds")
            );
        }
        let working_folder = self.options.working_folder.as_ref();
        if working_folder.is_some_and(|folder| folder.path().starts_with(root)) {
            let message = format!(
                "the folder for temporary files lies in the project `{}`",
                root.display()
            );
            return Err(Problem::new(Code::Unavailable, message)
                .hint("name another folder for temporary files in `TMPDIR`, and start the service again"));
        }
        let state = self
            .options
            .state_folder()
            .map_err(|error| state_problem(&error))?;
        let refused = self.options.refuse_links(&state);
        refused.map_err(|error| state_problem(&error))?;
        let lock = state.try_own().map_err(|error| state_problem(&error))?;
        let held = || {
            let message = format!(
                "the state folder `{}` is used by another process",
                state.path().display()
            );
            Problem::new(Code::HeldElsewhere, message)
                .hint("end that process: it is tried again every few seconds")
        };
        let lock = lock.ok_or_else(held)?;
        session::open_instance(&self.runtime, &state, self.options.clone(), lock).await
    }

    /// Keeps an instance open until the program stops or the instance fails; returns the failure.
    async fn stay(&self, instance: &Arc<Instance>, listener: Option<Listener>) -> Option<Problem> {
        let state = self.options.state_folder().ok()?;
        forget_early_end(&state.path());
        let sharing = tokio::spawn({
            let instance = Arc::clone(instance);
            async move { instance.share_file().await }
        });
        let mut frugal = tokio::spawn(memory::give_back_after_work(Arc::clone(instance)));
        let logging = tokio::spawn({
            let instance = Arc::clone(instance);
            async move { log_runs(&instance).await }
        });
        let why = tokio::select! {
            biased;
            () = self.closing.cancelled() => None,
            () = instance.lost() => Some("the state folder was removed"),
            // It goes on for as long as the controller does.
            _ = &mut frugal => Some("the work has ended early: the disk may be full"),
        };
        if let Some(why) = why {
            self.service
                .put_failed(&self.name, Problem::new(Code::Unavailable, why));
        }
        for beside in [sharing, logging, frugal] {
            beside.abort();
            if !beside.is_finished() {
                // It holds the instance, and with that the state folder.
                let _ = beside.await;
            }
        }
        if let Err(problem) = session::close_instance(instance, listener, &state).await {
            tracing::warn!(
                instance = self.name,
                error = chain(&problem),
                "an instance did not close in order"
            );
        }
        why.map(|why| Problem::new(Code::Unavailable, why))
    }
}
