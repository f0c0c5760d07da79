//! Upkeep of a project's state: damage found and set aside, disk space freed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;
use watershed_api::documents::{
    CheckDocument, Checked, DoctorCheck, DoctorDocument, GcDocument, SetAside, Time,
};
use watershed_api::request::NoInput;
use watershed_api::{Code, Exit, Problem, hint};
use watershed_controller::Uid;
use watershed_controller::resource::Stage;
use watershed_drivers::olap::{Access, Compacted, Failure, Olap, OpenError};
use watershed_drivers::volume::{Bytes, Volume};
use watershed_reconcilers::model;

use super::check::check_or_damage;
use crate::instance::{Options, engine_problem};
use crate::out::Out;
use crate::report::Entry;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::service::Principal;
use crate::service::place::Place;
use crate::state_folder::StateFolder;

/// Suffixes of the files that belong to a catalog's file, and of those that belong to the engine's.
const BESIDE_CATALOG: [&str; 2] = ["-wal", "-shm"];
const BESIDE_ENGINE: [&str; 2] = [".wal", ".proof"];

/// Looks for damage in the stored files, and in the files that models wrote.
pub(crate) async fn doctor(
    place: &impl Place,
    principal: &Principal,
    input: NoInput,
    out: &Out,
) -> Result<DoctorDocument, Problem> {
    if place.life() == Life::Live {
        return doctor_live(place, principal, input, out).await;
    }
    let folder = place;
    let catalog = Some(check_or_damage(folder).await?).filter(|_| folder.is_locked());
    // A damaged catalog is a finding already: what can't be read from it is not looked at.
    let entries = folder.listing().await.unwrap_or_default().entries;
    let mut checks = checks_at_rest(folder, catalog.as_ref()).await?;
    let found = damaged_files(folder.options(), entries).await?;
    let found = found.into_iter().map(|(_, finding)| finding).collect();
    checks.push(check(Checked::Files, found));
    Ok(doctored(
        folder.project(),
        checks,
        Repairs::default(),
        Life::AtRest,
    ))
}

/// Looks for damage while the project runs on.
async fn doctor_live(
    place: &impl Place,
    principal: &Principal,
    input: NoInput,
    out: &Out,
) -> Result<DoctorDocument, Problem> {
    let catalog = super::check(place, principal, input, out).await?;
    let opened = place.engine(Access::ReadOnly).await?;
    let is_there = opened.engine.own_file().is_err() || place.state().engine().exists();
    let looked = match is_there {
        true => look_at(&*opened.engine).await?,
        false => Looked::default(),
    };
    let mut checks = checks(place.state(), &catalog, looked);
    let before = place.listing().await?.entries;
    let found = damaged_files(place.options(), before.clone()).await?;
    let found = untouched(found, &before, &place.listing().await?.entries);
    checks.push(check(Checked::Files, found));
    Ok(doctored(place.project(), checks, Repairs::default(), Life::Live))
}

