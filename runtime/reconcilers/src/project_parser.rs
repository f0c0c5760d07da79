//! The project parser: the resource that declares all others from the project's files.
//!
//! | module | holds |
//! |---|---|
//! | [`folder`] | the project's files: listing and reading what changed |
//! | [`compilation`] | the folder, compiled |
//! | [`known`] | the compilation, shared by whoever looks |
//! | [`diff`] | what a parse changes in the catalog, as one batch |
//! | `removal` | what removes most of a project, and waits until the files are quiet |
//! | [`renames`] | which resources are others of before under a new name |
//! | [`touched`] | which files may have changed, where somebody watches them |
//! | `origins` | which files are behind an edit |
//! | `sweep` | outputs that no resource stands for |
//! | `watching` | refs of what reports how others stand |
//!
//! There is one, hidden, of kind [`KIND`] and name [`NAME`], and it settles before anything else runs. A parse is
//! applied whole or not at all, and nothing is deleted by mistake: without a manifest that can be read, without a
//! whole listing, beyond the limits, or with no file at all, nothing is applied and the parse is an error.

pub mod compilation;
pub mod diff;
pub mod folder;
pub mod known;
mod removal;
pub mod renames;
pub mod touched;

mod origins;
mod sweep;
mod watching;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use watershed_compilers::{Health, Kind, Options, Spec, Trust};
use watershed_controller::kind::Nudging;
use watershed_controller::resource::Listing;
use watershed_controller::{
    Context, EditError, Handle, Key, KindOptions, Reconciler, Resource, RetryPolicy, Select,
};
use watershed_core::{Batch, Edit, Error, Outcome, Refusal, Row, Uid, Work};
use watershed_drivers::olap::Session;
use watershed_outputs::{
    EngineSettings, Outputs, access, failure, secrets::Secrets, selection::Candidate, sessions, settings,
    traces::Version,
};
use watershed_proto::{Diagnostic, ProjectParserSpec, ProjectParserState, RelatedPlace, Severity};

use crate::{connector, messages::Proto};
use compilation::Compilation;
use diff::{Diff, Parsed};
use folder::FolderError;
use known::{Known, Looks};
pub use removal::REMOVAL_CODE;
use removal::{MOST_WAITS, QUIET, Removal};

/// The kind by which the controller knows project parsers.
pub const KIND: &str = settings::PARSER;

/// The name of the only resource of the kind.
pub const NAME: &str = "parser";

/// The number of attempts to apply a parse while others edit the catalog at the same time.
const ATTEMPTS: usize = 5;

/// The debouncing of nudges: short, since watchers debounce files themselves and people wait for the result.
const NUDGING: Nudging = Nudging {
    interval: Duration::from_millis(10),
    longest_wait: Duration::from_millis(50),
};

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions::new(KIND)
        .retry(RetryPolicy::Never)
        .first()
        .nudging(NUDGING)
}

/// Creates the project parser with a spec, or updates the spec of an existing one.
///
/// # Errors
/// When the controller refuses.
pub async fn declare_parser(handle: &Handle, spec: ProjectParserSpec) -> Result<Uid, EditError> {
    let spec = Proto(spec);
    match handle.get(Key::new(KIND, NAME)) {
        Ok(parser) => handle.update_spec(parser.row.uid, &spec).await,
        Err(_) => {
            let mut new = Resource::declare(KIND, NAME, &spec)?;
            new.hidden = true;
            handle.create(new).await
        }
    }
}

/// The reconciler of the project parser, which compiles the project's files.
pub struct ProjectParser {
    known: Known,
    outputs: Arc<Outputs>,
    swept: AtomicBool,
}

/// The result of compiling the project's files.
struct Parse {
    batch: Result<Batch, Error>,
    state: ProjectParserState,
    engine: EngineSettings,
    /// A finding about the parse, if it would delete most of the project's resources.
    removal: Option<Diagnostic>,
}

impl ProjectParser {
    /// Creates the reconciler of the project whose files are `known` so far.
    #[must_use]
    pub fn new(known: Known, outputs: Arc<Outputs>) -> Self {
        Self {
            known,
            outputs,
            swept: AtomicBool::new(false),
        }
    }

