//! The place of a project's data: the engine's file in the state folder, or the lake that its connector names.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::ResourceName;
use watershed_api::{Code, Problem, hint};
use watershed_compilers::{FileEvent, Project, Scope, Spec};
use watershed_drivers::olap::{Access, Failure, Home, LakeHome, Olap, Rights, Session, System};
use watershed_drivers::regular;
use watershed_outputs::Outputs;
use watershed_outputs::access::{Surroundings, is_store};
use watershed_outputs::database::Connection;
use watershed_outputs::secrets::Secrets;
use watershed_outputs::sessions::sessions;
use watershed_proto::MapValue;
use watershed_reconcilers::project_parser::compilation::{self, Compilation};

use super::{Files, OpenError, Options, compiled, engine_problem, open};
use crate::state_folder::StateFolder;

/// Driver of lakes.
const LAKE: &str = "ducklake";
/// Name of the engine's lake in SQL.
const ALIAS: &str = "watershed";
/// Folders and endings of files in which the usual connector may be declared.
const FILES: [&str; 4] = [
    "connectors/duckdb.yaml",
    "connectors/duckdb.yml",
    "watershed.yaml",
    "rill.yaml",
];

/// The place of a project's data, and the connector that states it.
#[derive(Debug, Default)]
pub(crate) struct Place {
    pub(crate) home: Home,
    /// Name of the connector, with its file; none for the engine's file.
    connector: Option<(String, String)>,
    /// Logins of the stores that the project's files name, for work on a lake before the project is known.
    pub(crate) sessions: Vec<Session>,
    /// The compiled project, if that was needed to find the place.
    compilation: Option<Compilation>,
}

impl Place {
    /// Returns the name of the connector whose lake holds the data; none for the engine's file.
    pub(crate) fn connector(&self) -> Option<&str> {
        self.connector.as_ref().map(|(name, _)| name.as_str())
    }

    /// Returns the compiled project, if that was needed to find the place.
    pub(super) fn take_compilation(&mut self) -> Option<Compilation> {
        self.compilation.take()
    }

    /// Opens a lake, so that one that can't be used is refused before anything is changed. Whoever stays waits for a server
    /// that does not answer.
    ///
    /// # Errors
    /// How the lake can't be used, with the file of its connector.
    pub(super) async fn refuse_unusable(
        &self,
        engine: &dyn Olap,
        outputs: &Outputs,
        files: Files,
    ) -> Result<(), OpenError> {
        let Some((name, file)) = self.connector.as_ref().filter(|_| !outputs.were_as_left()) else {
            return Ok(());
        };
        let Err(failure) = engine.open(&CancellationToken::new()).await else {
            return Ok(());
        };
        let passes = matches!(&failure, Failure::Database(error) if error.passes());
        if passes && files == Files::Watched {
            return Ok(());
        }
        let problem = engine_problem(&failure);
        Err(OpenError::Home(Box::new(Problem {
            message: format!("{file}: {}", problem.message),
            ..problem.about(ResourceName::new("connector", name))
        })))
    }
}

/// Returns the engine of a project that is about to run, and the place of its data.
pub(super) async fn engine(
    options: &Options,
    state: &StateFolder,
) -> Result<(Arc<dyn Olap>, Place), OpenError> {
    let place = find(options, state).await?;
    let engine = open::engine(options, state, place.home.clone(), Access::ReadWrite);
    engine.begin_with(place.sessions.clone());
    Ok((engine, place))
}

