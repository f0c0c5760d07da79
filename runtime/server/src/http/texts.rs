//! Unsaved texts, compiled over the files of a project. Nothing is stored, and the running project is not touched.
//!
//! The project is compiled once more for this, on the first call, and from then on only what differs. A compilation that
//! nobody uses is dropped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::AbortHandle;
use watershed_api::http::{DiagnosticsDocument, FileTexts};
use watershed_api::{Code, Problem};
use watershed_compilers::{FileEvent, Project};
use watershed_drivers::regular;
use watershed_locks::Unpoisoned as _;
use watershed_outputs::sql_parser::EngineParser;
use watershed_reconcilers::project_parser::folder::Folder;
use watershed_reconcilers::project_parser::refusal;
use watershed_reconcilers::project_parser::touched::Scope;

use super::answers::Unanswered;
use super::body::{read, read_up_to};
use super::limits::Gate;
use super::{files, words};
use crate::instance::{Instance, compiled, compiler_options, sandbox};
use crate::report::resource;

/// The most texts of a call.
const MOST_TEXTS: usize = 1_000;
/// The most bytes of the texts of a call.
const MOST_BYTES: usize = 64 << 20;
/// The most bytes of a body: that of the texts, with room for their escapes.
const MOST_BODY: usize = 80 << 20;
/// The most large bodies of an instance that are read at the same time.
const MOST_LARGE: usize = 2;
/// The largest parse cache that is read, in bytes.
const LARGEST_CACHE: usize = 256 << 20;
/// Retention of a compilation that nobody uses.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// The compilation of an instance's files on which texts are laid. Clones share it.
#[derive(Clone)]
pub(super) struct Texts {
    /// Compilation; none before the first call, and after a time without one.
    compiled: Arc<Mutex<Option<Compiled>>>,
    /// Places for large bodies.
    large: Arc<Semaphore>,
    /// The task that drops the compilation.
    dropping: Arc<Lock<Option<AbortHandle>>>,
}

impl Default for Texts {
    fn default() -> Self {
        Self {
            compiled: Arc::default(),
            large: Arc::new(Semaphore::new(MOST_LARGE)),
            dropping: Arc::default(),
        }
    }
}

impl Texts {
    /// Drops the compilation after a time in which nobody uses it.
    fn drop_later(&self) {
        let compiled = Arc::clone(&self.compiled);
        let later = tokio::spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            compiled.lock().await.take();
        });
        let before = self.dropping.lock().unpoisoned().replace(later.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }
}

/// Compiles the texts of a call over the project's files, and returns all findings.
///
/// # Errors
/// `bad-argument`, for what is no file of the project or beyond the bounds; `busy` and `unavailable`.
pub(super) async fn check(
    texts: &Texts,
    instance: &Arc<Instance>,
    gate: &Gate,
    body: Body,
) -> Result<DiagnosticsDocument, Unanswered> {
    let within = gate.limits().answer_within;
    let busy =
        || Problem::new(Code::Busy, "other texts of this project are compiled").hint("ask again in a moment");
    let is_small = body
        .size_hint()
        .upper()
        .is_some_and(|bytes| bytes <= gate.limits().body_bytes as u64);
    let body = match is_small {
        true => read(body, gate).await?,
        false => {
            let _place = texts.large.try_acquire().map_err(|_| busy())?;
            read_up_to(body, MOST_BODY, gate).await?
        }
    };
    let asked: FileTexts = words::form(words::body(&body)?)?;
    drop(body);
    let overlays = overlays(asked)?;
    let turn = tokio::time::timeout(within, Arc::clone(&texts.compiled).lock_owned()).await;
    let mut compiled = turn.map_err(|_| busy())?;
    let instance = Arc::clone(instance);
    let checking = tokio::task::spawn_blocking(move || {
        // What panics leaves none.
        let mut used = compiled.take().unwrap_or_else(|| Compiled::new(&instance));
        let document = used.check(&instance, overlays);
        *compiled = Some(used);
        document
    });
    let document = checking
        .await
        .map_err(|_| Problem::new(Code::Defect, "the compiler has panicked"))??;
    texts.drop_later();
    Ok(document)
}

