//! Hand-over on Postgres: whoever waits for an instance takes it when it is given back, not when it looks again.
//!
//! No clock is asked. The candidate is told to look again by itself once an hour only, so it takes over in time only
//! on the announcement; and a trigger counts how often it tries.

use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use watershed_controller::store::postgres::PostgresStore;
use watershed_tests::postgres::Server;

use crate::postgres::{pool, store};
use crate::task::{SOON, Task, builder, start, state_of, task};

/// So long that nothing here waits for it.
const NEVER: Duration = Duration::from_secs(3_600);

/// Has the server announce each try to take an instance, and each release.
const TRIGGERS: &str = "
    CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_notify('steps', TG_ARGV[0]);
        RETURN NEW;
    END $$;
    CREATE TRIGGER tries BEFORE INSERT ON watershed_instances FOR EACH ROW EXECUTE FUNCTION tell('try');
    CREATE TRIGGER releases AFTER UPDATE ON watershed_instances FOR EACH ROW
        WHEN (NEW.holder IS NULL AND OLD.holder IS NOT NULL) EXECUTE FUNCTION tell('release');
    CREATE TRIGGER takes AFTER UPDATE ON watershed_instances FOR EACH ROW
        WHEN (NEW.epoch > OLD.epoch) EXECUTE FUNCTION tell('take')";

async fn candidate(server: &Server) -> PostgresStore {
    store(server, NEVER).await.look_again(NEVER)
}

/// The next steps up to and with one.
async fn steps_to(last: &str, listener: &mut PgListener) -> Vec<String> {
    let mut steps = Vec::new();
    while steps.last().map(String::as_str) != Some(last) {
        let step = tokio::time::timeout(SOON, listener.recv()).await;
        let step = step.unwrap_or_else(|_| panic!("no `{last}` came after {steps:?}"));
        steps.push(step.expect("the server tells").payload().to_owned());
    }
    steps
}

/// Waits until somebody waits for announcements: then nothing that is announced is missed.
async fn until_somebody_listens(pool: &PgPool, listener: &mut PgListener) {
    // It tries before it follows, once it follows, and once more when its line stands.
    for _ in 0..3 {
        steps_to("try", listener).await;
    }
    let listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%watershed_events%'";
    let listening: i64 = sqlx::query_scalar(listening).fetch_one(pool).await.unwrap();
    assert!(listening >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_hands_over_by_one_announcement_and_one_try() {
    let Some(server) = Server::start() else { return };
    let first = start(store(&server, NEVER).await).await;
    first.create(task("a", &Task::Build("x".into()))).await.unwrap();
    first.wait_until_idle(SOON).await.unwrap();
    let watching = pool(&server, 2).await;
    sqlx::raw_sql(TRIGGERS).execute(&watching).await.unwrap();
    let mut listener = PgListener::connect_with(&watching).await.unwrap();
    listener.listen("steps").await.unwrap();

    let second = tokio::spawn(builder(candidate(&server).await).start());
    until_somebody_listens(&watching, &mut listener).await;
    first.shutdown(SOON).await.unwrap();
    // The release is announced to this test by a transaction of its own and to the candidate by the same one.
    assert_eq!(steps_to("take", &mut listener).await, ["release", "try", "take"]);

    let second = second.await.unwrap().unwrap();
    second.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&second, "a").as_deref(), Some("x"));
    second.shutdown(SOON).await.unwrap();
    assert_eq!(
        steps_to("release", &mut listener).await,
        ["release"],
        "renewals are no tries"
    );
}
