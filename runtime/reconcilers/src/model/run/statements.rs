//! Statements of a build, and the template values for them.

use watershed_compilers::Scope;
use watershed_core::Error;
use watershed_drivers::olap::{BuildError, SqlError, StateQuery};
use watershed_proto::{MapValue, ModelSpec};

use super::{Base, databases, subject::Subject};
use crate::model::{failure, sample::Sample, state};

/// Returns the values that the templates of a build see.
pub(super) async fn scope_of_build(
    subject: Subject<'_>,
    spec: &ModelSpec,
    base: &Base,
) -> Result<Scope, Error> {
    let mut scope = subject.scope(spec);
    let Base::Rows(onto) = base else {
        return Ok(scope);
    };
    scope.incremental = true;
    let state = match &onto.state {
        Some(state) => Some(state.clone()),
        None => state_now(subject, spec, &scope).await?,
    };
    scope.state = state.unwrap_or_default().fields;
    Ok(scope)
}

/// Returns the current row of the state query, for a model whose last build left none as it had no such query.
pub(super) async fn state_now(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
) -> Result<Option<MapValue>, Error> {
    if state::asks_input(spec) {
        return databases::state_of_database(subject).await;
    }
    let Some(StateQuery { sql, .. }) = state::query(spec, scope)? else {
        return Ok(None);
    };
    let asking = subject.asking();
    let refused = |error: SqlError| failure::from_build(&BuildError::State(error)).0;
    let columns = asking.describe(&sql).await?.map_err(refused)?;
    let rows = asking.rows(sql).await?.map_err(refused)?;
    let names = columns.into_iter().map(|(name, _)| name);
    Ok(rows
        .into_iter()
        .next()
        .map(|row| state::map(names.zip(row).collect())))
}

/// Returns the statement for the sampled part of the rows, if the run takes samples.
pub(super) async fn sampled(subject: Subject<'_>, sql: String) -> Result<String, Error> {
    let Some(sample) = subject.model.sample.filter(|_| Sample::is_of(subject.spec())) else {
        return Ok(sql);
    };
    let asking = subject.asking();
    // What can't be described is told by the build, at its place; what another database yields is not there yet.
    let columns = asking.describe(&sql).await?;
    Ok(columns.map_or_else(|_| sql.clone(), |columns| sample.limited(&sql, &columns)))
}
