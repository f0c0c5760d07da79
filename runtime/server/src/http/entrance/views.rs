//! Metrics views for callers who come by another protocol than HTTP, under the policies for them.

use std::collections::BTreeMap;

use serde_json::Value;
use watershed_api::http::ROUTES;
use watershed_api::http::offers::MetricsViewDocument;
use watershed_api::{Code, Problem};
use watershed_core::Uid;
use watershed_drivers::olap::QueryError;
use watershed_metrics::Query;
use watershed_reconcilers::metrics_view;
use watershed_resolvers::metrics::MetricsError;
use watershed_resolvers::view_table::Fields;

use super::Entered;
use crate::http::offers;
use crate::http::routes::lacking;
use crate::http::scope::Scope;
use crate::service::problems::{misunderstood, of_metrics};
use crate::service::questions::{Asking, Entries, viewer};

/// The path whose rights are those of questions to metrics views.
const PATH: &str = "/metrics/{view}/query";

/// A statement that a metrics view is asked by.
pub(crate) struct Planned {
    /// The statement in the engine's SQL.
    pub(crate) sql: String,
    /// Session values of the statement, by name.
    pub(crate) attributes: BTreeMap<String, String>,
}

/// A metrics view that the caller may ask.
pub(crate) struct Offered {
    /// Id of the view's resource.
    pub(crate) uid: Uid,
    /// The view with the fields that the caller sees, and their types.
    pub(crate) document: MetricsViewDocument,
}

impl Entered {
    /// Refuses a caller who may not ask metrics views over HTTP.
    ///
    /// # Errors
    /// `not-allowed`.
    fn check_metrics(&self) -> Result<Scope, Problem> {
        let route = ROUTES.iter().find(|route| route.path == PATH);
        let route = route.ok_or_else(|| Problem::new(Code::Defect, "there is no path of metrics views"))?;
        if !self.grant.allows(route.role) {
            return Err(lacking(route.role, self.grant, &self.instance));
        }
        let scope = Scope::of(&self.caller);
        scope.check(route)?;
        Ok(scope)
    }

    /// Returns the names of the metrics views that the caller may name. Policies may close some of them.
    pub(crate) fn view_names(&self) -> Vec<String> {
        let scope = self.check_metrics();
        scope.map_or_else(
            |_| Vec::new(),
            |scope| offers::names(&self.open, &scope, metrics_view::KIND),
        )
    }

    /// Returns the metrics views that the caller may ask, with the types of their fields.
    pub(crate) async fn views(&self) -> Vec<Offered> {
        let entries = self.entries();
        let mut views = Vec::new();
        for name in self.view_names() {
            let listed = Entries(&entries);
            let uid = listed.of_kind(metrics_view::KIND, &name).map(|row| row.uid);
            if let (Ok(document), Ok(uid)) = (self.view(&name).await, uid) {
                views.push(Offered { uid, document });
            }
        }
        views
    }

    /// Returns a metrics view as the caller may ask it, with the types of its fields.
    ///
    /// # Errors
    /// As [`fields`](Self::fields).
    pub(crate) async fn view(&self, name: &str) -> Result<MetricsViewDocument, Problem> {
        self.check_metrics()?;
        offers::metrics_view(&self.open, &self.caller, name).await
    }

    /// Returns the fields of a view that the caller sees.
    ///
    /// # Errors
    /// A view that does not exist, is closed to the caller, or was never valid.
    pub(crate) async fn fields(&self, view: &str) -> Result<Fields, Problem> {
        self.check_metrics()?;
        let (asking, entries) = (Asking::of(self.instance()), self.entries());
        let name = Entries(&entries)
            .of_kind(metrics_view::KIND, view)?
            .name
            .to_string();
        if !self.view_names().contains(&name) {
            let message = format!("this token is not for `{}/{name}`", metrics_view::KIND);
            return Err(Problem::new(Code::NotAllowed, message));
        }
        let offered = offers::offered(&asking, Entries(&entries), &self.caller, &name).await?;
        let spec = &offered.spec;
        let dimensions = spec.dimensions.iter().map(|one| &one.name);
        let measures = spec.measures.iter().map(|one| &one.name);
        Ok(Fields {
            view: name,
            dimensions: dimensions.filter(|name| offered.shows(name)).cloned().collect(),
            measures: measures.filter(|name| offered.shows(name)).cloned().collect(),
        })
    }

    /// Plans a metrics query for the caller.
    ///
    /// # Errors
    /// Those of `POST metrics/{view}/query`.
    pub(crate) async fn plan(&self, query: &Value) -> Result<Planned, Problem> {
        let query = Query::from_json(query).map_err(|error| misunderstood(&error))?;
        let (asking, entries) = (Asking::of(self.instance()), self.entries());
        let viewer = viewer(self.caller.user());
        let question = offers::question(&query, &viewer)?;
        let planned = asking.views(&Entries(&entries)).planned(question).await;
        let planned = planned.map_err(of_metrics)?;
        Ok(Planned {
            sql: planned.statement(),
            attributes: planned.attributes().clone(),
        })
    }

    /// Returns the problem of a statement over a metrics view, without the engine's words: they may quote hidden rows.
    pub(crate) fn problem_of_view(&self, error: &QueryError) -> Problem {
        let viewer = viewer(self.caller.user());
        self.shown(of_metrics(viewer.unspoken(MetricsError::Engine(error.clone()))))
    }
}
