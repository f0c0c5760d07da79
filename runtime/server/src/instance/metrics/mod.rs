//! Queries of metrics views.

mod answer;
mod request;

use std::sync::Arc;

use jiff::Timestamp;
use watershed_api::documents::MetricsDocument;
use watershed_core::{Key, Row};
use watershed_metrics::Query;
use watershed_reconcilers::explore;
use watershed_reconcilers::resolvers::{Resources, Views, metrics::Question};

use super::Instance;
use crate::report::Entry;

pub(super) use answer::{columns, range, rows, zone};
pub(super) use request::{Door, Shown, answer, refusal, time, unspoken};
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
        self.asked(query, None, viewer, now).await
    }

    /// Answers a query as [`metrics`](Self::metrics) does, through an explore or a canvas (`explore/NAME`): its rules count as well, and open
    /// nothing that the view's own close.
    ///
    /// # Errors
    /// Those of [`metrics`](Self::metrics), and an explore or a canvas that is not there or does not show the view.
    ///
    /// # Cancel safety
    /// Dropping the future interrupts the engine.
    pub async fn metrics_through(
        &self,
        front: &str,
        query: &Query,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, MetricsError> {
        let front =
            request::front(front).ok_or_else(|| MetricsError::NoFront(Key::new(explore::KIND, front)))?;
        self.asked(query, Some(&front), viewer, now).await
    }

    async fn asked(
        &self,
        query: &Query,
        through: Option<&Key>,
        viewer: &Viewer,
        now: Timestamp,
    ) -> Result<MetricsDocument, MetricsError> {
        let handle = self.controller.handle();
        let question = Question {
            query,
            viewer,
            through,
            now,
            execution_time: None,
        };
        let answer = self.views(&handle).answer(question).await?;
        Ok(answer::document(query, &answer))
    }

    pub(super) fn views<'a>(&'a self, resources: &'a dyn Resources) -> Views<'a> {
        Views {
            olap: self.outputs.olap(),
            cache: Some(&self.cache),
            secrets: self.outputs.secrets(),
            environment: &self.project.environment,
            resources,
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
