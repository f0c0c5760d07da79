//! Facts about a project's outputs for its language server: questions to whoever runs the project, and their answers.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use watershed_api::documents::{ResourceDocument, Time};
use watershed_api::operations::ops;
use watershed_api::request::{QueryRequest, StatusRequest};
use watershed_api::{Operation as _, Reply, Request};
use watershed_compilers::{Kind, ResourceKey};
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Statement, Statements as _};
use watershed_locks::Unpoisoned as _;
use watershed_lsp::{Column, Facts, ResourceStatus};

use crate::units;

/// Most columns of outputs that are read: those of the largest projects.
const MOST_COLUMNS: u64 = 200_000;
/// The time that the engine has to list the columns, in milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// The time after which facts are read again: a look costs milliseconds, and tables change more slowly than people ask.
const FRESH: Duration = Duration::from_secs(5);

/// The facts as they were last read. Clones share them.
#[derive(Clone, Default)]
pub struct LatestFacts(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    facts: Arc<Facts>,
    /// The time at which the last look began; none before the first.
    looked: Option<Instant>,
    is_looking: bool,
}

impl LatestFacts {
    /// Returns the facts.
    pub fn get(&self) -> Arc<Facts> {
        Arc::clone(&self.0.lock().unpoisoned().facts)
    }

    /// Starts to read the facts again if the last look was a while ago, without waiting. What can't be looked at now is as
    /// it was before.
    pub fn renew<F>(&self, threads: &tokio::runtime::Handle, look: impl FnOnce() -> F)
    where
        F: Future<Output = Option<Facts>> + Send + 'static,
    {
        let mut known = self.0.lock().unpoisoned();
        if known.is_looking || known.looked.is_some_and(|then| then.elapsed() < FRESH) {
            return;
        }
        (known.looked, known.is_looking) = (Some(Instant::now()), true);
        let (latest, look) = (self.clone(), look());
        // Ends with its look, which is bounded by the questions' own times; the runtime's end ends it too.
        threads.spawn(async move {
            let facts = look.await;
            let mut known = latest.0.lock().unpoisoned();
            known.is_looking = false;
            if let Some(facts) = facts {
                known.facts = Arc::new(facts);
            }
        });
    }
}

/// Returns the questions whose answers are the facts.
pub fn questions() -> [Request; 2] {
    let status = StatusRequest {
        all: true,
        ..StatusRequest::default()
    };
    let columns = QueryRequest {
        limit: Some(MOST_COLUMNS),
        timeout_ms: Some(PATIENCE_MS),
        ..QueryRequest::new(ENGINE.write(&Statement::Catalog))
    };
    [ops::Status::request(status), ops::Query::request(columns)]
}

/// Adds a part of an answer to the facts.
pub fn hear(facts: &mut Facts, reply: Reply) {
    match reply {
        Reply::Done(answer) => {
            let document = ops::Status::output(*answer);
            let resources = document.iter().flat_map(|document| &document.resources);
            facts.statuses.extend(resources.filter_map(resource_status));
        }
        Reply::Rows(rows) => rows.iter().for_each(|row| add_column(facts, row)),
        _ => {}
    }
}

fn resource_status(document: &ResourceDocument) -> Option<(ResourceKey, ResourceStatus)> {
    let key = ResourceKey::new(Kind::read(&document.kind)?, &document.name);
    let last_run = document.last_run.as_ref().map(|run| {
        format!(
            "{}: {}, {}",
            units::ago(run.started_at, Time::now()),
            run.outcome.as_str(),
            units::duration(run.duration_ms)
        )
    });
    let status = ResourceStatus {
        health: document.health.as_str().replace('_', " "),
        last_run,
        error: document.error.as_ref().map(|error| error.message.clone()),
    };
    Some((key, status))
}

fn add_column(facts: &mut Facts, row: &[Value]) {
    let text = |at: usize| row.get(at).and_then(Value::as_str);
    if let (Some(table), Some(name), Some(data_type)) = (text(0), text(1), text(2)) {
        let columns = facts.columns.entry(table.to_lowercase()).or_default();
        columns.push(Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
        });
    }
}
