//! Backups of a project's state, written and restored.

use std::fs;
use std::path::{Path, PathBuf};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use watershed_api::documents::{BackupAction, BackupDocument, Time};
use watershed_api::request::{BackupRequest, RestoreRequest};
use watershed_api::{Code, Problem, hint};
use watershed_controller::store::SqliteReader;
use watershed_drivers::olap::{Access, Failure, Guard, Olap, OpenError, is_in_trash, trash_table};

use crate::backup::{self, Manifest, ReadError, beside};
use crate::instance::look::look;
use crate::instance::{engine_problem, home, open};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::service::Principal;
use crate::service::place::Place;
use crate::state_folder::StateFolder;

/// Part of a backup with the catalog of a lake, and the parts that a version knows.
const LAKE: &str = "lake.duckdb";
const PARTS: [&str; 4] = ["catalog.db", "main.duckdb", "key", LAKE];

/// Writes a backup. A running project goes on, except that builds wait while the engine's file is copied.
pub(crate) async fn backup(
    place: &impl Place,
    _: &Principal,
    input: BackupRequest,
    _: &Out,
) -> Result<BackupDocument, Problem> {
    if place.life() == Life::Live && place.catalog().is_none() {
        let message = "the catalog is in a store of the program around this, so it is no part of a backup";
        return Err(
            Problem::new(Code::Unavailable, message).hint("copy the store, and the state folder with it")
        );
    }
    if !place.state().exists() {
        let message = "nothing was run yet, so there is nothing to keep";
        return Err(Problem::new(Code::NotBuilt, message));
    }
    let opened = place.engine(Access::ReadWrite).await?;
    let written = write(
        &*opened.engine,
        place.state(),
        place.project(),
        &input.file,
        input.force,
    )
    .await;
    opened.give_back().await;
    written
}

/// Replaces the state in a folder that nobody else uses by a backup.
///
/// # Errors
/// When the backup is damaged or from a newer version, or something can't be written. What the folder held is there then
/// as it was, unless all of the new is there.
pub(crate) async fn restore(
    place: &impl Place,
    _: &Principal,
    input: RestoreRequest,
    _: &Out,
) -> Result<BackupDocument, Problem> {
    if let Ok(running) = place.running() {
        let message = format!("{} uses what is to be replaced", running.instance.as_owner());
        return Err(Problem::new(Code::HeldElsewhere, message).hint("stop it first"));
    }
    let folder = place;
    let (file, dry_run, state) = (input.file.as_path(), input.dry_run, folder.state());
    let replaced = state.exists() || state.engine().exists();
    let partial = state.begin_swap().map_err(|error| {
        let folder = state.path();
        let message = format!(
            "the state folder `{}` can't be written: {error}",
            folder.display()
        );
        Problem::new(Code::Unavailable, message)
    })?;
    let checked = async {
        let manifest = check(folder, file, &partial).await?;
        let lost = restore_lake(folder, &manifest, &partial.join(LAKE), dry_run).await?;
        Ok((manifest, lost))
    };
    let document = |manifest: &Manifest, lost| BackupDocument {
        lost,
        ..restored(folder.project(), file, manifest, replaced, dry_run)
    };
    let (manifest, lost) = match checked.await {
        Ok(checked) if !dry_run => checked,
        checked => {
            state.give_swap_up();
            return checked.map(|(manifest, lost)| document(&manifest, lost));
        }
    };
    let names: Vec<String> = manifest.parts.iter().map(|part| part.name.clone()).collect();
    let swapped = state.commit_swap(&names);
    swapped.map_err(|error| {
        let refusal = Problem::new(Code::Unavailable, crate::chain(&error));
        refusal.hint("run the command again")
    })?;
    Ok(document(&manifest, lost))
}

/// Puts the catalog of a lake back, without the outputs whose files are gone. Returns the tables of those.
///
/// # Errors
/// When the backup and the project are not of the same sort of home, or the lake can't be written. What it held is there then.
async fn restore_lake(
    place: &impl Place,
    manifest: &Manifest,
    copy: &Path,
    dry_run: bool,
) -> Result<Vec<String>, Problem> {
    let is_lake = manifest.parts.iter().any(|part| part.name == LAKE);
    let home = home::find(place.options(), place.state()).await?;
    match (is_lake, home.connector()) {
        (false, None) => return Ok(Vec::new()),
        (true, Some(_)) => {}
        _ => {
            let message = "the backup and the project are not both of a lake";
            return Err(Problem::new(Code::WrongState, message)
                .hint("name the `olap_connector` that the project had then; nothing was touched"));
        }
    }
    let access = match dry_run {
        true => Access::ReadOnly,
        false => Access::ReadWrite,
    };
    let engine = open::engine(place.options(), place.state(), home.home, access);
    engine.begin_with(home.sessions);
    let restored = put_back(&*engine, copy, dry_run).await;
    let closed = engine.close().await;
    match restored {
        // There is no lake yet, so nothing of it can be looked at.
        Err(Failure::Open(OpenError::Missing { .. })) if dry_run => Ok(Vec::new()),
        restored => restored
            .and_then(|lost| closed.map(|_| lost))
            .map_err(|failure| engine_problem(&failure)),
    }
}

