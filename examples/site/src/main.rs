//! Keeps web sites as they are declared: folders, files, symbolic links and a server for each.
//!
//! ```text
//! site run PROJECT.json CATALOG            make everything as declared, and end; servers go on
//! site keep PROJECT.json CATALOG MILLIS    stay, and look again so often, until the input ends
//! site serve FOLDER ...                    what a server item runs
//! ```
//!
//! The modules: `spec` is what people write, `render` turns it into items that depend on one another, `disk` and
//! `server` make the items, and this file puts them under a controller whose catalog is in SQLite.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program for people to read

mod disk;
mod point;
mod render;
mod serve;
mod server;
mod spec;
mod thing;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use watershed_controller::stategraph::GraphReconciler;
use watershed_controller::store::SqliteStore;
use watershed_controller::{Controller, KindOptions, Resource, Select};
use watershed_stategraph::{Executor, ItemType, Retry};

use crate::point::Watched;
use crate::render::Sites;
use crate::spec::{Project, Site};

/// The kind of these resources.
const KIND: &str = "site";

/// The time that a run may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["run", project, catalog] => run(Path::new(project), Path::new(catalog), None).await,
        ["keep", project, catalog, millis] => match millis.parse() {
            Ok(millis) => run(Path::new(project), Path::new(catalog), Some(millis)).await,
            Err(error) => Err(error.into()),
        },
        ["serve", folder, settings, address, tag] => {
            serve::serve(folder, settings, address, tag).map(|()| true)
        }
        _ => Err("usage: site run PROJECT CATALOG | site keep PROJECT CATALOG MILLIS".into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("site: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Types and handlers of all items. Each can be observed, so that drift is found.
fn executor() -> Executor<thing::Thing> {
    let observed = || {
        ItemType::new().observes().retry(Retry::Backoff {
            base_ms: 100,
            cap_ms: 10_000,
            attempts: None,
        })
    };
    Executor::new()
        .handle("folder", observed(), Watched(disk::Folders))
        .handle("file", observed(), Watched(disk::Files))
        .handle("link", observed(), Watched(disk::Links))
        .handle("server", observed(), Watched(server::Servers))
}

/// Makes everything as declared; false if something could not be. With an interval it stays and looks again.
async fn run(project: &Path, catalog: &Path, every_ms: Option<u64>) -> Result<bool, Box<dyn Error>> {
    let project = Project::read(project)?;
    std::fs::create_dir_all(catalog)?;
    let mut sites = GraphReconciler::new(Sites, executor());
    if let Some(every_ms) = every_ms {
        sites = sites.check_every(Duration::from_millis(every_ms));
    }
    let controller = Controller::builder()
        .store(SqliteStore::open(catalog.join("catalog.db")).await?)
        .kind(KindOptions::new(KIND), sites)
        .start()
        .await?;
    declare_all(&controller, &project).await?;
    controller.wait_until_idle(PATIENCE).await?;
    let is_well = report(&controller);
    if every_ms.is_some() {
        tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    }
    controller.shutdown(Duration::from_secs(10)).await?;
    Ok(is_well)
}

/// Brings the catalog to what the project says; the controller does the rest.
async fn declare_all(controller: &Controller, project: &Project) -> Result<(), Box<dyn Error>> {
    let mut known = controller.list(Select::all()).resources;
    // One whose delete a killed run left unfinished goes on being deleted, or is taken up again by its name.
    known.retain(|resource| !resource.row.intents.is_deleted());
    for resource in &known {
        let name = resource.row.name.to_string();
        match project.sites.get(&name) {
            Some(site) if resource.spec::<Site>()? != *site => {
                controller.update_spec(resource.row.uid, site).await?;
            }
            Some(_) => {}
            None => drop(controller.delete(resource.row.uid).await?),
        }
    }
    for (name, site) in &project.sites {
        if !known
            .iter()
            .any(|resource| resource.row.name.to_string() == *name)
        {
            controller.create(Resource::declare(KIND, name, site)?).await?;
        }
    }
    Ok(())
}

/// Says what is wrong, if anything is.
fn report(controller: &Controller) -> bool {
    let mut is_well = true;
    for resource in controller.list(Select::all()).resources {
        if let Some(error) = &resource.row.error {
            is_well = false;
            eprintln!("site \"{}\": {}", resource.row.name, error.message);
        }
    }
    is_well
}

/// A path below the root of a site.
fn below(root: &str, path: &str) -> PathBuf {
    if path.is_empty() {
        PathBuf::from(root)
    } else {
        Path::new(root).join(path)
    }
}
