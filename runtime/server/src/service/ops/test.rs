//! `test`: the tests of models, run on the tables as they stand. Nothing is built, and nothing is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::{ResourceError, Severity, TestCounts, TestedModel, TestsDocument, Time};
use watershed_api::request::TestRequest;
use watershed_api::{Code, Exit, Problem};
use watershed_controller::Key;
use watershed_controller::resource::Row;
use watershed_drivers::olap::{Access, Olap};
use watershed_outputs::secrets::Secrets;
use watershed_proto::{Message, ModelSpec};
use watershed_reconcilers::model::data_tests::Tests;

use super::query::until_closed;
use crate::instance::{Built, compiled};
use crate::out::Out;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::{Entry, data_tests, health, kinds, names, resource};
use crate::selection::{Evaluate as _, States};
use crate::service::Principal;
use crate::service::place::{Place, built_engine};

/// Runs the tests of models on the tables as they stand.
pub(crate) async fn test(
    place: &impl Place,
    _: &Principal,
    input: TestRequest,
    out: &Out,
) -> Result<TestsDocument, Problem> {
    let entries = place.listing().await?.entries;
    let mut rows = chosen(&entries, &input)?;
    let opened = built_engine(place, Access::ReadOnly).await?;
    let secrets = place.known_secrets();
    if place.life() == Life::AtRest {
        let compilation = compiled::compile(place.options(), place.state()).await?;
        // Templates of tests need the values, which rows have sealed.
        secrets.learn(compilation.project().variables());
        let declared = compiled::sealed_entries(compilation.project(), Built::Never, &secrets);
        rows = as_edited(rows, &declared);
    }
    let cancel = CancellationToken::new();
    let _interrupt = cancel.clone().drop_guard();
    let testing = tested(&*opened.engine, place.project(), &secrets, &rows, &input, &cancel);
    let tested = until_closed(async { Ok(testing.await) }, out).await;
    opened.give_back().await;
    tested
}

/// Returns the models to test: those named, or the selected ones with tests or with unreadable files.
///
/// # Errors
/// When a name is unknown, means several, or is none of a model, or nothing is selected.
fn chosen(entries: &[Entry], request: &TestRequest) -> Result<Vec<Arc<Row>>, Problem> {
    let typed = &request.names;
    if typed.is_empty() {
        let selected = request.selection.among(entries, States::Known)?;
        let is_tested = |entry: &&Entry| {
            let row = &entry.row;
            selected
                .as_ref()
                .is_none_or(|selected| selected.contains(&row.uid))
                && !row.intents.is_deleted()
                && spec(row).is_some_and(|spec| !spec.tests.is_empty() || spec.fault.is_some())
        };
        let mut rows: Vec<_> = entries
            .iter()
            .filter(is_tested)
            .map(|e| Arc::clone(&e.row))
            .collect();
        rows.sort_by_key(|row| row.key());
        return Ok(rows);
    }
    let find = |name: &String| {
        let found = names::resolve_model(entries, name)?;
        match found.row.kind.as_str() {
            kinds::MODEL => Ok(Arc::clone(&found.row)),
            kind => Err(Problem::new(
                Code::BadArgument,
                format!("`{name}` is a {kind}, and models have tests"),
            )),
        }
    };
    typed.iter().map(find).collect()
}

/// Replaces the specs in stored rows by those of the files, where a file was edited since.
fn as_edited(rows: Vec<Arc<Row>>, declared: &[Entry]) -> Vec<Arc<Row>> {
    let declared: BTreeMap<Key, &Arc<Row>> = declared.iter().map(|e| (e.row.key(), &e.row)).collect();
    let edited = |row: Arc<Row>| match declared.get(&row.key()).filter(|now| now.error.is_none()) {
        Some(now) => Arc::new(Row {
            spec: Arc::clone(&now.spec),
            paths: Arc::clone(&now.paths),
            ..(*row).clone()
        }),
        None => row,
    };
    rows.into_iter().map(edited).collect()
}

/// Runs the tests of models and returns the results.
async fn tested(
    engine: &dyn Olap,
    project: &Project,
    secrets: &Secrets,
    rows: &[Arc<Row>],
    request: &TestRequest,
    cancel: &CancellationToken,
) -> TestsDocument {
    let started_at = Time::now();
    let (mut models, mut diagnostics) = (Vec::new(), Vec::new());
    let mut summary = TestCounts::default();
    for row in rows {
        let mut model = TestedModel {
            kind: row.kind.to_string(),
            name: row.name.to_string(),
            tests: Vec::new(),
            error: None,
        };
        match results(engine, project, secrets, row, cancel).await {
            Ok(results) => {
                for result in &results {
                    let test = data_tests::document(result, &row.paths);
                    summary.add(&test);
                    diagnostics.extend(data_tests::complaint(result, row));
                    model.tests.push(test);
                }
            }
            Err(error) => {
                summary.not_run += declared_tests(row);
                model.error = Some(error);
            }
        }
        models.push(model);
    }
    let is_wrong = summary.failed > 0 || models.iter().any(|model| model.error.is_some());
    let warned = request.warn_error && diagnostics.iter().any(|d| d.severity == Severity::Warning);
    let exit = match is_wrong || warned {
        true => Exit::ProjectError,
        false => Exit::Converged,
    };
    TestsDocument {
        schema: TestsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        started_at,
        duration_ms: Time::now().since_ms(started_at),
        exit_code: exit.code(),
        models,
        diagnostics,
        summary,
    }
}

/// Returns the number of tests that a model declares, at least one: its files may be unreadable.
fn declared_tests(row: &Row) -> u64 {
    let tests = spec(row).map_or(0, |spec| spec.tests.len());
    u64::try_from(tests).unwrap_or(u64::MAX).max(1)
}

async fn results(
    engine: &dyn Olap,
    project: &Project,
    secrets: &Secrets,
    row: &Row,
    cancel: &CancellationToken,
) -> Result<Vec<watershed_proto::TestResult>, ResourceError> {
    let spec = spec(row).unwrap_or_default();
    if let Some(error) = health::own_error(row).filter(|_| spec.fault.is_some()) {
        return Err(resource::failure(error));
    }
    if kinds::output(row).is_none() {
        return Err(never_built(row));
    }
    let tests = Tests::for_model(
        &spec,
        row.name.as_str(),
        &project.environment,
        &row.paths,
        secrets,
    );
    let tests = tests.map_err(|error| resource::failure(&error))?;
    let verdicts = engine.check(&tests.checks, cancel).await;
    let verdicts = verdicts.map_err(|failure| ResourceError {
        code: failure.code().to_owned(),
        message: failure.to_string(),
        hint: failure.hint(),
        details: None,
        at: None,
        retryable: true,
    })?;
    Ok(tests.results(&verdicts, secrets))
}

fn never_built(row: &Row) -> ResourceError {
    ResourceError {
        code: "never-built".to_owned(),
        message: format!(
            "model \"{}\" was never built, so its tests have no rows to run on",
            row.name
        ),
        hint: Some("`watershed run` builds it".to_owned()),
        details: None,
        at: None,
        retryable: false,
    }
}

fn spec(row: &Row) -> Option<ModelSpec> {
    if row.kind.as_str() != kinds::MODEL {
        return None;
    }
    ModelSpec::decode(row.spec.as_ref()).ok()
}