async fn put_back(engine: &dyn Olap, copy: &Path, dry_run: bool) -> Result<Vec<String>, Failure> {
    let (copies, cancel) = (engine.catalog_copies()?, CancellationToken::new());
    let mut lost = copies.lost_tables(copy, &cancel).await?;
    if !dry_run {
        copies.restore_catalog(copy, &cancel).await?;
        drop_lost(engine, &lost, &cancel).await?;
    }
    lost.retain(|table| !is_in_trash(table));
    Ok(lost)
}

/// Drops tables whose files are gone, for good: the trash would give them back.
async fn drop_lost(engine: &dyn Olap, lost: &[String], cancel: &CancellationToken) -> Result<(), Failure> {
    let mut builds = Vec::new();
    for output in engine.outputs(cancel).await? {
        if lost.contains(&output.location.name) {
            engine.drop_output(output.tag.uid, Guard::Free, cancel).await?;
            builds.push(output.tag.build);
        }
    }
    let trash = engine.trash()?;
    let kept = trash.list(cancel).await?.into_iter().map(|kept| kept.tag.build);
    let broken = kept.filter(|build| builds.contains(build) || lost.contains(&trash_table(*build)));
    trash.empty(broken.collect(), cancel).await.map(drop)
}

async fn write(
    engine: &dyn Olap,
    state: &StateFolder,
    project: &Project,
    file: &Path,
    force: bool,
) -> Result<BackupDocument, Problem> {
    if file.exists() && !force {
        let message = format!("`{}` is there already", file.display());
        return Err(Problem::new(Code::AlreadyExists, message)
            .hint(format!("{} replaces it", hint::option("force", ""))));
    }
    if let Some(folder) = file.parent().filter(|folder| !folder.is_dir()) {
        let message = format!("the folder `{}` is not there", folder.display());
        return Err(Problem::new(Code::BadArgument, message).hint("make the folder first"));
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
    let (done, written_file) = oneshot::channel();
    let job = {
        let (to, catalog, key) = (file.to_path_buf(), catalog.clone(), state.key());
        let part = match engine.catalog_copies() {
            Ok(_) => LAKE,
            Err(_) => "main.duckdb",
        };
        move |engine: &Path| {
            let all = [
                ("catalog.db", catalog),
                (part, engine.to_path_buf()),
                ("key", key),
            ];
            let there = all.into_iter().filter(|(_, path)| path.exists());
            let files: Vec<(&str, PathBuf)> = there.collect();
            // Who asked may be gone.
            let _ = done.send(backup::write(&to, about, &files));
        }
    };
    let written = match copied {
        Ok(()) => {
            async {
                let cancel = CancellationToken::new();
                let Ok(copies) = engine.catalog_copies() else {
                    return engine.own_file()?.while_closed(Box::new(job), &cancel).await;
                };
                let lake = beside(file, ".lake.part");
                let _ = fs::remove_file(&lake);
                let copied = copies.copy_catalog(&lake, &cancel).await;
                if copied.is_ok() {
                    let from = lake.clone();
                    // A panic drops what it was to say.
                    let _ = tokio::task::spawn_blocking(move || job(&from)).await;
                }
                let _ = fs::remove_file(&lake);
                copied
            }
        }
        Err(refusal) => {
            let _ = fs::remove_file(&catalog);
            return Err(refusal);
        }
    };
    let written = written.await;
    let _ = fs::remove_file(&catalog);
    written.map_err(|failure: Failure| engine_problem(&failure))?;
    let written = written_file.await;
    let written = written.map_err(|gone| Problem::new(Code::Defect, gone.to_string()))?;
    let (manifest, bytes) = written.map_err(|error| {
        let message = format!("`{}` can't be written: {error}", file.display());
        Problem::new(Code::Unavailable, message)
    })?;
    Ok(document(BackupAction::Backup, project, file, &manifest, bytes))
}

/// Unpacks a backup into a folder, and checks that this version can use its parts.
async fn check(folder: &impl Place, file: &Path, into: &Path) -> Result<Manifest, Problem> {
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
    let unpacked = tokio::task::spawn_blocking(move || backup::unpack(&from, &to, &PARTS));
    let unpacked = unpacked
        .await
        .map_err(|panic| Problem::new(Code::Defect, panic.to_string()))?;
    let manifest = unpacked.map_err(unreadable)?;
    let reader = SqliteReader::new(into.join("catalog.db"));
    let name = folder.options().name.clone();
    look(move |runtime| runtime.block_on(reader.read(&name))).await?;
    let path = into.join("main.duckdb");
    if path.exists() {
        let engine = open::engine_of(path, folder.options(), folder.state());
        let opened = engine.open(&CancellationToken::new()).await;
        let closed = engine.close().await;
        opened
            .and(closed.map(drop))
            .map_err(|failure| engine_problem(&failure))?;
    }
    Ok(manifest)
}

fn restored(
    project: &Project,
    file: &Path,
    manifest: &Manifest,
    replaced: bool,
    dry_run: bool,
) -> BackupDocument {
    let bytes = fs::metadata(file).map_or(0, |file| file.len());
    BackupDocument {
        replaced,
        dry_run,
        ..document(BackupAction::Restore, project, file, manifest, bytes)
    }
}

fn document(
    action: BackupAction,
    project: &Project,
    file: &Path,
    manifest: &Manifest,
    bytes: u64,
) -> BackupDocument {
    BackupDocument {
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
        lost: Vec::new(),
    }
}
