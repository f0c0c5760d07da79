//! `lsp`: a language server on standard input and output.
//!
//! It reads the project's files and looks at the catalog as every other command that looks; it owns nothing, so it works
//! beside `start` and beside other editors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;
use watershed_api::{Exit, Reply, Request};
use watershed_compilers::{FileEvent, Project, SqlParser};
use watershed_drivers::regular;
use watershed_drivers::watch::{Anew, ChangedPaths, Subscription, Tree, WatchError, Watcher};
use watershed_lsp::{Facts, Frames, Handle, Host, Redactor, Server};
use watershed_outputs::sql_parser::EngineParser;
use watershed_reconcilers::project_parser::folder::{Folder, is_ignored, is_project_file};
use watershed_reconcilers::project_parser::touched::Scope;

use super::args::{Lsp, Shared};
use super::failure::Failure;
use super::project::{Location, is_project};
use super::session::{self, Purpose, Session};
use watershed::program::editor::{self, LatestFacts};
use watershed::program::{AtRest, Hold};
use watershed::socket::Service as _;

/// The interval at which files that can't be watched are listed.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The time for which changed paths are gathered, so that those of one save are reported together.
const GATHERING: Duration = Duration::from_millis(50);
/// Largest parse cache that is read, in bytes: more than that of the largest project.
const LARGEST_CACHE: usize = 256 << 20;

/// Runs the command `lsp`.
pub(super) fn run(shared: &Shared, _: &Lsp) -> Result<Exit, Failure> {
    let runtime = super::runtime()?;
    let threads = runtime.handle().clone();
    let given = shared.dir.clone();
    let shared = shared.clone();
    let opener = Box::new(move |place: &Path, handle: Handle| {
        let root = place.ancestors().find(|folder| is_project(folder))?;
        let opened = OnDisk::open(&shared, root, handle, &threads);
        let opened = opened.inspect_err(|failure| {
            tracing::error!(error = failure.message(), "the project can't be opened");
        });
        Some(Box::new(opened.ok()?) as Box<dyn Host>)
    });
    let served = Frames::read(std::io::stdin()).map_err(|error| Failure {
        exit: Exit::NotNow,
        error: anyhow::Error::new(error).context("can't read standard input"),
        hint: None,
    });
    let served = served.and_then(|input| {
        let served = runtime.block_on(Server::new(opener, given).run(input, std::io::stdout()));
        served.map_err(|error| Failure {
            exit: Exit::NotNow,
            error: error.into(),
            hint: Some("`watershed lsp` is for editors, which speak the Language Server Protocol".to_owned()),
        })
    });
    runtime.shutdown_timeout(super::LEFT_OVER);
    served.map(|()| Exit::Converged)
}

/// The folder of a project, its compiler and its watch, for the language server.
struct OnDisk {
    location: Location,
    options: watershed::Options,
    folder: Folder,
    parser: EngineParser,
    outputs: Arc<Outputs>,
    latest: LatestFacts,
    threads: tokio::runtime::Handle,
    watching: AbortHandle,
}

