//! Statements of a caller in one instance.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::{Outline, Query, QueryError, Schema};
use watershed_pgwire::{Answer, Session};

use super::catalogs::{self, Catalogs};
use super::seat::Seat;
use super::{views, words};
use crate::columns::{described, of_view};
use crate::http::Entered;
use crate::report::kinds;
use crate::service::answers::Statement;
use crate::service::problems::of_query;

/// A caller's access to an instance.
pub(super) struct Reader {
    entered: Arc<Entered>,
    catalogs: Arc<Catalogs>,
    names: views::Names,
    /// True if a name without a schema is that of a view before that of an output.
    prefers_views: AtomicBool,
}

impl Reader {
    /// Returns the access of a caller who has entered.
    pub(super) fn new(entered: Entered, catalogs: Arc<Catalogs>) -> Self {
        let entered = Arc::new(entered);
        Self {
            entered,
            catalogs,
            names: views::Names::default(),
            prefers_views: AtomicBool::new(false),
        }
    }

    /// Asks the catalog; none for a statement that is about outputs.
    async fn look(
        &self,
        sql: &str,
        limit: Option<u64>,
        cancel: &CancellationToken,
    ) -> Result<Option<Answer>, Problem> {
        // A tool that tries its connection asks a constant, also where its person may not ask the outputs.
        let all_constant = self.entered.check_query().is_err();
        let is_constant = all_constant && !words::has_from(sql);
        if !is_constant && !words::may_be_about_catalog(sql) {
            return Ok(None);
        }
        let instance = self.entered.instance();
        let entries = self.entered.entries();
        let slot = instance.slots.take().await?;
        let catalog = self.catalogs.of(&self.entered, &entries, cancel).await;
        let catalog = catalog.map_err(|problem| self.entered.shown(problem))?;
        let known = instance.slots.fence.known().await?;
        let outputs = kinds::outputs(&entries);
        let judging = {
            let (catalog, sql) = (Arc::clone(&catalog), sql.to_owned());
            move || catalogs::statement(&sql, &*catalog, (&outputs, all_constant), &known)
        };
        let judged = tokio::task::spawn_blocking(judging).await;
        let judged = judged.map_err(|_| Problem::new(Code::Defect, "the check of the statement panicked"))?;
        let Some(sql) = judged? else {
            return Ok(None);
        };
        let query = Query {
            limit,
            timeout: Some(self.entered.time_limit()),
            ..Query::new(sql)
        };
        let rows = catalog.query(query, cancel).await;
        let rows = rows.map_err(|error| of_query(&error))?;
        Ok(Some(Answer {
            rows,
            words: Box::new(of_query),
            place: Seat::new(&self.entered, slot, Some(catalog)),
        }))
    }

    /// Asks a metrics view; none for a statement that reads none.
    async fn ask_view(
        &self,
        sql: &str,
        limit: Option<u64>,
        cancel: &CancellationToken,
    ) -> Result<Option<Answer>, Problem> {
        let prefers_views = self.prefers_views.load(Ordering::Relaxed);
        let looking = (&self.names, &*self.catalogs, prefers_views);
        let asked = views::statement(&self.entered, looking, sql).await;
        let Some(asked) = asked.map_err(|problem| self.entered.shown_of_view(problem))? else {
            return Ok(None);
        };
        let (views::Asked { query, slot }, engine) = (asked, &self.entered.instance().engine);
        let rows = engine.query(Query { limit, ..query }, cancel).await;
        let rows = rows.map_err(|error| self.entered.problem_of_view(&error))?;
        let entered = Arc::clone(&self.entered);
        Ok(Some(Answer {
            rows,
            words: Box::new(move |error| entered.problem_of_view(error)),
            place: Seat::new(&self.entered, slot, None),
        }))
    }

    /// Returns the outputs and views that a statement may name, without their rows.
    async fn outlines(&self, sql: &str, cancel: &CancellationToken) -> Result<Vec<Outline>, Problem> {
        let named = words::names(sql);
        let mut outlines = Vec::new();
        if self.entered.check_query().is_ok() {
            let outputs = kinds::outputs(&self.entered.entries());
            let outputs: Vec<String> = outputs.intersection(&named).cloned().collect();
            let described = described(&self.entered.instance().engine, &outputs, cancel).await;
            let described = described.map_err(|error| of_query(&error))?;
            outlines.extend(described.into_iter().map(|(name, columns)| Outline {
                schema: Schema::Main,
                name,
                columns,
            }));
        }
        let views = self.names.of(&self.entered);
        for view in views.iter().filter(|view| named.contains(&view.to_lowercase())) {
            // One that is closed says so when it is asked.
            let Ok(document) = self.entered.view(view).await else {
                continue;
            };
            outlines.push(Outline {
                schema: Schema::Metrics,
                name: view.clone(),
                columns: of_view(&document),
            });
        }
        Ok(outlines)
    }

    /// Returns the types of a statement's parameters, by their numbers.
    async fn parameter_types(
        &self,
        forms: Vec<String>,
        cancel: &CancellationToken,
    ) -> Result<BTreeMap<usize, String>, Problem> {
        // The statement is prepared, and never run, beside as many others as run.
        let slot = self.entered.instance().slots.take().await?;
        let sql = forms.first().map_or("", String::as_str);
        let outlines = self.outlines(sql, cancel).await?;
        let finding = move || {
            let _slot = slot;
            watershed_drivers::parameter_types(&outlines, &forms)
        };
        let found = tokio::task::spawn_blocking(finding).await;
        let found = found.map_err(|_| Problem::new(Code::Defect, "the look for types panicked"))?;
        let found = found.map_err(|failure| of_query(&QueryError::Failed(failure)))?;
        let number = |(name, engine): (String, String)| Some((name.parse().ok()?, engine));
        Ok(found.into_iter().filter_map(number).collect())
    }

    /// Asks the outputs.
    async fn ask(
        &self,
        sql: String,
        limit: Option<u64>,
        cancel: &CancellationToken,
    ) -> Result<Answer, Problem> {
        self.entered.count()?;
        let sql = words::with_literal_times(sql);
        if let Some(answer) = self.look(&sql, limit, cancel).await? {
            return Ok(answer);
        }
        if let Some(answer) = self.ask_view(&sql, limit, cancel).await? {
            return Ok(answer);
        }
        let Statement { query, slot } = self.entered.statement(sql, limit).await?;
        let engine = Arc::clone(&self.entered.instance().engine);
        let rows = engine.query(query, cancel).await;
        let rows = rows.map_err(|error| self.entered.problem(&error))?;
        let entered = Arc::clone(&self.entered);
        Ok(Answer {
            rows,
            words: Box::new(move |error| entered.problem(error)),
            place: Seat::new(&self.entered, slot, None),
        })
    }
}

impl Session for Reader {
    fn run<'a>(
        &'a self,
        sql: String,
        limit: Option<u64>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Answer, Problem>> {
        self.ask(sql, limit, cancel).boxed()
    }

    fn parameters<'a>(
        &'a self,
        forms: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<BTreeMap<usize, String>, Problem>> {
        self.parameter_types(forms, cancel).boxed()
    }

    fn look_in(&self, schemas: Vec<String>) {
        let of = |schema: &str| schemas.iter().position(|own| own == schema);
        let is_before =
            of(views::SCHEMA).is_some_and(|view| of(views::OUTPUTS).is_none_or(|output| view < output));
        self.prefers_views.store(is_before, Ordering::Relaxed);
    }

    fn ended(&self) -> CancellationToken {
        self.entered.ended()
    }

    fn expires_in(&self) -> Duration {
        self.entered.expires_in()
    }
}
