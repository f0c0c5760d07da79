//! A project known from its files alone: for `validate` and `compile`, and before the first run.
//!
//! Neither the catalog nor the engine's data is opened; the engine's parser needs no file.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use watershed_api::documents::{self, CompileDocument, Diagnostic, ResourceName, RunDocument};
use watershed_api::request::RunRequest;
use watershed_api::{Code, Problem};
use watershed_compilers::{
    Health, ManagerSettings, Project, Resource, ResourceKey, Severity, Spec, WorkloadSettings,
};
use watershed_controller::reconciler::{ErrorKind, SourcePosition};
use watershed_controller::resource::{Row, SpecVersion};
use watershed_controller::{Error, Key, Ref, Timestamp, Uid};
use watershed_drivers::olap::TrashLimits;
use watershed_outputs::secrets::Secrets;
use watershed_reconcilers::project_parser::compilation::{self, Compilation};
use watershed_reconcilers::project_parser::diff::labels;
use watershed_reconcilers::project_parser::touched::Scope;

use super::Options;
use crate::report::difference::Declarations;
use crate::report::document::{Account, Occasion, Warnings};
use crate::report::summary::Done;
use crate::report::{Entry, Hidden, kinds, names};
use crate::selection::{Evaluate as _, States};
use crate::state_folder::StateFolder;

/// Compiles the project's files, and caches the parses for later processes.
///
/// # Errors
/// When the project's folder can't be listed.
pub async fn compile(options: &Options, state: &StateFolder) -> Result<Compilation, Problem> {
    let compiler = compiler_options(options);
    // A folder that can't be written costs time, no more.
    let cache = state.create_root().is_ok().then(|| state.parse_cache());
    let root = options.root.clone();
    let sandbox = super::sandbox(options, state);
    let compiled = tokio::task::spawn_blocking(move || {
        let mut compilation = Compilation::new(root, compiler, cache).confined(sandbox);
        compilation.refresh(&Scope::Everything).map(|_| compilation)
    });
    match compiled.await {
        Ok(Ok(compilation)) => Ok(compilation),
        Ok(Err(error)) => Err(Problem::new(Code::ProjectError, crate::chain(&error))),
        Err(panic) => Err(Problem::new(
            Code::Unavailable,
            format!("the compiler ended by a defect: {panic}"),
        )),
    }
}

/// Converts the options of an instance to the options of the compiler.
pub fn compiler_options(options: &Options) -> watershed_compilers::Options {
    watershed_compilers::Options {
        environment: options.environment.clone(),
        variables: options.variables.clone(),
        engines: watershed_outputs::settings::engines(),
        ..watershed_compilers::Options::default()
    }
}

/// The assumed state of resources that no process could be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Built {
    /// The resources were never built.
    Never,
    /// The state is unknown, as nothing was asked.
    Unknown,
}

/// The treatment of specs in documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Specs {
    /// Specs are left out.
    Left,
    /// Specs are shown (`--spec`).
    Shown,
}

/// Returns the document of `validate`.
///
/// # Errors
/// When nothing is selected.
pub(crate) fn validated(
    options: &Options,
    project: &Project,
    occasion: &Occasion,
    run: &RunRequest,
    specs: Specs,
) -> Result<RunDocument, Problem> {
    let entries = entries(project, Built::Unknown);
    let chosen = run.selection.among(&entries, States::Unknown)?;
    let hidden = Hidden::unless(run.all);
    let account = Account {
        project: &options.project(),
        occasion,
        entries: &entries,
        hidden,
        findings: findings(project),
        done: &Done::default(),
        before: &Declarations::from_entries(&entries, hidden),
        warnings: if run.warn_error {
            Warnings::AreErrors
        } else {
            Warnings::Said
        },
        selected: chosen.as_ref(),
        stopped: None,
    };
    let mut document = account.document(|row| chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.uid)));
    if specs == Specs::Shown {
        let specs: BTreeMap<_, _> = entries
            .iter()
            .map(|e| (e.row.key().to_string(), kinds::spec(&e.row)))
            .collect();
        for resource in &mut document.resources {
            resource.spec = specs.get(&resource.id().to_string()).cloned();
        }
    }
    Ok(document)
}

