//! Operations of reconcilers, and their effects.

use watershed_controller::history::{RunResult, Trigger};
use watershed_controller::resource::{Settled, Stage};
use watershed_controller::store::MemoryStore;
use watershed_controller::{Controller, RequestError, RunOutcome, Select, Work};

use crate::task::{Ending, SOON, Task, Tasks, key, reading, start, state_of, task};

#[tokio::test(start_paused = true)]
async fn a_created_resource_is_reconciled_and_its_state_is_kept() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("a", &Task::Build("done".into())))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&controller, "a").as_deref(), Some("done"));
    let mut request = controller.reconcile(key("a")).await.unwrap();
    let RunOutcome::Done { outcome, .. } = request.outcome(SOON).await.unwrap() else {
        panic!("the run did not succeed")
    };
    assert_eq!(outcome.work, Work::None);
}

#[tokio::test(start_paused = true)]
async fn c9_a_panic_is_the_error_of_its_invocation_and_the_controller_goes_on() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("bad", &Task::Panic("no such luck".into())))
        .await
        .unwrap();
    controller
        .create(reading("below", &Task::Build("built".into()), &["bad"]))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let error = controller
        .get(key("bad"))
        .unwrap()
        .row
        .error
        .clone()
        .expect("it failed");
    assert_eq!((&*error.code, &*error.message), ("panic", "no such luck"));
    assert_eq!(state_of(&controller, "below").as_deref(), Some("built"));
}

#[tokio::test(start_paused = true)]
async fn c8_after_its_cancel_an_invocation_may_write_its_state_and_nothing_else() {
    let controller = start(MemoryStore::new()).await;
    let hangs = [
        ("writes", Ending::Write("written late".into())),
        ("creates", Ending::Create("child".into())),
    ];
    for (name, ending) in hangs {
        controller.create(task(name, &Task::Hang(ending))).await.unwrap();
        let running = controller.wait_until(key(name), |found| found.is_some_and(hangs_on), SOON);
        running.await.unwrap();
        controller.cancel(key(name)).await.unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&controller, "writes").as_deref(), Some("written late"));
    assert_eq!(
        state_of(&controller, "creates").as_deref(),
        Some("the invocation was cancelled")
    );
    assert!(controller.get(key("child")).is_err());
    let history = controller.history(key("writes"), 10).await.unwrap();
    assert_eq!(history[0].result, RunResult::Cancelled);
}

fn hangs_on(resource: &watershed_controller::Resource) -> bool {
    matches!(resource.status.stage, Stage::Running { .. })
        && resource.status.progress.as_deref() == Some("hanging")
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_reconcile_from_inside_an_invocation_is_refused() {
    let controller = start(MemoryStore::new()).await;
    controller.create(task("other", &Task::Rest)).await.unwrap();
    controller
        .create(task("waits", &Task::WaitFor("other".into())))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    assert_eq!(state_of(&controller, "waits").as_deref(), Some("refused"));
}

#[tokio::test(start_paused = true)]
async fn an_invocation_creates_resources_and_deletes_itself() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("maker", &Task::Create("made".into())))
        .await
        .unwrap();
    let itself = controller
        .create(task("brief", &Task::DeleteItself))
        .await
        .unwrap();
    controller.wait_until_idle(SOON).await.unwrap();
    let made = controller.get(key("made")).unwrap();
    assert_eq!(
        made.row.last_run.as_ref().unwrap().reason.trigger,
        Trigger::Created
    );
    assert!(matches!(controller.get(itself), Err(RequestError::Refused(_))));
}

#[tokio::test(start_paused = true)]
async fn kinds_without_a_reconciler_and_bytes_that_cannot_be_read_are_listed_and_left_alone() {
    let store = MemoryStore::new();
    // A controller without a reconciler for them does not know what their bytes mean.
    let builder = Controller::builder().store(store.clone()).passive_kind("task");
    let controller = builder.kind("other", Tasks).start().await.unwrap();
    let mut odd = task("odd", &Task::Build("x".into()));
    odd.spec = b"not json".to_vec().into();
    let mut newer = task("newer", &Task::Build("x".into()));
    newer.spec_format = 7;
    let mut foreign = task("foreign", &Task::Build("x".into()));
    foreign.kind = "other".into();
    for new in [odd, newer, foreign] {
        controller.create(new).await.unwrap();
    }
    controller.wait_until_idle(SOON).await.unwrap();
    let before = controller.list(Select::all());
    controller.shutdown(SOON).await.unwrap();

    let controller = start(store).await;
    controller.wait_until_idle(SOON).await.unwrap();
    let settled = |name: &str| match controller.get(key(name)).unwrap().status.stage {
        Stage::Settled(settled) => settled,
        other => panic!("{other:?}"),
    };
    assert!(matches!(settled("odd"), Settled::Unreadable(error) if error.message.contains("decode")));
    assert!(matches!(settled("newer"), Settled::Unreadable(error) if error.message.contains("format 7")));
    let foreign = controller
        .get(watershed_controller::Key::new("other", "foreign"))
        .unwrap();
    assert_eq!(foreign.status.stage, Stage::Settled(Settled::Unsupported));
    for (now, then) in controller
        .list(Select::all())
        .resources
        .iter()
        .zip(&before.resources)
    {
        assert_eq!(now.row, then.row);
    }
}
