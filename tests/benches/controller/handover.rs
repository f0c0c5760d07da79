//! The time without a leader when the leader shuts down and another process waits for the lease.

use std::time::Instant;

use sqlx::postgres::{PgPool, PgPoolOptions};
use watershed_controller::store::{PostgresStore, TablePrefix};
use watershed_tests::measure::{Report, Unit};
use watershed_tests::postgres::Server;

use crate::world::{LOOSE, finish, idle, resource, start};

/// Hand-overs that are measured.
const TIMES: usize = 20;
/// Resources of the catalog that is handed over.
const RESOURCES: usize = 100;

pub(crate) async fn measure(report: &Report) {
    if !report.wants("handover_ms") {
        return;
    }
    let Some(server) = Server::start() else { return };
    let pool = PgPoolOptions::new()
        .max_connections(2)
        .connect(&server.url())
        .await;
    let trip_ms = round_trip_ms(&pool.expect("the server takes connections")).await;
    let mut holder = start(store(&server).await).await;
    for number in 0..RESOURCES {
        holder
            .create(resource(number, LOOSE))
            .await
            .expect("it is created");
    }
    idle(&holder).await;
    let mut gaps = Vec::new();
    for _ in 0..TIMES {
        let waiting = store(&server).await;
        let next = tokio::spawn(async move { (start(waiting).await, Instant::now()) });
        until_it_waits(&server).await;
        let asked = Instant::now();
        finish(holder).await;
        let (taken, at) = next.await.expect("it starts");
        gaps.push((at - asked).as_secs_f64() * 1e3);
        idle(&taken).await;
        holder = taken;
    }
    finish(holder).await;
    let ratios = gaps.iter().map(|gap| gap / trip_ms).collect();
    report.print("handover_ms", Unit::Milliseconds, gaps);
    report.print("handover_ms_per_round_trip", Unit::Ratio, ratios);
}

async fn store(server: &Server) -> PostgresStore {
    let pool = PgPoolOptions::new()
        .max_connections(4)
        .connect(&server.url())
        .await;
    let pool = pool.expect("the server takes connections");
    let store = PostgresStore::new(pool, TablePrefix::default()).await;
    store.expect("the store opens")
}

/// Until a candidate has its line for announcements: that is what is measured, not how it starts up.
async fn until_it_waits(server: &Server) {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .connect(&server.url())
        .await;
    let pool = pool.expect("the server takes connections");
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND state = 'idle'";
    let mut seen = 0_i64;
    while seen == 0 {
        seen = sqlx::query_scalar(listening)
            .fetch_one(&pool)
            .await
            .expect("a number");
    }
    // Its try after that.
    for _ in 0..20 {
        let _: i64 = sqlx::query_scalar(listening)
            .fetch_one(&pool)
            .await
            .expect("a number");
    }
}

/// The median of a statement that does nothing, there and back.
async fn round_trip_ms(pool: &PgPool) -> f64 {
    let mut trips = Vec::new();
    for _ in 0..200 {
        let asked = Instant::now();
        sqlx::query("SELECT 1")
            .execute(pool)
            .await
            .expect("the server answers");
        trips.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    trips.sort_by(f64::total_cmp);
    trips[trips.len() / 2]
}
