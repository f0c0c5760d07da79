//! The database of another system that a model reads, attached for a build.

use watershed_compilers::Scope;
use watershed_core::Error;
use watershed_drivers::olap::{Attached, BuildError, Failure, System};
use watershed_drivers::reach;
use watershed_outputs::{
    database::Connection,
    refs::{self, CONNECTOR},
    sessions,
};
use watershed_proto::{ConnectorSpec, MapValue, ModelSpec};

use super::{objects_now, subject::Subject};
use crate::model::{failure, record::Record, source, state};

/// Returns the database that the statement of a model reads, if it reads one; the spec's variables must be plain
/// values.
///
/// # Errors
/// When it can't be: in a sandbox, without its file, or with a template that can't be executed.
pub(super) async fn databases(subject: Subject<'_>, spec: &ModelSpec) -> Result<Vec<Attached>, Error> {
    let Some(system) = source::database(spec) else {
        return Ok(Vec::new());
    };
    if subject.outputs().sandbox().is_some() {
        return Err(failure::confined_database());
    }
    if spec.partitions.is_some() {
        return Err(failure::partitioned_database());
    }
    let secrets = subject.outputs().secrets();
    let connector = refs::find(subject.context.refs(), CONNECTOR, &spec.input_connector);
    let connector = connector.and_then(refs::spec::<ConnectorSpec>);
    let (empty, mut settings) = (MapValue::default(), Vec::new());
    let own = subject.scope(spec);
    settings.push((spec.input_properties.as_ref().unwrap_or(&empty), own));
    if let Some(connector) = &connector {
        let scope = Scope {
            environment: subject.model.environment.clone(),
            variables: secrets.open(&connector.variables)?,
            ..Scope::default()
        };
        settings.push((connector.properties.as_ref().unwrap_or(&empty), scope));
    }
    let connection = Connection {
        system,
        connector: &spec.input_connector,
        settings,
        root: &subject.model.root,
    };
    let attached = connection.attached(subject.name());
    let attached = attached.map_err(|error| failure::from_render(&error))?;
    match attached.file().filter(|file| !file.is_file()) {
        Some(file) if *file == *subject.model.root => Err(failure::unnamed_database(&spec.input_connector)),
        Some(file) => Err(failure::missing_database(file)),
        None => {
            check_servers(subject, &attached).await?;
            Ok(vec![attached])
        }
    }
}

/// Returns an error if the policy of outgoing connections does not allow the servers of a database.
pub(super) async fn check_servers(subject: Subject<'_>, attached: &Attached) -> Result<(), Error> {
    let checked = reach::check_servers(subject.outputs().egress(), attached).await;
    checked.map_err(|error| failure::from_reach(&error))
}

/// Returns true if the database that a model reads is unchanged since the last build, as its state query yields the
/// same row. Asked only if a build is requested.
pub(super) async fn is_unchanged_database(
    subject: Subject<'_>,
    record: Option<&Record>,
) -> Result<bool, Error> {
    let then = record.and_then(|record| record.state.as_ref());
    let (Some(then), true) = (then, state::asks_input(subject.spec())) else {
        return Ok(false);
    };
    if !objects_now::is_time_to_ask(subject, record)? {
        return Ok(false);
    }
    Ok(state_of_database(subject).await?.as_ref() == Some(then))
}

/// Returns the current first row of the state query, run by the database that the model reads.
pub(super) async fn state_of_database(subject: Subject<'_>) -> Result<Option<MapValue>, Error> {
    let spec = subject.opened_spec()?;
    let scope = subject.scope(&spec);
    let query = state::query(&spec, &scope)?;
    let databases = databases(subject, &spec).await?;
    let (Some(query), Some(database)) = (query, databases.first()) else {
        return Ok(None);
    };
    subject
        .context
        .progress("asking the database whether anything changed");
    let row = async {
        let databases = subject.outputs().olap().databases()?;
        databases.first_row(database, &query.sql, subject.cancel()).await
    };
    let row = row.await.map_err(|failure| match failure {
        Failure::Sql(error) => failure::from_build(&BuildError::State(error)).0,
        failure => failure::from_failure(&failure),
    })?;
    Ok(row.map(state::map))
}

/// Returns true if another database runs the model's SQL, so that its errors have no place in the file.
pub(super) fn is_sent_on(spec: &ModelSpec) -> bool {
    source::database(spec).is_some_and(|system| system != System::DuckDb)
}

/// Returns an error if SQL is meant for a database of its own, as the engine would resolve names differently.
pub(super) fn refuse_other_database(subject: Subject<'_>) -> Result<(), Error> {
    let spec = subject.spec();
    if spec.input_connector == spec.output_connector || spec.sql.is_none() {
        return Ok(());
    }
    let view = refs::find(subject.context.refs(), CONNECTOR, &spec.input_connector);
    let other = view
        .and_then(refs::spec::<ConnectorSpec>)
        .filter(sessions::has_file);
    match other {
        None => Ok(()),
        Some(_) => Err(failure::other_database(&spec.input_connector, subject.paths())),
    }
}