/// Returns the document of `compile`.
///
/// # Errors
/// When the name is unknown or means several, or the resource has no SQL or does not compile.
pub(crate) fn compiled_sql(
    options: &Options,
    project: &Project,
    typed: &str,
) -> Result<CompileDocument, Problem> {
    let entries = entries(project, Built::Unknown);
    let found = names::resolve_model(&entries, typed)?;
    let is_it = |resource: &&Resource| {
        resource.kind.as_str() == found.row.kind.as_str() && found.row.name == resource.name.as_str().into()
    };
    let declared = project.resources().find(is_it);
    let Some(
        declared @ Resource {
            spec: Spec::Model(spec),
            ..
        },
    ) = declared
    else {
        let why = found
            .row
            .error
            .as_ref()
            .map_or("it has no SQL", |error| error.message.as_ref());
        return Err(Problem::new(
            Code::ProjectError,
            format!("`{typed}` can't be compiled: {why}"),
        ));
    };
    let environment = &options.environment;
    let secrets = secrets_of(project);
    let sql =
        watershed_reconcilers::model::statement::sql(spec, &declared.name, environment, &declared.paths);
    let sql = sql.map_err(|error| {
        let place = error
            .place
            .as_ref()
            .map(|place| format!(" ({}:{})", place.path, place.line));
        let error = secrets.redact_error(error);
        let message = format!(
            "`{typed}` can't be compiled: {}{}",
            error.message,
            place.unwrap_or_default()
        );
        let refusal = Problem::new(Code::ProjectError, message);
        match &error.hint {
            Some(hint) => refusal.hint(hint.as_ref()),
            None => refusal,
        }
    })?;
    Ok(CompileDocument {
        schema: CompileDocument::SCHEMA.to_owned(),
        resource: ResourceName::new(declared.kind.as_str(), &declared.name),
        connector: spec.output_connector.clone(),
        sql: secrets.redact(&sql).into_owned(),
    })
}

/// Lists the findings in a project's files, with secrets redacted.
pub(crate) fn findings(project: &Project) -> Vec<Diagnostic> {
    let secrets = secrets_of(project);
    let found = project.diagnostics().iter();
    found.map(|found| finding(found, &secrets)).collect()
}

/// Adds the secrets that a project's files state, read without compiling the rest.
pub(crate) async fn secrets_in_files(options: &Options, secrets: Secrets) -> Secrets {
    let root = options.root.clone();
    let compiler = compiler_options(options);
    let found = tokio::task::spawn_blocking(move || compilation::variables(&root, compiler));
    if let Ok(Ok(variables)) = found.await {
        // A value that has changed since can't be opened: that of today counts.
        secrets.give(&variables);
    }
    secrets
}