    /// Reads the files and computes the edits relative to `listing`.
    async fn parse(&self, context: &Context<Self>, listing: Listing) -> Result<Parse, Error> {
        let known = self.known.clone();
        let secrets = self.outputs.secrets().clone();
        let options = options_of(&context.spec().0, &secrets);
        let parser = context.uid();
        let last_parse = context.row().last_success;
        let work = move || {
            known.look(options, |compilation, looks| {
                let rows = listing
                    .resources
                    .into_iter()
                    .map(|resource| resource.row)
                    .collect::<Vec<_>>();
                if let (Looks::None, Some(last_parse)) = (looks, last_parse) {
                    compilation.forget_unchanged_since(last_parse, &rows);
                }
                secrets.learn(compilation.project().variables());
                compare(compilation, &rows, parser, &secrets)
            })
        };
        let done = tokio::task::spawn_blocking(work).await;
        let parsed = done.map_err(|panic| Error::permanent("panic", panic.to_string()))?;
        parsed.map_err(|error: FolderError| folder_error(&error))
    }

    /// Waits a while; returns true if no file has changed meanwhile.
    async fn is_quiet(&self, context: &Context<Self>) -> Result<bool, Error> {
        context.progress("most models are gone: waiting until no file changes");
        let pause = tokio::time::sleep(QUIET);
        match context.cancellation().run_until_cancelled(pause).await {
            Some(()) => Ok(!self.known.touched().is_pending()),
            None => Err(failure::cancelled()),
        }
    }

    /// Applies a parse, and computes it again if others edited the catalog at the same time.
    async fn apply(&self, context: &Context<Self>) -> Result<(Work, ProjectParserState), Error> {
        let controller = context.controller();
        let (mut attempt, mut waits) = (1, 0);
        let mut is_believed = !self.known.touched().is_watched();
        loop {
            let Parse {
                batch,
                mut state,
                engine,
                removal,
            } = self.parse(context, controller.list(Select::all())).await?;
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    self.set_state(context, state).await?;
                    return Err(error);
                }
            };
            if let Some(removal) = removal.filter(|_| self.known.touched().is_watched()) {
                if !is_believed && waits < MOST_WAITS {
                    is_believed = self.is_quiet(context).await?;
                    waits += 1;
                    continue;
                }
                // Told before anything goes.
                state.diagnostics.push(removal);
                self.set_state(context, state.clone()).await?;
            }
            // Before anything that the parse asks for opens the engine.
            self.outputs.set(engine);
            if batch.edits.is_empty() {
                self.known.changes_are_applied();
                return Ok((Work::None, state));
            }
            tracing::debug!(edits = batch.edits.len(), "applying a parse");
            match controller.edit(batch).await {
                Ok(_) => {
                    self.known.changes_are_applied();
                    return Ok((Work::Checked, state));
                }
                Err(EditError::Refused(refusal)) if is_race(&refusal) && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(Error::transient("not-applied", error.to_string())),
            }
        }
    }

    /// Removes leftovers from the engine, once per process, if its file was not closed cleanly or the catalog is new.
    async fn sweep(&self, context: &Context<Self>) {
        let nothing_can_be_there = self.outputs.were_as_left() && context.state().is_some();
        if nothing_can_be_there || self.swept.load(Ordering::Acquire) {
            return;
        }
        let resources = context.controller().list(Select::all()).resources;
        match sweep::sweep(&self.outputs, &resources, context.cancellation()).await {
            Ok(()) => self.swept.store(true, Ordering::Release),
            // Models will meet the same failure, and say so.
            Err(error) => tracing::warn!(%error, "outputs that no resource stands for were not dropped"),
        }
    }

    async fn set_state(&self, context: &Context<Self>, state: ProjectParserState) -> Result<(), Error> {
        Ok(context.set_state(&Proto(state)).await?)
    }
}

impl Reconciler for ProjectParser {
    type Spec = Proto<ProjectParserSpec>;
    type State = Proto<ProjectParserState>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let (work, state) = self.apply(&context).await?;
        // Before anything else runs.
        let declared = context.controller().list(Select::new().with_deleted()).resources;
        let live = declared.iter().filter(|it| !it.row.intents.is_deleted());
        self.outputs
            .chosen()
            .choose(live.map(|it| Candidate::from(&*it.row)));
        self.sweep(&context).await;
        self.set_state(&context, state).await?;
        Ok(Outcome::from_work(work))
    }

    async fn rename(&self, _: Context<Self>) -> Result<Outcome, Error> {
        Err(Error::permanent(
            "not-renamable",
            format!("the project parser has to be called \"{NAME}\""),
        ))
    }

    /// Deletes the resources that the parser declared.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let controller = context.controller();
        let listing = controller.list(Select::all());
        let owned = listing
            .resources
            .iter()
            .filter(|row| row.row.owner == Some(context.uid()));
        let edits = owned
            .filter(|row| !row.row.intents.is_deleted())
            .map(|row| Edit::delete(row.row.uid));
        let applied = controller
            .edit(Batch {
                edits: edits.collect(),
            })
            .await;
        applied.map_err(|error| Error::transient("not-applied", error.to_string()))?;
        Ok(Outcome::from_work(Work::Dropped))
    }
}