/// Converts texts to what the compiler takes in the place of files.
fn overlays(asked: FileTexts) -> Result<Vec<FileEvent>, Problem> {
    let wrong = |message: String| Problem::new(Code::BadArgument, message);
    let bytes: usize = asked.files.values().flatten().map(String::len).sum();
    if asked.files.len() > MOST_TEXTS || bytes > MOST_BYTES {
        return Err(wrong(format!(
            "more than {MOST_TEXTS} texts, or {MOST_BYTES} bytes of them"
        )));
    }
    let overlay = |(path, text): (String, Option<String>)| {
        files::check_text(&path)?;
        match text {
            None => Ok(FileEvent::Removed { path }),
            Some(text) if text.len() > FileEvent::MAX_BYTES => Err(wrong(format!(
                "`{path}` has more than {} bytes",
                FileEvent::MAX_BYTES
            ))),
            Some(text) => Ok(FileEvent::Written {
                path,
                content: text.into_bytes().into(),
            }),
        }
    };
    asked.files.into_iter().map(overlay).collect()
}

/// The files of a project, compiled apart from the running project.
struct Compiled {
    folder: Folder,
    project: Project,
    parser: EngineParser,
    /// The last event of each file on disk, by path.
    files: BTreeMap<String, FileEvent>,
}

impl Compiled {
    fn new(instance: &Instance) -> Self {
        let (options, state) = (&instance.options, &instance.state);
        let mut project = Project::new(compiler_options(options));
        if let Ok(learned) = regular::read(&state.parse_cache(), LARGEST_CACHE) {
            project.import_cache(&learned);
        }
        Self {
            folder: Folder::confined(sandbox(options, state)),
            project,
            parser: EngineParser::default(),
            files: BTreeMap::new(),
        }
    }

    /// Returns the findings of the project with texts laid over its files as they are now. Blocks.
    fn check(
        &mut self,
        instance: &Instance,
        overlays: Vec<FileEvent>,
    ) -> Result<DiagnosticsDocument, Problem> {
        self.look(instance)?;
        for overlay in &overlays {
            if !files::is_of_project(instance, path_of(overlay)) {
                let message = format!("`{}` is no file of the project", path_of(overlay));
                return Err(Problem::new(Code::BadArgument, message).hint(
                    "a project has files of SQL and YAML; what the manifest leaves out does not exist here",
                ));
            }
        }
        let back: Vec<FileEvent> = overlays
            .iter()
            .map(|overlay| self.on_disk(path_of(overlay)))
            .collect();
        self.project.apply(overlays, &self.parser);
        let secrets = compiled::secrets_of(&self.project);
        let refusal = refusal(&self.project).map(|error| resource::failure(&secrets.redact_error(error)));
        let document = DiagnosticsDocument {
            schema: DiagnosticsDocument::SCHEMA.to_owned(),
            not_applied: refusal,
            diagnostics: compiled::findings(&self.project),
        };
        self.project.apply(back, &self.parser);
        Ok(document)
    }

    /// Takes over what has changed on disk.
    fn look(&mut self, instance: &Instance) -> Result<(), Problem> {
        let looked = self.folder.look(&instance.options.root, &Scope::Everything);
        let events = looked.map_err(|error| Problem::new(Code::ProjectError, crate::chain(&error)))?;
        for event in &events {
            let path = path_of(event).to_owned();
            match event {
                FileEvent::Removed { .. } => drop(self.files.remove(&path)),
                event => drop(self.files.insert(path, event.clone())),
            }
        }
        self.project.apply(events, &self.parser);
        Ok(())
    }

    /// Returns the event of a file as it is on disk.
    fn on_disk(&self, path: &str) -> FileEvent {
        let file = self.files.get(path).cloned();
        file.unwrap_or_else(|| FileEvent::Removed {
            path: path.to_owned(),
        })
    }
}

fn path_of(event: &FileEvent) -> &str {
    match event {
        FileEvent::Written { path, .. }
        | FileEvent::Removed { path }
        | FileEvent::Unreadable { path, .. } => path,
    }
}
