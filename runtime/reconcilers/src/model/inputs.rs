//! Inputs of a model: the outputs of its refs, and files.

use std::{collections::HashMap, path::Path, sync::Arc};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_compilers::Kind;
use watershed_controller::Resource;
use watershed_core::{Error, Ref, RefView, Row};
use watershed_drivers::files::{self, FileNow, FilesError};
use watershed_drivers::sandbox::Sandbox;
use watershed_outputs::selection::Chosen;
use watershed_proto::{LocalFiles, Message, ModelSpec, ModelState};
use watershed_workloads::job::{self, JobRecord};

use super::{
    KIND, claim, failure, partitions, plan,
    record::{BuildId, FileSeen, Input, Record},
};

/// Kinds for which nothing is built, so that refs to them are never unbuilt.
const UNMADE: [&str; 2] = [Kind::Connector.as_str(), Kind::Theme.as_str()];

/// The inputs of a model from its refs.
pub(super) struct Inputs {
    pub(super) all: Vec<Input>,
    /// The failed ref whose last good output is used instead, if there is one.
    pub(super) failed: Option<Ref>,
}

/// Returns the inputs of the refs: first the numbered inputs of the spec in their order, then models that are referred
/// to but not read, in an order that renames don't change.
///
/// # Errors
/// The first ref that is missing, has failed without an output that stands, or was never built and is not chosen.
pub(super) fn from_refs(spec: &ModelSpec, refs: &[RefView], chosen: &Chosen) -> Result<Inputs, Error> {
    let (mut models, mut jobs, mut failed) = (HashMap::new(), Vec::new(), None);
    for view in refs {
        let target = view
            .target
            .as_ref()
            .ok_or_else(|| failure::missing_ref(&view.reference))?;
        refuse_left_out(view, chosen)?;
        let is_model = target.kind.as_str() == KIND;
        // Where the files do not say what the name stands for, its text means something else than it did.
        let is_read = is_model && reads(spec, view.reference.name.as_str());
        if view.failed && !is_read {
            return Err(failure::failed_ref(&view.reference));
        }
        if is_model {
            let input = input(target).ok_or_else(|| failure::failed_ref(&view.reference))?;
            if view.failed && failed.is_none() {
                failed = Some(view.reference.clone());
            }
            models.insert(view.reference.name.as_str().to_lowercase(), input);
        }
        jobs.extend(last_run(target));
    }
    let mut inputs = Vec::new();
    for name in &spec.inputs {
        inputs.extend(models.remove(&name.to_lowercase()));
    }
    let mut others = models.into_values().collect::<Vec<_>>();
    others.sort_by_key(|input| input.build);
    inputs.extend(others);
    jobs.sort_by_key(|input| input.build);
    inputs.extend(jobs);
    Ok(Inputs { all: inputs, failed })
}

/// Returns an error if a target was never built and this run is not going to build it.
///
/// # Errors
/// If it is such a resource.
pub(crate) fn refuse_left_out(view: &RefView, chosen: &Chosen) -> Result<(), Error> {
    let Some(target) = view.target.as_ref().filter(|target| !chosen.holds(target.uid)) else {
        return Ok(());
    };
    let is_there = match target.kind.as_str() {
        KIND => claim(target).is_some(),
        _ if UNMADE.contains(&target.kind.as_str()) => true,
        _ => target.last_success.is_some(),
    };
    match is_there {
        true => Ok(()),
        false => Err(failure::left_out_ref(&view.reference)),
    }
}

/// Returns true if the SQL of a model reads the model of a name.
fn reads(spec: &ModelSpec, name: &str) -> bool {
    let name = name.to_lowercase();
    spec.inputs.iter().any(|input| input.to_lowercase() == name)
}

/// The prefix that marks a job among inputs, in place of a table's name; no table name contains its blank.
pub(super) const JOB: &str = "job ";

