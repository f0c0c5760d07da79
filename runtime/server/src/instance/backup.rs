//! Everything that a project keeps, written into one file and brought back from it.

use std::fs;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use watershed_api::documents::{BackupAction, BackupDocument, Time};
use watershed_api::{Answer, Code, Problem};
use watershed_controller::store::SqliteReader;
use watershed_drivers::duckdb::{Access, Engine};

use super::look::look;
use super::{INSTANCE, Instance, Options, care, engine_options};
use crate::backup::{self, Manifest, ReadError, beside};
use crate::report::document::Project;
use crate::state_folder::StateFolder;

impl Instance {
    /// Writes a backup while everything goes on; builds wait while the engine's file is copied.
    pub(super) async fn backup(&self, file: &Path, force: bool) -> Result<Answer, Problem> {
        let state = self.options.state_folder();
        let state = state.map_err(|error| Problem::new(Code::Unavailable, crate::chain(&error)))?;
        write(&self.engine, &state, &self.project, file, force).await
    }
}

/// Writes a backup of a folder that this process holds.
///
/// # Errors
/// When something can't be read or written; then there is no new file.
pub(crate) async fn backup_alone(
    options: &Options,
    state: &StateFolder,
    file: &Path,
    force: bool,
) -> Result<Answer, Problem> {
    let engine = Engine::new(engine_options(options, state, Access::ReadWrite));
    let written = write(&engine, state, &options.project(), file, force).await;
    if let Err(error) = engine.close().await {
        tracing::warn!(%error, "can't close the engine");
    }
    written
}

async fn write(
    engine: &Engine,
    state: &StateFolder,
    project: &Project,
    file: &Path,
    force: bool,
) -> Result<Answer, Problem> {
    if !state.exists() {
        return Err(Problem::new(
            Code::NotBuilt,
            "nothing was run yet, so there is nothing to keep",
        ));
    }
    if file.exists() && !force {
        let message = format!("`{}` is there already", file.display());
        return Err(Problem::new(Code::AlreadyExists, message).hint("`--force` replaces it"));
    }
    // The catalog first: what the engine holds beyond it is found there, as after a crash.
    let catalog = beside(file, ".catalog.part");
    let _ = fs::remove_file(&catalog);
    let (reader, copy) = (SqliteReader::new(state.catalog()), catalog.clone());
    let copied = look(move |runtime| runtime.block_on(reader.copy_into(&copy))).await;
    let about = Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        environment: project.environment.clone(),
        created_at: Time::now(),
        parts: Vec::new(),
    };
    let job = {
        let (to, catalog, key) = (file.to_path_buf(), catalog.clone(), state.key());
        move |engine: &Path| {
            let all = [
                ("catalog.db", catalog),
                ("main.duckdb", engine.to_path_buf()),
                ("key", key),
            ];
            let there = all.into_iter().filter(|(_, path)| path.exists());
            let files: Vec<(&str, PathBuf)> = there.collect();
            backup::write(&to, about, &files)
        }
    };
    let written = match copied {
        Ok(()) => engine.while_closed(&CancellationToken::new(), job).await,
        Err(refusal) => {
            let _ = fs::remove_file(&catalog);
            return Err(refusal);
        }
    };
    let _ = fs::remove_file(&catalog);
    let written = written.map_err(|failure| care::refusal(&failure))?;
    let (manifest, bytes) = written.map_err(|error| {
        let message = format!("`{}` can't be written: {error}", file.display());
        Problem::new(Code::Unavailable, message)
    })?;
    Ok(answer(BackupAction::Backup, project, file, &manifest, bytes))
}

/// Puts a backup in the place of what a folder holds that this process owns; with `dry_run` it is checked alone.
///
/// # Errors
/// When the backup is damaged or from a newer version, or something can't be written. What the folder held is there then
/// as it was, unless all of the new is there.
pub(crate) async fn restore_alone(
    options: &Options,
    state: &StateFolder,
    file: &Path,
    dry_run: bool,
) -> Result<Answer, Problem> {
    let replaced = state.exists() || state.engine().exists();
    let partial = state.begin_swap().map_err(|error| {
        let folder = state.path();
        let message = format!(
            "the state folder `{}` can't be written: {error}",
            folder.display()
        );
        Problem::new(Code::Unavailable, message)
    })?;
    let checked = check(options, state, file, &partial).await;
    let manifest = match checked {
        Ok(manifest) if !dry_run => manifest,
        checked => {
            state.give_swap_up();
            let manifest = checked?;
            return Ok(restored(options, file, &manifest, replaced, true));
        }
    };
    let names: Vec<String> = manifest.parts.iter().map(|part| part.name.clone()).collect();
    let swapped = state.commit_swap(&names);
    swapped.map_err(|error| {
        let refusal = Problem::new(Code::Unavailable, crate::chain(&error));
        refusal.hint("run the command again")
    })?;
    Ok(restored(options, file, &manifest, replaced, false))
}

/// Unpacks a backup, and looks whether this version can use what is in it.
async fn check(
    options: &Options,
    state: &StateFolder,
    file: &Path,
    into: &Path,
) -> Result<Manifest, Problem> {
    let unreadable = |error: ReadError| {
        let code = match error {
            ReadError::Io(_) => Code::BadArgument,
            ReadError::Other | ReadError::Newer | ReadError::Damaged(_) => Code::StateUnreadable,
        };
        let refusal = Problem::new(code, format!("`{}` can't be restored: {error}", file.display()));
        match error {
            ReadError::Newer => refusal.hint("use the newer version of watershed; nothing was touched"),
            _ => refusal.hint("nothing was touched"),
        }
    };
    let (from, to) = (file.to_path_buf(), into.to_path_buf());
    let unpacked = tokio::task::spawn_blocking(move || backup::unpack(&from, &to, &StateFolder::SWAPPED));
    let unpacked = unpacked
        .await
        .map_err(|panic| Problem::new(Code::Defect, panic.to_string()))?;
    let manifest = unpacked.map_err(unreadable)?;
    let reader = SqliteReader::new(into.join("catalog.db"));
    look(move |runtime| runtime.block_on(reader.read(INSTANCE))).await?;
    let path = into.join("main.duckdb");
    if path.exists() {
        let engine = Engine::new(watershed_drivers::duckdb::Options {
            path,
            ..engine_options(options, state, Access::ReadOnly)
        });
        let opened = engine.open(&CancellationToken::new()).await;
        let closed = engine.close().await;
        opened
            .and(closed.map(drop))
            .map_err(|failure| care::refusal(&failure))?;
    }
    Ok(manifest)
}

fn restored(options: &Options, file: &Path, manifest: &Manifest, replaced: bool, dry_run: bool) -> Answer {
    let bytes = fs::metadata(file).map_or(0, |file| file.len());
    match answer(BackupAction::Restore, &options.project(), file, manifest, bytes) {
        Answer::Backup(document) => Answer::Backup(Box::new(BackupDocument {
            replaced,
            dry_run,
            ..*document
        })),
        other => other,
    }
}

fn answer(action: BackupAction, project: &Project, file: &Path, manifest: &Manifest, bytes: u64) -> Answer {
    Answer::Backup(Box::new(BackupDocument {
        schema: BackupDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        action,
        dry_run: false,
        file: file.display().to_string(),
        bytes,
        created_at: manifest.created_at,
        of: format!("{} ({})", manifest.project, manifest.environment),
        replaced: false,
    }))
}