fn options_of(spec: &ProjectParserSpec, secrets: &Secrets) -> Options {
    Options {
        environment: spec.environment.clone(),
        variables: secrets.open_given(&spec.variables),
        engines: settings::engines(),
        ..Options::default()
    }
}

fn compare(compilation: &Compilation, rows: &[Arc<Row>], parser: Uid, secrets: &Secrets) -> Parse {
    let project = compilation.project();
    secrets.learn_names_of(project);
    let sealed: Vec<_> = project
        .resources()
        .map(|resource| secrets.seal_resource(resource))
        .collect();
    let broken_paths = project.broken_paths();
    let mut diagnostics = project.diagnostics().iter().map(to_proto).collect::<Vec<_>>();
    redact(&mut diagnostics, secrets);
    let engine = EngineSettings::from_project(project, sessions(compilation, rows, secrets));
    let mut removal = None;
    let mut state = ProjectParserState {
        display_name: project.display_name().to_owned(),
        files: u32::try_from(compilation.files()).unwrap_or(u32::MAX),
        ..ProjectParserState::default()
    };
    engine.keep_in(&mut state);
    let batch = match held_back(project.trust(), &diagnostics) {
        Some(error) => {
            state.deletions_held_back = error.message.to_string();
            Err(error)
        }
        None => {
            let parsed = Parsed {
                resources: sealed.iter().map(AsRef::as_ref).collect(),
                broken_paths: broken_paths.iter().map(String::as_str).collect(),
                diagnostics: &diagnostics,
            };
            let Diff { batch, findings } = Diff::new(&parsed, rows, parser, Resource::fresh_uid);
            diagnostics.extend(findings);
            diagnostics.sort_by(|a, b| (&a.path, a.line, a.column).cmp(&(&b.path, b.line, b.column)));
            removal = Removal::new(&batch, rows).finding(project);
            Ok(compilation.say_origins(batch, rows))
        }
    };
    state.diagnostics = diagnostics;
    Parse {
        batch,
        state,
        engine,
        removal,
    }
}

/// The result of a parse that is not applied.
#[derive(Debug)]
pub struct Foreseen {
    /// The edits that the parse would make.
    pub batch: Batch,
    /// The statements with which connections to the engine would begin.
    pub sessions: Vec<(Session, Version)>,
}

/// Computes the edits that applying a parse would make in a catalog with the given rows.
///
/// # Errors
/// When the parse would not be applied, as without a manifest.
pub fn foresee(compilation: &Compilation, rows: &[Arc<Row>], secrets: &Secrets) -> Result<Foreseen, Error> {
    let parser = rows.iter().find(|row| row.kind.as_str() == KIND);
    let parser = parser.map_or_else(Resource::fresh_uid, |row| row.uid);
    let Parse { batch, engine, .. } = compare(compilation, rows, parser, secrets);
    Ok(Foreseen {
        batch: batch?,
        sessions: engine.sessions,
    })
}

/// Returns the statements with which connections to the engine begin; connectors that do not compile keep their
/// previous ones.
fn sessions(compilation: &Compilation, rows: &[Arc<Row>], secrets: &Secrets) -> Vec<(Session, Version)> {
    let project = compilation.project();
    let good = project.resources().filter_map(|resource| match &resource.spec {
        Spec::Connector(spec) if resource.health == Health::Ok => Some((resource.name.as_str(), &**spec)),
        _ => None,
    });
    let good: Vec<_> = good.collect();
    let broken = project
        .resources()
        .filter(|resource| resource.kind == Kind::Connector && resource.health == Health::Broken)
        .map(|resource| resource.name.to_lowercase())
        .collect::<BTreeSet<_>>();
    let kept = rows
        .iter()
        .filter(|row| row.kind.as_str() == connector::KIND)
        .filter(|row| broken.contains(&row.name.as_str().to_lowercase()))
        .map(Arc::as_ref);
    let around = access::Surroundings {
        environment: &project.options().environment,
        root: compilation.root(),
        is_confined: compilation.is_confined(),
    };
    let mut all = sessions::sessions(good.into_iter(), around, secrets);
    all.extend(sessions::sessions_of_rows(kept, around, secrets));
    all.sort_by(|(a, _), (b, _)| a.connector.cmp(&b.connector));
    all
}

