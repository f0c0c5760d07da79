//! The conformance suite on the project's engine, for `debug conform`: on data of its own, which are removed afterwards.
//!
//! For a file these are files beside it. For a lake they are a catalog of its own, in the same database as the project's where
//! a server has that, with its rows in files beside the project's state: the project's `data_path` is the lake's alone.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{ConformCase, ConformDocument, ConformEnd, ConformGuarantee};
use watershed_api::{Code, Exit, Problem};
use watershed_conform::{
    CaseEnd, CaseReport, Factory, Images, NotTried, Person, Report, Rival, Scratch, conform_in,
};
use watershed_dialect::{ENGINE, Quoting};
use watershed_drivers::engines;
use watershed_drivers::olap::{
    Build, Cell, Guarantees, Home, LakeHome, Olap, OutputKind, System, Tag, is_in_trash,
};
use watershed_locks::Unpoisoned as _;

use super::{Options, home, open, state_problem};
use crate::state_folder::StateFolder;

/// Beginning of the names of what a trial makes.
const NAME: &str = "watershed_conform";
/// The reason why a file has no rival: its lock is that of the process.
const ONE_PROCESS: &str = "only another process can be kept out of a file, and the command starts none";

/// Holds the project's engine to what it promises, in the cases whose names `is_wanted` accepts.
///
/// # Errors
/// When the engine that the project names can't be used, or there is no room for data of the trial.
pub async fn conform(
    options: &Options,
    state: &StateFolder,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<ConformDocument, Problem> {
    let home = home::find(options, state).await?.home;
    // Private, and out of version control, where nothing was run yet.
    state.create().map_err(|error| state_problem(&error))?;
    let id = Uuid::new_v4().simple().to_string();
    let trial = Trial {
        folder: state.path().join(format!("{NAME}_{id}")),
        id,
        options,
        state,
        home,
        made: AtomicUsize::new(0),
        left: Arc::default(),
    };
    std::fs::create_dir_all(&trial.folder).map_err(|error| {
        let message = format!("`{}` can't be made: {error}", trial.folder.display());
        Problem::new(Code::Unavailable, message)
    })?;
    let report = conform_in(&trial, is_wanted).await;
    if let Err(error) = std::fs::remove_dir_all(&trial.folder) {
        trial.leave(&trial.folder.display().to_string(), &error.to_string());
    }
    let left = std::mem::take(&mut *trial.left.lock().unpoisoned());
    Ok(document(options, &trial.guarantees(), &report, left))
}

fn document(
    options: &Options,
    guarantees: &Guarantees,
    report: &Report,
    left: Vec<String>,
) -> ConformDocument {
    let exit = match report.conforms() {
        true => Exit::Converged,
        false => Exit::ProjectError,
    };
    let project = options.project();
    ConformDocument {
        schema: ConformDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name,
        environment: project.environment,
        driver: report.driver.to_owned(),
        guarantees: Cell::ALL
            .iter()
            .map(|cell| guarantee(*cell, guarantees, report))
            .collect(),
        cases: report.cases.iter().map(case).collect(),
        left,
        exit_code: exit.code(),
    }
}

fn guarantee(cell: Cell, guarantees: &Guarantees, report: &Report) -> ConformGuarantee {
    let number = |is_of: fn(&CaseEnd) -> bool| {
        let leaning = report.cases.iter().filter(|case| case.leans_on.contains(&cell));
        leaning.filter(|case| is_of(&case.end)).count() as u64
    };
    ConformGuarantee {
        name: cell.as_str().to_owned(),
        title: cell.title().to_owned(),
        weaker: !guarantees.keeps(cell),
        passed: number(|end| matches!(end, CaseEnd::Passed)),
        failed: number(|end| matches!(end, CaseEnd::Failed(_))),
        untried: number(|end| matches!(end, CaseEnd::LeftOut(_) | CaseEnd::NotTried(_))),
    }
}

fn case(case: &CaseReport) -> ConformCase {
    let names = |cells: &[Cell]| {
        cells
            .iter()
            .map(|cell| cell.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    let (end, message) = match &case.end {
        CaseEnd::Passed => (ConformEnd::Passed, None),
        CaseEnd::Failed(difference) => (ConformEnd::Failed, Some(difference.clone())),
        CaseEnd::LeftOut(cells) => {
            let message = format!("the engine promises less: {}", names(cells).join(", "));
            (ConformEnd::Weaker, Some(message))
        }
        CaseEnd::NotTried(why) => (ConformEnd::NotTried, Some(why.0.to_owned())),
    };
    ConformCase {
        name: case.name.to_owned(),
        guarantees: names(case.leans_on),
        end,
        message,
    }
}

/// A trial of the project's engine.
struct Trial<'a> {
    id: String,
    folder: PathBuf,
    options: &'a Options,
    state: &'a StateFolder,
    home: Home,
    /// Number of places for data that were made.
    made: AtomicUsize,
    /// Data that could not be removed, each with the reason.
    left: Arc<Mutex<Vec<String>>>,
}

impl Trial<'_> {
    fn leave(&self, what: &str, why: &str) {
        leave(&self.left, what, why);
    }

    /// Returns a home of this trial alone.
    fn home(&self, folder: &Path, number: usize) -> Home {
        let Home::Lake(home) = &self.home else {
            return Home::File;
        };
        let mut database = home.database.clone();
        if let Some(lake) = &mut database.lake {
            lake.data_path = Some(folder.join("files").display().to_string());
            match lake.catalog {
                System::Postgres => lake.schema = Some(format!("{NAME}_{}_{number}", self.id)),
                _ => database.target = folder.join("catalog").display().to_string(),
            }
        }
        Home::Lake(Box::new(LakeHome {
            database,
            project: NAME.to_owned(),
        }))
    }
}

fn leave(left: &Mutex<Vec<String>>, what: &str, why: &str) {
    left.lock().unpoisoned().push(format!("{what}: {why}"));
}

impl Factory for Trial<'_> {
    fn guarantees(&self) -> Guarantees {
        match self.home {
            Home::File => engines::ENGINE,
            Home::Lake(_) => engines::LAKE,
        }
    }

    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.join(number.to_string());
        async move {
            std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
            let home = self.home(&folder, number);
            let place = open::Trial::new(self.options, self.state, folder.join("main.duckdb"), home);
            Ok(Box::new(Data {
                place,
                folder,
                opened: Mutex::default(),
                left: Arc::clone(&self.left),
            }) as Box<dyn Scratch>)
        }
        .boxed()
    }

    fn quoting(&self) -> &dyn Quoting {
        &ENGINE
    }

    fn numbers(&self, rows: u64) -> String {
        open::numbers(rows)
    }

    fn endless(&self) -> String {
        open::endless()
    }
}