/// Returns the last run of a job as an input, since it may have changed what the model reads; none for other kinds.
/// Services are no inputs, so that a restart rebuilds nothing.
fn last_run(target: &Row) -> Option<Input> {
    if target.kind.as_str() != job::KIND {
        return None;
    }
    let state = Resource::state_of::<JobRecord>(target).ok().flatten()?;
    Some(Input {
        table: format!("{JOB}{}", target.uid),
        build: BuildId(Uuid::from_bytes(state.finished?.to_bytes())),
        columns: None,
    })
}

/// Returns the output of a model as an input; none if it was never built.
fn input(target: &Row) -> Option<Input> {
    let state = ModelState::decode(target.state.as_deref()?).ok()?;
    let Record {
        location,
        build,
        columns,
        ..
    } = Record::from_state(&state)?;
    Some(Input {
        table: location.name,
        build,
        columns,
    })
}

/// Returns the build id of a model's output; none if it was never built.
pub(crate) fn build_of(target: &Row) -> Option<BuildId> {
    input(target).map(|input| input.build)
}

/// Returns the patterns of local files that a spec reads, including those it reads through objects of migrations.
pub(super) fn patterns(spec: &ModelSpec, made: &[String]) -> Vec<LocalFiles> {
    let through = made.iter().map(|pattern| LocalFiles {
        pattern: pattern.clone(),
        invalidate_on_change: true,
        partitions: false,
    });
    spec.local_files.iter().cloned().chain(through).collect()
}

/// The local files found for a model.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Files whose change makes the model outdated, by path; all partitions together count as one file.
    pub(super) files: Vec<FileNow>,
    /// Files that form the model's partitions.
    pub(super) partitions: Vec<FileNow>,
    /// Files that only have to exist.
    pub(super) others: Vec<FileNow>,
}

/// Returns the files that patterns match, none of which may lie outside the folders of a confined project. Blocks.
///
/// # Errors
/// As [`files::look`], and for a pattern outside.
pub(super) fn look_within(
    root: &Path,
    sandbox: Option<&Sandbox>,
    patterns: &[String],
) -> Result<Vec<FileNow>, FilesError> {
    let mut found = Vec::new();
    for pattern in patterns {
        if let Some(sandbox) = sandbox {
            files::refuse_outside(sandbox, root, pattern)?;
        }
        found.extend(files::look(root, pattern)?);
    }
    Ok(found)
}

/// Returns the local files of patterns, which stand in SQL or not, with content hashes where `seen` does not prove them
/// unchanged.
///
/// # Errors
/// When one is missing or can't be read.
pub(super) async fn local_files(
    root: &Arc<Path>,
    sandbox: Option<&Sandbox>,
    (patterns, in_sql): (Vec<LocalFiles>, bool),
    seen: Vec<FileSeen>,
    cancel: &CancellationToken,
) -> Result<Found, Error> {
    if patterns.is_empty() {
        return Ok(Found::default());
    }
    let sandbox = sandbox.cloned();
    blocking(root, cancel, move |root| {
        if let Some(sandbox) = &sandbox {
            patterns
                .iter()
                .try_for_each(|local| files::refuse_outside(sandbox, root, &local.pattern))?;
        }
        let mut found = look_at_all(root, &patterns, in_sql)?;
        let unproven = plan::unproven(&seen, &found.files);
        for index in unproven {
            if let Some(file) = found.files.get_mut(index) {
                file.content = Some(files::hash(root, &file.path)?);
            }
        }
        Ok(found)
    })
    .await
}

/// Returns the files that a build is about to read, each with a content hash.
///
/// # Errors
/// When one is missing or can't be read.
pub(super) async fn hashed(
    root: &Arc<Path>,
    mut files: Vec<FileNow>,
    seen_at_ns: i64,
    cancel: &CancellationToken,
) -> Result<Vec<FileSeen>, Error> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    blocking(root, cancel, move |root| {
        for file in &mut files {
            if file.content.is_none() {
                file.content = Some(files::hash(root, &file.path)?);
            }
        }
        Ok(files.into_iter().map(|file| seen(file, seen_at_ns)).collect())
    })
    .await
}

