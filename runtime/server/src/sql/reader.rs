//! Statements of a caller in one instance.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::Query;
use watershed_pgwire::{Answer, Session};

use super::catalogs::{self, Catalogs};
use super::{views, words};
use crate::http::Entered;
use crate::report::kinds;
use crate::service::answers::Statement;
use crate::service::problems::of_query;

/// A caller's access to an instance.
pub(super) struct Reader {
    entered: Arc<Entered>,
    catalogs: Arc<Catalogs>,
    names: views::Names,
}

impl Reader {
    /// Returns the access of a caller who has entered.
    pub(super) fn new(entered: Entered, catalogs: Arc<Catalogs>) -> Self {
        let entered = Arc::new(entered);
        Self {
            entered,
            catalogs,
            names: views::Names::default(),
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
            held: Box::new((slot, catalog)),
        }))
    }

    /// Asks a metrics view; none for a statement that reads none.
    async fn ask_view(
        &self,
        sql: &str,
        limit: Option<u64>,
        cancel: &CancellationToken,
    ) -> Result<Option<Answer>, Problem> {
        let asked = views::statement(&self.entered, (&self.names, &self.catalogs), sql).await;
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
            held: Box::new(slot),
        }))
    }

    /// Asks the outputs.
    async fn ask(
        &self,
        sql: String,
        limit: Option<u64>,
        cancel: &CancellationToken,
    ) -> Result<Answer, Problem> {
        self.entered.count()?;
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
            held: Box::new(slot),
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

    fn ended(&self) -> CancellationToken {
        self.entered.ended()
    }

    fn expires_in(&self) -> Duration {
        self.entered.expires_in()
    }
}
