//! The consistency check of the controller and its catalog.

use watershed_api::documents::{CheckDocument, CheckFinding, Compared, ResourceName};
use watershed_api::request::NoInput;
use watershed_api::{Code, Exit, Problem};
use watershed_controller::Limits;
use watershed_controller::consistency::{CheckError, Compared as CoreCompared, Consistency, Finding, Rule};
use watershed_controller::resource::Revision;
use watershed_core::{Core, Now, Stored};

use crate::instance::Instance;
use crate::instance::look::{self, look};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::service::Principal;
use crate::service::place::Place;

/// The rule that findings about the catalog's file are listed under.
const FILE: &str = "file";

/// Checks the consistency of the controller and its catalog.
pub(crate) async fn check(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<CheckDocument, Problem> {
    match place.running() {
        Ok(running) => check_live(place, running.instance).await,
        Err(_) => check_at_rest(place).await,
    }
}

/// Checks the running controller, and compares its catalog with the stored one.
async fn check_live(place: &impl Place, instance: &Instance) -> Result<CheckDocument, Problem> {
    let damage = match place.catalog() {
        Some(file) => look(move |runtime| runtime.block_on(file.integrity())).await?,
        None => Vec::new(),
    };
    match instance.controller().check_consistency().await {
        Ok(found) => Ok(document(
            place.project(),
            &found,
            file_findings(damage),
            Life::Live,
        )),
        Err(CheckError::Refused(error)) => Err(Problem::new(Code::Unavailable, error.to_string())),
        Err(CheckError::Store(error)) => Err(Problem::new(Code::StateUnreadable, crate::chain(&error))),
    }
}

async fn check_at_rest(folder: &impl Place) -> Result<CheckDocument, Problem> {
    let project = folder.project();
    let (Some(file), Some(catalog)) = (folder.catalog(), folder.catalog()) else {
        return Ok(loaded(project, Stored::default(), Vec::new()));
    };
    let damage = look(move |runtime| runtime.block_on(file.integrity())).await?;
    let name = folder.options().name.clone();
    match look(move |runtime| runtime.block_on(catalog.read(&name))).await {
        Ok(stored) => Ok(loaded(project, stored, damage)),
        Err(problem) if damage.is_empty() => Err(problem),
        Err(problem) => Ok(unreadable(project, problem, damage)),
    }
}

/// Checks a folder at rest. A file that is no catalog at all is a finding, not an error.
pub(super) async fn check_or_damage(folder: &impl Place) -> Result<CheckDocument, Problem> {
    if let Some(file) = folder.catalog()
        && let Err(error) = look(move |runtime| Ok(runtime.block_on(file.integrity()))).await?
        && error.is_damage()
    {
        let problem = look::unreadable(error);
        return Ok(unreadable(folder.project(), problem, Vec::new()));
    }
    check_at_rest(folder).await
}

/// Returns the document of a catalog that can't be read, with the damage in its file.
fn unreadable(project: &Project, problem: Problem, damage: Vec<String>) -> CheckDocument {
    let mut damage = file_findings(damage);
    damage.push(CheckFinding {
        rule: Rule::StoreAgrees.as_str().to_owned(),
        resource: None,
        message: problem.message,
    });
    document(project, &not_loaded(Revision::default(), 0), damage, Life::AtRest)
}

fn file_findings(damage: Vec<String>) -> Vec<CheckFinding> {
    let finding = |message| CheckFinding {
        rule: FILE.to_owned(),
        resource: None,
        message,
    };
    damage.into_iter().map(finding).collect()
}

fn not_loaded(revision: Revision, resources: usize) -> Consistency {
    Consistency {
        revision,
        resources,
        rules: vec![Rule::StoreAgrees],
        compared: CoreCompared::Not,
        findings: Vec::new(),
    }
}

/// Loads a stored catalog into a core and checks it; `damage` lists the damage in the catalog's file.
fn loaded(project: &Project, stored: Stored, damage: Vec<String>) -> CheckDocument {
    let (revision, resources) = (stored.revision, stored.rows.len());
    // No kind is needed: nothing is run, and what is loaded is the same.
    let opened = Core::open(Now::default(), Limits::default(), Vec::new(), stored.clone());
    let mut damage = file_findings(damage);
    let found = match opened {
        Ok((core, _)) => core.check_against(Some(&stored)),
        Err(error) => {
            damage.push(CheckFinding {
                rule: Rule::StoreAgrees.as_str().to_owned(),
                resource: None,
                message: crate::chain(&error),
            });
            not_loaded(revision, resources)
        }
    };
    document(project, &found, damage, Life::AtRest)
}

fn document(project: &Project, found: &Consistency, damage: Vec<CheckFinding>, life: Life) -> CheckDocument {
    // What was loaded from the catalog alone is wrong because the catalog is.
    let is_damaged = !damage.is_empty()
        || found
            .findings
            .iter()
            .any(|finding| finding.rule == Rule::StoreAgrees)
        || life == Life::AtRest && !found.findings.is_empty();
    let mut findings = damage;
    findings.extend(found.findings.iter().map(told));
    let exit = match (is_damaged, findings.is_empty()) {
        (true, _) => Exit::StateFolder,
        (false, true) => Exit::Converged,
        (false, false) => Exit::ProjectError,
    };
    CheckDocument {
        schema: CheckDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        live: life == Life::Live,
        revision: found.revision.0,
        resources: found.resources as u64,
        rules: found.rules.iter().map(|rule| rule.as_str().to_owned()).collect(),
        compared: match found.compared {
            CoreCompared::Not => Compared::Not,
            CoreCompared::Partly => Compared::Partly,
            CoreCompared::Whole => Compared::Whole,
        },
        findings,
        exit_code: exit.code(),
    }
}

fn told(finding: &Finding) -> CheckFinding {
    let name = |key: &watershed_core::Key| ResourceName::new(key.kind.as_str(), key.name.as_str());
    CheckFinding {
        rule: finding.rule.as_str().to_owned(),
        resource: finding.subject.as_ref().map(|subject| name(&subject.key)),
        message: finding.detail.clone(),
    }
}
