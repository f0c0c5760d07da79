//! Tests that a statement whose future is dropped half-way leaves no transaction open on a connection of the pool.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use sqlx::postgres::{PgPool, PgPoolOptions};
use uuid::Uuid;
use watershed_controller::store::exchange::Exchange;
use watershed_controller::store::{PostgresStore, Store, TablePrefix};

use crate::server::Server;

/// Maximum number of polls of a future before it is dropped; more than any of the futures needs.
const POLLS: usize = 24;

/// Polls a future up to `polls` times, whenever it is woken, and drops it. Returns true if the future has completed.
async fn drop_after(polls: usize, future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|cx| {
        if polled == polls {
            return Poll::Ready(false);
        }
        polled += 1;
        let is_over = future.as_mut().poll(cx).is_ready();
        if is_over {
            return Poll::Ready(true);
        }
        if polled == polls {
            return Poll::Ready(false);
        }
        Poll::Pending
    })
    .await
}

/// Returns the state of the only connection of `pool`, as another connection sees it.
async fn state_of_connection(pool: &PgPool, observer: &PgPool) -> String {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(pool)
        .await
        .unwrap();
    let state = "SELECT state FROM pg_stat_activity WHERE pid = $1";
    sqlx::query_scalar(state)
        .bind(pid)
        .fetch_one(observer)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_transaction_that_is_cancelled_at_any_moment_is_not_left_on_its_connection() {
    let Some(server) = Server::start() else { return };
    let pool = PgPoolOptions::new().max_connections(1);
    let pool = pool.connect(&server.url()).await.unwrap();
    let observer = PgPool::connect(&server.url()).await.unwrap();
    let store = PostgresStore::new(pool.clone(), TablePrefix::default());
    let store = store.await.unwrap().term(Duration::from_secs(60));
    let exchange = store.exchange("default").expect("it is shared");
    let exchange: &dyn Exchange = &*exchange;
    let mut completed = 0;
    for polls in 1..=POLLS {
        let ask = drop_after(polls, async {
            exchange.submit(Uuid::now_v7(), &[]).await.unwrap();
        });
        completed += usize::from(ask.await);
        let state = state_of_connection(&pool, &observer).await;
        assert_eq!(state, "idle", "after {polls} polls of a request");
        let read = drop_after(polls, async {
            exchange.read().await.unwrap();
        });
        completed += usize::from(read.await);
        let state = state_of_connection(&pool, &observer).await;
        assert_eq!(state, "idle", "after {polls} polls of a read");
    }
    assert!(completed > 0, "some were left alone until their end");
    assert!(completed < 2 * POLLS, "some were cancelled");
}