/// The data of one case.
struct Data {
    place: open::Trial,
    folder: PathBuf,
    opened: Mutex<Vec<Arc<dyn Olap>>>,
    left: Arc<Mutex<Vec<String>>>,
}

impl Scratch for Data {
    fn open(&self) -> Arc<dyn Olap> {
        let engine = self.place.engine();
        self.opened.lock().unpoisoned().push(Arc::clone(&engine));
        engine
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let opened = std::mem::take(&mut *self.opened.lock().unpoisoned());
        async move {
            for engine in opened {
                if let Err(failure) = engine.close().await {
                    tracing::warn!(%failure, "the engine of a case was not closed in order");
                }
            }
        }
        .boxed()
    }

    fn person(&self) -> Result<Box<dyn Person>, NotTried> {
        Ok(Box::new(Somebody(self.place.clone())))
    }

    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Result<Rival, NotTried>> {
        async move {
            if self.place.is_one_process() {
                return Err(NotTried(ONE_PROCESS));
            }
            // Whoever leads a lake is told by its epoch alone, in whatever process.
            let (rival, cancel) = (self.place.engine(), CancellationToken::new());
            let tag = Tag {
                uid: Uuid::from_u128(77),
                build: Uuid::from_u128(77),
            };
            let build = Build::of_statement(tag, Vec::new(), OutputKind::Table, table, "select 77 as x");
            let is_ours = rival.take(epoch, &cancel).await.is_ok();
            let is_built = is_ours && rival.build(&build, &cancel).await.is_ok();
            let _ = rival.close().await;
            Ok(match is_built {
                true => Rival::Built,
                false => Rival::Refused,
            })
        }
        .boxed()
    }

    fn images(&self) -> Option<Box<dyn Images>> {
        None
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        // Engines that are open still end with their last handle.
        self.opened.lock().unpoisoned().clear();
        if let Err(why) = self.place.forget() {
            leave(&self.left, &self.place.name(), &why);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Somebody with another program on the data.
struct Somebody(open::Trial);

impl Person for Somebody {
    fn make(&self, name: &str, kind: OutputKind, sql: &str, comment: Option<&str>) -> Result<(), String> {
        self.0.outside()?.make(name, kind, sql, comment)
    }

    fn objects(&self) -> Result<Vec<String>, String> {
        let names = self.0.outside()?.objects()?.into_iter();
        Ok(names.filter(|name| !is_in_trash(name)).collect())
    }
}