impl OnDisk {
    fn open(
        shared: &Shared,
        root: &Path,
        handle: Handle,
        threads: &tokio::runtime::Handle,
    ) -> Result<Self, Failure> {
        let location = Location::find(shared, Some(root))?;
        let options = super::options(shared, &location);
        let sandbox = watershed::program::sandbox(&options, &location.state);
        let watching = threads.spawn(watch(location.root.clone(), handle)).abort_handle();
        let outputs = Arc::new(Outputs {
            location: location.clone(),
            options: options.clone(),
        });
        let latest = LatestFacts::default();
        latest.renew(threads, || look(Arc::clone(&outputs)));
        Ok(Self {
            folder: Folder::confined(sandbox),
            parser: EngineParser::default(),
            location,
            options,
            outputs,
            latest,
            threads: threads.clone(),
            watching,
        })
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Host for OnDisk {
    fn root(&self) -> &Path {
        &self.location.root
    }

    fn options(&self) -> watershed_compilers::Options {
        watershed::program::compiler_options(&self.options)
    }

    fn look(&mut self, paths: Option<&BTreeSet<String>>) -> Result<Vec<FileEvent>, String> {
        let scope = match paths {
            Some(paths) => Scope::paths(paths.iter().map(String::as_str)),
            None => Scope::Everything,
        };
        let looked = self.folder.look(&self.location.root, &scope);
        looked.map_err(|error| watershed::program::chain(&error))
    }

    fn learned(&self) -> Option<Vec<u8>> {
        regular::read(&self.location.state.parse_cache(), LARGEST_CACHE).ok()
    }

    fn redactor(&self, project: &Project) -> Redactor {
        let secrets = watershed::program::secrets_of_files(project);
        Box::new(move |text| secrets.redact(text).into_owned())
    }

    fn parser(&self) -> &dyn SqlParser {
        &self.parser
    }

    fn facts(&self) -> Arc<Facts> {
        self.latest
            .renew(&self.threads, || look(Arc::clone(&self.outputs)));
        self.latest.get()
    }
}

/// The outputs of a project, whoever runs it.
struct Outputs {
    location: Location,
    options: watershed::Options,
}

/// Reads the facts about a project's outputs; none if nobody can be asked at once.
async fn look(outputs: Arc<Outputs>) -> Option<Facts> {
    outputs.look().await
}

impl Outputs {
    async fn look(&self) -> Option<Facts> {
        if !self.location.state.exists() {
            return Some(Facts::default());
        }
        let mut facts = Facts::default();
        for question in editor::questions() {
            self.ask(question, |reply| editor::hear(&mut facts, reply))
                .await?;
        }
        Some(facts)
    }

    /// Asks the owner of the folder, or answers here while nobody owns it; does nothing if neither is possible at once.
    async fn ask(&self, request: Request, mut hear: impl FnMut(Reply)) -> Option<()> {
        let session = Session::open(&self.location, Purpose::Look, Some(Duration::ZERO)).await;
        let mut is_answered = false;
        let mut hear = |reply: Reply| {
            is_answered |= matches!(reply, Reply::Done(_));
            hear(reply);
        };
        match session.ok()? {
            Session::There(connection) => {
                let mut replies = connection.ask(&request).await;
                while let Some(reply) = replies.recv().await {
                    hear(reply);
                }
            }
            Session::Here(lock) => {
                let options = self.options.clone();
                let folder = AtRest::new(options, self.location.state.clone(), Hold::Locked(lock));
                let (working, mut replies) =
                    session::spawn(|replies| async move { folder.serve(request, replies).await });
                while let Some(reply) = replies.recv().await {
                    hear(reply);
                }
                let _ = working.await;
            }
        }
        is_answered.then_some(())
    }
}

/// Reports changed files to the server. Files that can't be watched are looked at now and then.
async fn watch(root: PathBuf, handle: Handle) {
    let watched = match Watcher::new() {
        Ok(watcher) => follow(watcher.subscribe(), &root, None).await,
        Err(error) => Err(error),
    };
    let mut subscription = match watched {
        Ok(subscription) => subscription,
        Err(error) => return look_now_and_then(&error, &handle).await,
    };
    // What changed before the folders were watched.
    handle.changed(None);
    loop {
        let mut seen = subscription.next().await;
        tokio::time::sleep(GATHERING).await;
        // Whatever came meanwhile: there is at least what was taken.
        if let Ok(more) = tokio::time::timeout(Duration::ZERO, subscription.next()).await {
            seen.extend(more);
        }
        let paths = relevant_paths(&root, &seen);
        if seen.lost || !paths.is_empty() {
            handle.changed((!seen.lost).then_some(paths));
        }
        subscription = match follow(subscription, &root, Some(seen)).await {
            Ok(subscription) => subscription,
            Err(error) => return look_now_and_then(&error, &handle).await,
        };
    }
}

async fn look_now_and_then(error: &WatchError, handle: &Handle) {
    tracing::warn!(
        error = watershed::program::chain(error),
        "folders can't be watched"
    );
    loop {
        handle.changed(None);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Changes the watched folders to those of the project now, on a thread for blocking work.
async fn follow(
    mut subscription: Subscription,
    root: &Path,
    seen: Option<ChangedPaths>,
) -> Result<Subscription, WatchError> {
    let tree = Tree {
        ignored: |name| is_ignored(Some(name)),
        ..Tree::whole(root)
    };
    let following = tokio::task::spawn_blocking(move || {
        let touched = seen.filter(|seen| !seen.lost).map(|seen| seen.paths);
        let anew = touched.as_ref().map_or(Anew::All, Anew::Below);
        subscription.follow(&[tree], anew).map(|()| subscription)
    });
    match following.await {
        Ok(followed) => followed,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The program ends.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Returns the changed paths that may be project files, as the compiler names them.
fn relevant_paths(root: &Path, seen: &ChangedPaths) -> BTreeSet<String> {
    let below = seen.paths.iter().filter_map(|path| {
        let below = path.strip_prefix(root).ok()?;
        let first = below.iter().next().and_then(|name| name.to_str());
        // What has no extension may have been a folder.
        let may_count = is_project_file(path) || path.extension().is_none() || path.is_dir();
        let parts = below.iter().map(|part| part.to_string_lossy());
        (may_count && !is_ignored(first)).then(|| parts.collect::<Vec<_>>().join("/"))
    });
    below.filter(|path| !path.is_empty()).collect()
}