/// Looks for damage in a folder that nobody else uses, and sets damaged files aside.
pub(crate) async fn repair(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<DoctorDocument, Problem> {
    if let Ok(running) = place.running() {
        let message = format!("{} uses what is to be repaired", running.instance.as_owner());
        let doctor = hint::operation("doctor", []);
        return Err(Problem::new(Code::HeldElsewhere, message)
            .hint(format!("stop it first; {doctor} looks meanwhile")));
    }
    let folder = place;
    let catalog = check_or_damage(folder).await?;
    let checks = checks_at_rest(folder, Some(&catalog)).await?;
    let mut repairs = Repairs::default();
    for check in checks.iter().filter(|check| !check.findings.is_empty()) {
        let file = match check.what {
            // A run writes missing files; changed ones are somebody's.
            Checked::Folder | Checked::Files => continue,
            // A lake's files and its catalog are on other machines; what is missing there is built again.
            Checked::Engine if !folder.state().engine().exists() => continue,
            Checked::Catalog if catalog.exit_code != Exit::StateFolder.code() => continue,
            Checked::Trash => {
                repairs.mended = mend_trash(folder).await?;
                continue;
            }
            Checked::Catalog => (folder.state().catalog(), BESIDE_CATALOG),
            Checked::Engine => (folder.state().engine(), BESIDE_ENGINE),
        };
        let moved = set_aside(check.what, &file.0, &file.1);
        repairs.set_aside.push(moved.map_err(|error| {
            let message = format!("`{}` can't be set aside: {error}", file.0.display());
            Problem::new(Code::Unavailable, message)
        })?);
    }
    Ok(doctored(folder.project(), checks, repairs, Life::AtRest))
}

/// Frees disk space that nothing uses.
pub(crate) async fn gc(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<GcDocument, Problem> {
    let opened = place.engine(Access::ReadWrite).await?;
    if place.life() == Life::AtRest {
        let limits = place.trash_limits().await;
        if let Ok(trash) = opened.engine.trash() {
            trash.limit(limits);
        }
    }
    let compacted = collect(&*opened.engine).await;
    let closed = opened.close().await;
    let done = compacted.and_then(|done| closed.map(|()| done));
    let done = done.map_err(|failure| engine_problem(&failure))?;
    Ok(collected(place.project(), done))
}

async fn checks_at_rest(
    folder: &impl Place,
    catalog: Option<&CheckDocument>,
) -> Result<Vec<DoctorCheck>, Problem> {
    let state = folder.state();
    let mut looked = Looked::default();
    if folder.is_locked() {
        let opened = folder.engine(Access::ReadOnly).await?;
        if opened.engine.own_file().is_err() || state.engine().exists() {
            looked = look_at(&*opened.engine).await?;
        }
        opened.give_back().await;
    }
    Ok(match catalog {
        Some(catalog) => checks(state, catalog, looked),
        None => vec![
            check(Checked::Folder, folder_findings(state)),
            check(Checked::Engine, looked.engine),
            check(Checked::Trash, looked.trash),
        ],
    })
}

/// Drops expired tables from the trash, and compacts the engine's file or lets go of what a lake need not keep.
async fn collect(engine: &dyn Olap) -> Result<Compacted, Failure> {
    let cancel = CancellationToken::new();
    let file = engine.own_file();
    if file.as_ref().map_or(true, |file| file.path().exists()) {
        engine.trash()?.tidy(&cancel).await?;
        engine.tested_rows()?.forget_old(&cancel).await?;
    }
    engine.upkeep()?.compact(&cancel).await
}

/// The findings in the engine's file.
#[derive(Default)]
struct Looked {
    engine: Vec<String>,
    trash: Vec<String>,
}

/// The damaged files that were set aside, and the tables in the trash that were mended.
#[derive(Default)]
struct Repairs {
    set_aside: Vec<SetAside>,
    mended: Vec<String>,
}

/// Reads all tables in an engine's file, and in the trash where that can be read.
async fn look_at(engine: &dyn Olap) -> Result<Looked, Problem> {
    let cancel = CancellationToken::new();
    let looked = async {
        let engine_findings = engine.upkeep()?.verify(&cancel).await?;
        let trash = match engine_findings.is_empty() {
            true => engine.trash()?.damage(&cancel).await?,
            false => Vec::new(),
        };
        Ok(Looked {
            engine: engine_findings,
            trash: trash.iter().map(ToString::to_string).collect(),
        })
    };
    match looked.await {
        // A lake that was never built in.
        Err(Failure::Open(OpenError::Missing { .. })) => Ok(Looked::default()),
        looked => looked.map_err(|failure: Failure| engine_problem(&failure)),
    }
}

async fn mend_trash(folder: &impl Place) -> Result<Vec<String>, Problem> {
    let opened = folder.engine(Access::ReadWrite).await?;
    let mended = async { opened.engine.trash()?.mend(&CancellationToken::new()).await };
    let mended = mended.await;
    opened.give_back().await;
    let mended = mended.map_err(|failure| engine_problem(&failure))?;
    Ok(mended.iter().map(ToString::to_string).collect())
}

fn checks(state: &StateFolder, catalog: &CheckDocument, looked: Looked) -> Vec<DoctorCheck> {
    let of_catalog = catalog.findings.iter().map(|finding| match &finding.resource {
        Some(resource) => format!("{}: {resource} {}", finding.rule, finding.message),
        None => format!("{}: {}", finding.rule, finding.message),
    });
    vec![
        check(Checked::Folder, folder_findings(state)),
        check(Checked::Catalog, of_catalog.collect()),
        check(Checked::Engine, looked.engine),
        check(Checked::Trash, looked.trash),
    ]
}

/// Checks the files that models wrote. Each finding comes with the model of the file.
async fn damaged_files(options: &Options, entries: Vec<Entry>) -> Result<Vec<(Uid, String)>, Problem> {
    let root = options.root.clone();
    let looked = tokio::task::spawn_blocking(move || {
        let rows = entries.iter().map(|entry| &entry.row);
        let models = rows.filter(|row| row.kind.as_str() == model::KIND);
        models
            .flat_map(|row| {
                let found = model::damaged_files(row, &root);
                found.into_iter().map(|finding| (row.uid, finding))
            })
            .collect()
    });
    looked.await.map_err(|error| {
        Problem::new(
            Code::Unavailable,
            format!("files of models can't be looked at: {error}"),
        )
    })
}

/// Drops the findings about models that were built during the check, whose files are newer than their records.
fn untouched(found: Vec<(Uid, String)>, before: &[Entry], after: &[Entry]) -> Vec<String> {
    let settled_at = |entries: &[Entry], uid: Uid| {
        let entry = entries.iter().find(|entry| entry.row.uid == uid)?;
        let is_settled = matches!(entry.status.stage, Stage::Settled(_));
        is_settled.then_some((entry.row.state_version, entry.row.runs_total))
    };
    let stood = |uid: Uid| {
        let at = settled_at(before, uid);
        at.is_some() && at == settled_at(after, uid)
    };
    let stood = found.into_iter().filter(|(uid, _)| stood(*uid));
    stood.map(|(_, finding)| finding).collect()
}

fn check(what: Checked, findings: Vec<String>) -> DoctorCheck {
    DoctorCheck { what, findings }
}

/// Lists the findings about the state folder, such as a lack of disk space.
fn folder_findings(state: &StateFolder) -> Vec<String> {
    let mut findings = Vec::new();
    if let Ok(volume) = Volume::at_path(&state.path())
        && volume.missing() > 0
    {
        let missing = Bytes(volume.missing());
        findings.push(format!(
            "little room is left: {volume}, at least {missing} more are needed"
        ));
    }
    findings
}

/// Sets a damaged file and the files that belong to it aside, under names that nothing opens.
fn set_aside(what: Checked, file: &Path, beside: &[&str]) -> io::Result<SetAside> {
    let stamp = Time::now().millis();
    let named = |file: &Path, end: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let aside = named(file, &format!(".damaged-{stamp}"));
    // What belongs to it goes first: left alone, it would be taken for that of the new file.
    for end in beside {
        match fs::rename(named(file, end), named(&aside, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(file, &aside)?;
    Ok(SetAside {
        what,
        from: file.display().to_string(),
        to: aside.display().to_string(),
    })
}

fn doctored(project: &Project, checks: Vec<DoctorCheck>, repairs: Repairs, life: Life) -> DoctorDocument {
    let Repairs {
        set_aside: repaired,
        mended,
    } = repairs;
    let left = |check: &DoctorCheck| {
        Some(match check.what {
            _ if check.findings.is_empty() => return None,
            Checked::Folder => Exit::NotNow,
            Checked::Files => Exit::ProjectError,
            Checked::Trash if !mended.is_empty() => return None,
            what if repaired.iter().any(|file| file.what == what) => return None,
            Checked::Catalog | Checked::Engine | Checked::Trash => Exit::StateFolder,
        })
    };
    // The worst of them: 4 before 3 before 1.
    let worst = checks.iter().filter_map(left).max_by_key(|exit| exit.code());
    let exit = worst.unwrap_or(Exit::Converged);
    DoctorDocument {
        schema: DoctorDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        live: life == Life::Live,
        checks,
        repaired,
        mended,
        exit_code: exit.code(),
    }
}

fn collected(project: &Project, done: Compacted) -> GcDocument {
    GcDocument {
        schema: GcDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        engine_bytes_before: done.before,
        engine_bytes_after: done.after,
        exit_code: Exit::Converged.code(),
    }
}
