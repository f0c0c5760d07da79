//! Cases about cancelling builds and queries.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use watershed_drivers::olap::{BuildError, Failure, Query, QueryError};

use super::cases;
use crate::bench::{Bench, Verdict, Wrong, numbered, same, table, tag};

/// The longest time that work may go on after being cancelled: a second is promised, the rest allows for a busy
/// machine.
const PROMISED: Duration = Duration::from_secs(5);
/// Time before the cancellation, in which the work gets started. No result depends on its length.
const UNDER_WAY: Duration = Duration::from_millis(30);

cases! {
    a_cancelled_build_ends_soon_and_changes_nothing: Cancel, Appears;
    a_cancelled_query_ends_soon: Cancel;
    a_cancelled_token_does_no_work_at_all: Cancel;
}

/// Starts work, cancels it while it runs, and returns its result.
async fn cancelled<T>(cancel: &CancellationToken, work: impl Future<Output = T>) -> Result<T, Wrong> {
    let mut work = std::pin::pin!(work);
    if timeout(UNDER_WAY, &mut work).await.is_ok() {
        return Err(Wrong::Found(
            "work that goes on for ever was done at once".to_owned(),
        ));
    }
    cancel.cancel();
    let ended = timeout(PROMISED, work).await;
    ended.map_err(|_| Wrong::Found(format!("the work goes on {PROMISED:?} after it was cancelled")))
}

async fn a_cancelled_build_ends_soon_and_changes_nothing(mut bench: Bench<'_>) -> Verdict {
    bench.build(&table(1, "a", "select 1 as x")).await?;
    let mut slow = numbered(1, 2, "a", watershed_drivers::olap::OutputKind::Table, "");
    slow.sql = bench.factory.endless();
    let cancel = CancellationToken::new();
    let done = cancelled(&cancel, bench.engine.build(&slow, &cancel)).await?;
    same("the end", done, &Err(BuildError::Failed(Failure::Interrupted)))?;
    for _ in 0..2 {
        bench.says("select x from a", "1").await?;
        let tags: Vec<_> = bench.outputs().await?.iter().map(|it| it.tag).collect();
        same("the tag", tags, &[tag(1, 1)][..])?;
        let objects = bench.reopened_after(|person| person.objects()).await?;
        same("what stands there", objects, &["a"][..])?;
    }
    Ok(())
}

async fn a_cancelled_query_ends_soon(bench: Bench<'_>) -> Verdict {
    let cancel = CancellationToken::new();
    let query = Query::new(bench.factory.endless());
    let work = async {
        match bench.engine.query(query, &cancel).await {
            Ok(mut rows) => rows.collect().await.map(drop),
            Err(error) => Err(error),
        }
    };
    let done = cancelled(&cancel, work).await?;
    same("the end", done, &Err(QueryError::Failed(Failure::Interrupted)))?;
    bench.says("select 1 as x", "1").await
}

async fn a_cancelled_token_does_no_work_at_all(bench: Bench<'_>) -> Verdict {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let done = bench.engine.build(&table(1, "a", "select 1 as x"), &cancel).await;
    same("the end", done, &Err(BuildError::Failed(Failure::Interrupted)))?;
    bench.lists(&[]).await
}