/// Returns the place of a project's data. Compiles the project only if it may name a lake.
///
/// # Errors
/// When the connector that models are built on is a lake that can't be used: in a sandbox, or with a mistake in its settings.
pub(crate) async fn find(options: &Options, state: &StateFolder) -> Result<Place, Problem> {
    let (root, compiler) = (options.root.clone(), compiled::compiler_options(options));
    let usual = compiler.olap_connector.clone();
    let may_be_lake = tokio::task::spawn_blocking(move || {
        let name = compilation::manifest(&root, compiler).olap_connector().to_owned();
        name != usual || mentions_lake(&root)
    });
    if !may_be_lake.await.unwrap_or_default() {
        return Ok(Place::default());
    }
    let compilation = compiled::compile(options, state).await?;
    let place = of_project(options, compilation.project())?;
    Ok(Place {
        compilation: Some(compilation),
        ..place
    })
}

fn mentions_lake(root: &Path) -> bool {
    // A pipe of such a name would be waited for.
    let read = |file: &str| regular::read(&root.join(file), FileEvent::MAX_BYTES);
    let mentions = |text: &[u8]| text.windows(LAKE.len()).any(|word| word == LAKE.as_bytes());
    FILES
        .iter()
        .any(|file| read(file).is_ok_and(|text| mentions(&text)))
}

/// Returns the place of the data that a compiled project states.
fn of_project(options: &Options, project: &Project) -> Result<Place, Problem> {
    let name = project.olap_connector();
    let is_it = |found: &str| found.eq_ignore_ascii_case(name);
    let declared = project.resources().find_map(|resource| match &resource.spec {
        Spec::Connector(spec) if is_it(&resource.name) => Some((resource, spec)),
        _ => None,
    });
    let Some((resource, spec)) = declared.filter(|(_, spec)| spec.driver == LAKE) else {
        return Ok(Place::default());
    };
    let name = &resource.name;
    let file = resource.paths.first().cloned().unwrap_or_default();
    if options.sandbox {
        let message =
            format!("{file}: models are built in the lake of connector \"{name}\", outside of the sandbox");
        return Err(Problem::new(Code::WrongState, message).hint(hint::without_sandbox()));
    }
    let empty = MapValue::default();
    let scope = Scope {
        environment: options.environment.clone(),
        variables: project.variables().clone(),
        ..Scope::default()
    };
    let connection = Connection {
        system: System::DuckLake,
        connector: name,
        settings: vec![(spec.properties.as_ref().unwrap_or(&empty), scope)],
        root: &options.root,
    };
    let attached = connection.attached(name).map_err(|error| {
        let message = format!("{file}: connector \"{name}\" can't be used: {error}");
        Problem::new(Code::ProjectError, message)
    });
    let mut database = attached?;
    database.name = ALIAS.to_owned();
    database.rights = Rights::Write;
    let named = options.project();
    if let Some(lake) = &mut database.lake
        && lake.catalog == System::Postgres
    {
        lake.schema
            .get_or_insert_with(|| schema(&named.name, &named.environment));
    }
    Ok(Place {
        home: Home::Lake(Box::new(LakeHome {
            database,
            project: format!("{}/{}", named.name, named.environment),
        })),
        connector: Some((name.clone(), file)),
        sessions: stores(options, project),
        compilation: None,
    })
}

/// Returns the logins of a project's stores.
fn stores(options: &Options, project: &Project) -> Vec<Session> {
    let connectors = project.resources().filter_map(|resource| match &resource.spec {
        Spec::Connector(spec) if is_store(&spec.driver) => Some((resource.name.as_str(), &**spec)),
        _ => None,
    });
    let around = Surroundings {
        environment: &options.environment,
        root: &options.root,
        is_confined: options.sandbox,
    };
    let logins = sessions(connectors, around, &Secrets::default()).into_iter();
    logins.map(|(session, _)| session).collect()
}

/// Returns the usual schema of a catalog in Postgres: one for each project and environment.
fn schema(project: &str, environment: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    format!("watershed_{project}_{environment}")
        .chars()
        .map(plain)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e4_each_project_and_environment_has_a_schema_of_its_own() {
        assert_eq!(schema("Flights (2)", "prod"), "watershed_flights__2__prod");
        assert_ne!(schema("flights", "dev"), schema("flights", "prod"));
    }
}