/// Removes secrets from findings, which quote the texts they are about.
pub fn redact(diagnostics: &mut [Diagnostic], secrets: &Secrets) {
    for found in diagnostics {
        found.message = secrets.redact(&found.message).into_owned();
        found.hint = secrets.redact(&found.hint).into_owned();
    }
}

/// Returns the reason why the declarations of a project must not be applied, if there is one.
#[must_use]
pub fn refusal(project: &watershed_compilers::Project) -> Option<Error> {
    let diagnostics: Vec<Diagnostic> = project.diagnostics().iter().map(to_proto).collect();
    held_back(project.trust(), &diagnostics)
}

/// Returns the reason why a parse must not be applied, if there is one: the first finding about the manifest, or a
/// fault of the listing.
fn held_back(trust: Trust, diagnostics: &[Diagnostic]) -> Option<Error> {
    let (code, message) = match trust {
        Trust::Whole => return None,
        Trust::ManifestMissing => ("manifest-missing", "the project has no manifest"),
        Trust::ManifestBroken => ("manifest-broken", "the manifest can't be read"),
        Trust::EngineUnfit => (
            "engine-lacks",
            "nothing can be built in the engine of the project",
        ),
        Trust::TooManyFiles => ("too-many-files", "the project has too many files"),
        Trust::NoFiles => ("no-files", "the project has no files"),
    };
    let about_manifest = matches!(
        trust,
        Trust::ManifestMissing | Trust::ManifestBroken | Trust::EngineUnfit | Trust::TooManyFiles
    );
    let errors = diagnostics
        .iter()
        .filter(|found| found.severity() == Severity::Error);
    let manifest = |found: &&Diagnostic| {
        let is_manifest = watershed_compilers::MANIFESTS.contains(&found.path.as_str());
        about_manifest && is_manifest
    };
    Some(match errors.into_iter().find(manifest) {
        None => Error::permanent(code, message),
        Some(found) => Error {
            hint: (!found.hint.is_empty()).then(|| found.hint.as_str().into()),
            place: Some(watershed_core::SourcePosition {
                path: found.path.as_str().into(),
                line: found.line,
                column: found.column,
            }),
            ..Error::permanent(found.code.as_str(), found.message.as_str())
        },
    })
}

fn folder_error(error: &FolderError) -> Error {
    match error {
        FolderError::Missing { .. } => Error::permanent("project-missing", error.to_string()),
        FolderError::Unlisted { source, .. } => {
            Error::transient("folder-unreadable", format!("{error}: {source}"))
        }
    }
}

/// Returns true if a batch was refused because the catalog changed after it was computed.
fn is_race(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Unknown(_)
            | Refusal::StaleSpec { .. }
            | Refusal::OtherUid { .. }
            | Refusal::NameTaken { .. }
            | Refusal::Contradiction(_)
    )
}

/// Converts a finding of the compiler to the message used in documents and states.
#[must_use]
pub fn to_proto(found: &watershed_compilers::Diagnostic) -> Diagnostic {
    let severity = match found.severity {
        watershed_compilers::Severity::Error => Severity::Error,
        watershed_compilers::Severity::Warning => Severity::Warning,
        watershed_compilers::Severity::Hint => Severity::Hint,
    };
    let resource = found.resource.as_ref();
    Diagnostic {
        severity: severity.into(),
        code: found.code.as_str().to_owned(),
        path: found.path.clone(),
        line: found.span.line,
        column: found.span.column,
        end_line: found.span.end_line,
        end_column: found.span.end_column,
        message: found.message.clone(),
        hint: found.hint.clone().unwrap_or_default(),
        resource_kind: resource
            .map(|of| of.key.kind.as_str().to_owned())
            .unwrap_or_default(),
        resource_name: resource.map(|of| of.name.clone()).unwrap_or_default(),
        related: found.related.iter().map(related).collect(),
    }
}

fn related(place: &watershed_compilers::diagnostics::Related) -> RelatedPlace {
    RelatedPlace {
        path: place.path.clone(),
        line: place.span.line,
        column: place.span.column,
        end_line: place.span.end_line,
        end_column: place.span.end_column,
        message: place.message.clone(),
    }
}
