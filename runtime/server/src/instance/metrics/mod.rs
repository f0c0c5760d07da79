//! Queries of metrics views.

mod answer;
mod request;

use std::sync::Arc;

use jiff::Timestamp;
use watershed_core::{Key, Row};
use watershed_metrics::Query;
use watershed_reconcilers::resolvers::{Resources, Views, metrics::Question};

use super::Instance;
use crate::documents::MetricsDocument;
use crate::report::Entry;

pub(super) use answer::{columns, range, rows};
pub(super) use request::{Door, answer, refusal, time};
pub use watershed_reconcilers::resolvers::Viewer;
pub use watershed_reconcilers::resolvers::metrics::MetricsError;

impl Instance {
    /// Answers a query of a metrics view for a viewer. `now` is the time at which the question is put.
    ///
    /// Ends of time dimensions are read beforehand, in a statement of their own, where ranges and zones need them.
    ///
    /// # Errors
    /// A view that is unknown or was never valid, a query that names what the view lacks or what the viewer may not see, a
    /// policy that can't be evaluated, and those of the engine.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics(
        &self,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, MetricsError> {
        let entries = self.entries();
        let entries = Entries(&entries);
        let question = Question {
            query,
            viewer,
            now,
            execution_time: None,
        };
        let answer = self.views(&entries).answer(question).await?;
        Ok(answer::document(query, &answer))
    }

    pub(super) fn views<'a>(&'a self, entries: &'a Entries<'a>) -> Views<'a> {
        Views {
            olap: &self.engine,
            secrets: self.outputs.secrets(),
            environment: &self.project.environment,
            resources: entries,
            conditions: Arc::clone(&self.conditions),
        }
    }
}

/// The resources of a project as they were listed.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a>(pub(super) &'a [Entry]);

impl Entries<'_> {
    fn live(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().filter(|entry| !entry.row.intents.is_deleted())
    }
}

impl Resources for Entries<'_> {
    fn find(&self, key: &Key) -> Option<Arc<Row>> {
        let found = self.live().find(|entry| entry.row.key() == *key);
        found.map(|entry| Arc::clone(&entry.row))
    }

    fn rows(&self) -> Vec<Arc<Row>> {
        let seen = self.live().filter(|entry| !entry.row.hidden);
        seen.map(|entry| Arc::clone(&entry.row)).collect()
    }
}
