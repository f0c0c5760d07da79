//! Options that make no sense: refused when a controller is started, or harmless.

use std::time::Duration;

use watershed_controller::kind::Pool;
use watershed_controller::store::MemoryStore;
use watershed_controller::{Builder, Controller, KindOptions, Limits, StartError};

use crate::task::{SOON, Task, Tasks, builder, key, task};

fn pool_of(limit: usize) -> Pool {
    Pool {
        name: "warehouse".into(),
        limit,
        exclusive: false,
    }
}

fn with(options: KindOptions) -> Builder {
    Controller::builder().kind(options, Tasks)
}

#[tokio::test(start_paused = true)]
async fn limits_of_zero_and_kinds_that_nothing_could_be_of_are_refused_by_name() {
    let kind = KindOptions::new;
    let limits = Limits::default;
    for (started, named) in [
        (with(kind("task").concurrency(0)), "kind \"task\""),
        (
            with(kind("task").pool(pool_of(0))),
            "pool \"warehouse\" of kind \"task\"",
        ),
        (with(kind("task")).limits(limits().concurrency(0)), "concurrency"),
        (with(kind("task")).limits(limits().backlog(0)), "backlog"),
        (with(kind("")), "\"\""),
        (with(kind("a/b")), "\"a/b\""),
        (with(kind("a\nb")), "\"a\\nb\""),
        (with(kind("task")).passive_kind("a/b"), "\"a/b\""),
    ] {
        let store = MemoryStore::new();
        let error = started.store(store).start().await.unwrap_err();
        assert!(matches!(error, StartError::Options(_)), "{error}");
        assert!(error.to_string().contains(named), "{error} does not name {named}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_shortest_times_leave_time_for_everything_else() {
    let times = [
        Duration::ZERO,
        Duration::from_micros(500),
        Duration::from_micros(999),
    ];
    for resync in times {
        let options = KindOptions::new("task").resync(resync).requeue_interval(resync);
        let limits = Limits::default().concurrency(1).promote_after(resync);
        let controller = Controller::builder().kind(options, Tasks).limits(limits);
        let controller = controller.start().await.unwrap();
        for name in ["a", "b"] {
            controller
                .create(task(name, &Task::Build("x".into())))
                .await
                .unwrap();
        }
        let has_run_again = |found: Option<&watershed_controller::Resource>| {
            found.is_some_and(|found| found.row.runs_total > 2)
        };
        for name in ["a", "b"] {
            controller
                .wait_until(key(name), has_run_again, SOON)
                .await
                .unwrap();
        }
        controller.explain(key("a")).await.unwrap();
        controller.shutdown(SOON).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_times_are_as_good_as_none() {
    let far = Duration::MAX;
    let options = KindOptions::new("task")
        .resync(far)
        .requeue_interval(far)
        .deadline(far)
        .cancel_deadline(far)
        .timed_patience(far);
    let limits = Limits::default()
        .promote_after(far)
        .drain_limit(far)
        .commit_patience(far);
    let controller = Controller::builder().kind(options, Tasks).limits(limits);
    let controller = controller.call_timeout(far).start().await.unwrap();
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    controller.wait_until_idle(far).await.unwrap();
    controller.rename(key("a"), "b").settled(far).await.unwrap();
    controller.nudge(key("b")).await.unwrap();
    controller.wait_until_idle(far).await.unwrap();
    controller.delete(key("b")).settled(far).await.unwrap();
    assert!(controller.get(key("b")).is_err());
    assert!(builder(MemoryStore::new()).start().await.is_ok());
    controller.shutdown(far).await.unwrap();
}