/// Returns the files with their content hashes computed.
///
/// # Errors
/// When one is missing or can't be read.
pub(super) async fn with_contents(
    root: &Arc<Path>,
    files: Vec<FileNow>,
    seen_at_ns: i64,
    cancel: &CancellationToken,
) -> Result<Vec<FileNow>, Error> {
    let seen = hashed(root, files, seen_at_ns, cancel).await?.into_iter();
    let known = seen.map(|file| FileNow {
        path: file.path,
        modified_ns: file.modified_ns,
        size: file.size,
        content: file.content,
    });
    Ok(known.collect())
}

/// Returns the files after a build; those that changed meanwhile lose their hash, so that the next run builds again.
pub(super) async fn confirmed(
    root: &Arc<Path>,
    before: Vec<FileSeen>,
    cancel: &CancellationToken,
) -> Vec<FileSeen> {
    if before.is_empty() {
        return before;
    }
    let files = before.clone();
    let after = blocking(root, cancel, move |root| {
        let same = |file: &FileSeen| {
            plan::is_list(&file.path)
                // What a store has now is asked by the run that is for it.
                || plan::is_address(&file.path)
                || files::look(root, &file.path).is_ok_and(|now| {
                    now.iter()
                        .any(|now| now.modified_ns == file.modified_ns && now.size == file.size)
                })
        };
        let confirm = |file: FileSeen| {
            if same(&file) {
                file
            } else {
                FileSeen {
                    content: None,
                    ..file
                }
            }
        };
        Ok(files.into_iter().map(confirm).collect::<Vec<_>>())
    });
    after.await.unwrap_or(before)
}

/// Converts a file that was inspected to its record.
pub(super) fn seen(file: FileNow, seen_at_ns: i64) -> FileSeen {
    let FileNow {
        path,
        modified_ns,
        size,
        content,
    } = file;
    FileSeen {
        path,
        modified_ns,
        size,
        content,
        seen_at_ns,
    }
}

/// Finds the files of all patterns, and separates those whose change makes the model outdated.
///
/// # Errors
/// As [`files::look`], and for a pattern in SQL that matches several workbooks.
fn look_at_all(root: &Path, patterns: &[LocalFiles], in_sql: bool) -> Result<Found, FilesError> {
    let (mut all, mut partitions, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for local in patterns {
        let found = files::look(root, &local.pattern)?;
        let is_workbook = local.pattern.to_ascii_lowercase().ends_with(".xlsx");
        if in_sql && is_workbook && !local.partitions && found.len() > 1 {
            return Err(FilesError::Workbooks {
                pattern: local.pattern.clone(),
                count: found.len(),
            });
        }
        if local.partitions {
            all.push(partitions::as_one_file(&local.pattern, &found));
            partitions = found;
        } else if local.invalidate_on_change {
            all.extend(found);
        } else {
            others.extend(found);
        }
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all.dedup_by(|a, b| a.path == b.path);
    Ok(Found {
        files: all,
        partitions,
        others,
    })
}

/// Runs file work on a blocking thread. A cancelled run does not wait for it.
pub(super) async fn blocking<T: Send + 'static>(
    root: &Arc<Path>,
    cancel: &CancellationToken,
    work: impl FnOnce(&Path) -> Result<T, FilesError> + Send + 'static,
) -> Result<T, Error> {
    let root = Arc::clone(root);
    let work = tokio::task::spawn_blocking(move || work(&root));
    match cancel.run_until_cancelled(work).await {
        Some(Ok(result)) => result.map_err(|error| failure::from_files(&error)),
        Some(Err(panic)) => Err(Error::permanent("panic", panic.to_string())),
        None => Err(failure::cancelled()),
    }
}