/// Returns the trash limits in the manifest, read without compiling other files.
pub(crate) async fn trash_limits(options: &Options) -> TrashLimits {
    let (root, compiler) = (options.root.clone(), compiler_options(options));
    let found = tokio::task::spawn_blocking(move || compilation::trash(&root, compiler));
    found.await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Returns the manifest's settings of jobs, services and managed resources, read without other files.
pub(super) async fn program_settings(options: &Options) -> (WorkloadSettings, ManagerSettings) {
    let (root, compiler) = (options.root.clone(), compiler_options(options));
    let found = tokio::task::spawn_blocking(move || compilation::programs(&root, compiler));
    found.await.unwrap_or_default()
}

/// Returns the secrets of a compiled project.
pub fn secrets_of(project: &Project) -> Secrets {
    let secrets = Secrets::default();
    secrets.learn_names_of(project);
    secrets.learn(project.variables());
    secrets
}

/// Returns a finding as documents have it.
pub fn finding(found: &watershed_compilers::Diagnostic, secrets: &Secrets) -> Diagnostic {
    Diagnostic {
        severity: match found.severity {
            Severity::Error => documents::Severity::Error,
            Severity::Warning => documents::Severity::Warning,
            Severity::Hint => documents::Severity::Hint,
        },
        code: found.code.as_str().to_owned(),
        path: found.path.clone(),
        line: found.span.line,
        column: found.span.column,
        end_line: found.span.end_line,
        end_column: found.span.end_column,
        message: secrets.redact(&found.message).into_owned(),
        hint: found
            .hint
            .as_deref()
            .map(|hint| secrets.redact(hint).into_owned()),
        notes: Vec::new(),
        details: None,
        resource: found
            .resource
            .as_ref()
            .map(|r| ResourceName::new(r.key.kind.as_str(), &r.name)),
        related: found.related.iter().map(related).collect(),
    }
}

fn related(place: &watershed_compilers::diagnostics::Related) -> documents::RelatedPlace {
    documents::RelatedPlace {
        path: place.path.clone(),
        line: place.span.line,
        column: place.span.column,
        end_line: place.span.end_line,
        end_column: place.span.end_column,
        message: place.message.clone(),
    }
}

/// Returns the declared resources as if they were in a catalog.
pub(crate) fn entries(project: &Project, built: Built) -> Vec<Entry> {
    sealed_entries(project, built, &secrets_of(project))
}

/// Returns the declared resources as [`entries`] does, with the values of variables sealed.
pub(crate) fn sealed_entries(project: &Project, built: Built, secrets: &Secrets) -> Vec<Entry> {
    let mut rows: BTreeMap<ResourceKey, Row> = BTreeMap::new();
    for declared in project.resources() {
        let mut row = row(project, &secrets.seal_resource(declared), built);
        row.error = row
            .error
            .map(|error| Arc::new(secrets.redact_error(Error::clone(&error))));
        rows.insert(declared.key(), row);
    }
    hold_up(&mut rows);
    rows.into_values()
        .map(|row| Entry::at_rest(Arc::new(row)))
        .collect()
}

fn row(project: &Project, declared: &Resource, built: Built) -> Row {
    let spec: Arc<[u8]> = match &declared.spec {
        Spec::None => Arc::default(),
        spec => watershed_reconcilers::managed::encode(spec, None).into(),
    };
    Row {
        refs: declared
            .refs
            .iter()
            .map(|r| Ref::completed(r.kind.as_str(), r.name.as_str()))
            .collect(),
        paths: declared
            .paths
            .iter()
            .map(|path| Arc::from(path.as_str()))
            .collect(),
        labels: labels(declared),
        spec_version: SpecVersion(1),
        error: error(project, declared).map(Arc::new),
        spec_format: 1,
        last_success: (built == Built::Unknown).then_some(Timestamp(0)),
        spec,
        ..Row::new(
            Uid(uuid::Uuid::now_v7()),
            declared.kind.as_str(),
            declared.name.as_str(),
        )
    }
}

/// Returns the finding or the cycle that keeps a resource from being built; none if it can be built.
fn error(project: &Project, declared: &Resource) -> Option<Error> {
    let key = declared.key();
    let own = |finding: &&watershed_compilers::Diagnostic| {
        finding.severity == Severity::Error
            && (finding.resource.as_ref().is_some_and(|r| r.key == key)
                || finding.resource.is_none() && declared.paths.contains(&finding.path))
    };
    if declared.health != Health::Broken && declared.cycle.is_none() {
        return None;
    }
    if let Some(found) = project.diagnostics().iter().find(own) {
        let mut error = Error::permanent(found.code.as_str(), found.message.as_str());
        error.hint = found.hint.as_deref().map(Arc::from);
        let (line, column) = (found.span.line, found.span.column);
        error.place = Some(SourcePosition {
            path: found.path.as_str().into(),
            line,
            column,
        });
        return Some(error);
    }
    let message = match &declared.cycle {
        Some(names) => format!("it reads itself: {}", names.join(" -> ")),
        None => "its files do not compile".to_owned(),
    };
    Some(Error::permanent("file-broken", message))
}

/// Marks as blocked the transitive dependents of resources that can't be built.
fn hold_up(rows: &mut BTreeMap<ResourceKey, Row>) {
    let mut children: BTreeMap<Key, Vec<ResourceKey>> = BTreeMap::new();
    for (key, row) in rows.iter() {
        for reference in row.refs.iter() {
            children.entry(reference.key()).or_default().push(key.clone());
        }
    }
    let mut queue: VecDeque<Key> = rows
        .values()
        .filter(|row| row.error.is_some())
        .map(Row::key)
        .collect();
    while let Some(failed) = queue.pop_front() {
        for child in children.get(&failed).into_iter().flatten() {
            let Some(row) = rows.get_mut(child).filter(|row| row.error.is_none()) else {
                continue;
            };
            let reference = Ref::completed(failed.kind.clone(), failed.name.clone());
            let message = format!("\"{failed}\" can't be built");
            row.error = Some(Arc::new(Error::new(
                ErrorKind::Dependency(reference),
                "blocked",
                message,
            )));
            queue.push_back(row.key());
        }
    }
}
