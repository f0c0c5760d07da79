//! Requests to the engine that read no rows of tables: the columns of a statement, and whether it can run.

use tokio_util::sync::CancellationToken;
use watershed_core::Error;
use watershed_dialect::ENGINE;
use watershed_drivers::olap::{Failure, Query, QueryError, SqlError, Statement, Statements as _, Value};

use crate::{failure, outputs::Outputs};

/// Access to the engine for one invocation, whose cancellation interrupts the engine.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The outputs in the engine, through which it is reached.
    pub outputs: &'a Outputs,
    /// Cancellation token of the invocation.
    pub cancel: &'a CancellationToken,
}

/// Names and types of a statement's columns, or the engine's error against the statement.
pub type Described = Result<Vec<(String, String)>, SqlError>;

impl Asking<'_> {
    /// Returns the columns of a query by binding it, without running it.
    ///
    /// # Errors
    /// When the engine can't be asked.
    pub async fn describe(&self, query: &str) -> Result<Described, Error> {
        let sql = ENGINE.write(&Statement::Columns(query));
        let before = sql.len() - query.len();
        let rows = match self.rows(sql).await? {
            Ok(rows) => rows,
            Err(mut error) => {
                error.offset = error.offset.map(|offset| offset.saturating_sub(before));
                return Ok(Err(error));
            }
        };
        let column = |row: Vec<Value>| {
            let mut texts = row.into_iter().map(|value| value.to_string());
            Some((texts.next()?, texts.next()?))
        };
        Ok(Ok(rows.into_iter().filter_map(column).collect()))
    }

    /// Returns all rows of a query with a small result.
    ///
    /// # Errors
    /// When the engine can't be asked.
    pub async fn rows(&self, sql: String) -> Result<Result<Vec<Vec<Value>>, SqlError>, Error> {
        let query = Query::new(sql);
        let olap = self.outputs.olap();
        let asked = async {
            let mut rows = olap.query(query, self.cancel).await?;
            rows.collect().await
        };
        match asked.await {
            Ok(rows) => Ok(Ok(rows)),
            Err(QueryError::Failed(Failure::Sql(error))) => Ok(Err(error)),
            Err(QueryError::Failed(Failure::Interrupted)) => Err(failure::cancelled()),
            Err(QueryError::Failed(failure)) => Err(failure::from_failure(&failure)),
            Err(error) => Ok(Err(SqlError {
                class: "parser".to_owned(),
                message: error.to_string(),
                ..SqlError::default()
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use watershed_drivers::duckdb::{Engine, Options};

    use super::*;

    #[tokio::test]
    async fn a_question_is_bound_and_not_run_and_ends_when_it_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.duckdb");
        let engine = Engine::new(Options::new(file, folder.path()));
        let outputs = Outputs::new(Arc::new(engine.clone()), folder.path().join("proof")).await;
        let cancel = CancellationToken::new();
        let asking = Asking {
            outputs: &outputs,
            cancel: &cancel,
        };
        // Run, this would take years.
        let years = "SELECT count(*) AS n FROM range(1000000000000) a, range(1000000000000) b";
        let columns = asking.describe(years).await.unwrap().unwrap();
        assert_eq!(columns, [("n".to_owned(), "BIGINT".to_owned())]);
        let refused = asking
            .describe("SELECT\n nothing FROM range(3)")
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(refused.offset, Some("SELECT\n ".len()));

        let interrupt = async {
            while !engine.is_open() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let (asked, ()) = tokio::join!(asking.rows(years.to_owned()), interrupt);
        assert_eq!(&*asked.unwrap_err().code, "interrupted");
        engine.close().await.unwrap();
    }
}
