//! Edits that are awaited to what comes of them, and edits that are refused at the door.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use watershed_controller::request::Settlement;
use watershed_controller::resource::Settled;
use watershed_controller::store::MemoryStore;
use watershed_controller::{
    Context, Controller, Edit, EditError, Error, Key, KindOptions, Outcome, Reconciler, Refusal, Resource,
    RunOutcome, Select, Timestamp, Update, WaitError,
};

use crate::task::{Built, SOON, Task, Tasks, key, reading, start, state_of, task};

fn is_done(outcome: &RunOutcome) -> bool {
    matches!(outcome, RunOutcome::Done { .. })
}

/// Counts its runs, and fails to delete for the first time.
struct Counting {
    runs: Arc<AtomicUsize>,
    deletes: Arc<AtomicUsize>,
}

impl Reconciler for Counting {
    type Spec = Task;
    type State = Built;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        // Time for whoever would come too late.
        tokio::time::sleep(Duration::from_millis(5)).await;
        context.set_state(&Built("made".into())).await?;
        Ok(Outcome::changed())
    }

    async fn delete(&self, _: Context<Self>) -> Result<Outcome, Error> {
        match self.deletes.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Error::transient("busy", "the first attempt fails")),
            _ => Ok(Outcome::changed()),
        }
    }
}

async fn counting() -> (Controller, [Arc<AtomicUsize>; 2]) {
    let counts = [Arc::default(), Arc::default()];
    let [runs, deletes] = counts.clone();
    let builder = Controller::builder().kind("task", Counting { runs, deletes });
    (builder.start().await.unwrap(), counts)
}

#[tokio::test(start_paused = true)]
async fn create_and_wait_runs_once() {
    let (controller, [runs, _]) = counting().await;
    let outcome = controller.create(task("a", &Task::Rest)).outcome(SOON).await;
    assert!(is_done(&outcome.unwrap()));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // Who applies the same again while it runs waits for that run, and asks for none.
    let declared = task("b", &Task::Rest);
    let (first, second) = tokio::join!(
        controller.apply(declared.clone()).outcome(SOON),
        controller.apply(declared.clone()).outcome(SOON)
    );
    assert!(is_done(&first.unwrap()) && is_done(&second.unwrap()));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let third = controller.apply(declared).outcome(SOON).await.unwrap();
    assert_eq!(third, RunOutcome::NotRun(Settled::Idle), "it changes nothing");
}

#[tokio::test(start_paused = true)]
async fn delete_and_wait_ends_when_the_deletion_is_done() {
    let (controller, [_, deletes]) = counting().await;
    controller
        .create(task("a", &Task::Rest))
        .settled(None)
        .await
        .unwrap();
    let mut request = controller.delete("a").follow().await.unwrap();
    let first = request.outcome(SOON).await.unwrap();
    assert!(matches!(first, RunOutcome::Failed { .. }), "{first:?}");
    assert_eq!(request.settled(SOON).await.unwrap(), Settlement::Settled);
    assert_eq!(deletes.load(Ordering::SeqCst), 2);
    assert!(controller.list(Select::all()).resources.is_empty());

    controller
        .create(task("b", &Task::Rest))
        .settled(None)
        .await
        .unwrap();
    let outcome = controller.delete("b").outcome(None).await.unwrap();
    assert_eq!(outcome, RunOutcome::Deleted);
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_awaited_to_the_run_that_saw_it_and_to_all_below() {
    let controller = start(MemoryStore::new()).await;
    controller
        .create(task("a", &Task::Build("x".into())))
        .await
        .unwrap();
    let below = Task::Sleep(1_000, "below".into());
    let edits = vec![
        Edit::apply(reading("b", &below, &["a"])),
        Edit::apply(task("c", &Task::Fail("no".into()))),
    ];
    let outcomes = controller.edit(edits).outcomes(SOON).await.unwrap();
    assert!(is_done(&outcomes[0]), "{outcomes:?}");
    assert!(matches!(outcomes[1], RunOutcome::Failed { .. }), "{outcomes:?}");
    assert_eq!(state_of(&controller, "b").as_deref(), Some("below"));

    let update = controller.update_spec("a", &Task::Build("y".into()));
    assert!(is_done(&update.outcome(SOON).await.unwrap()));
    assert_eq!(state_of(&controller, "a").as_deref(), Some("y"));
    let renamed = controller.rename("a", "z").settled(SOON).await.unwrap();
    assert_eq!(renamed, Settlement::Settled);
    assert_eq!(state_of(&controller, "z").as_deref(), Some("y"));
    controller.pause("z").await.unwrap();
    let paused = controller.update_spec("z", &Task::Build("later".into()));
    assert_eq!(
        paused.outcome(None).await.unwrap(),
        RunOutcome::NotRun(Settled::Paused)
    );
    // What does not end in time has been carried out all the same.
    let moment = Duration::from_millis(1);
    let slow = controller.create(task("slow", &below)).outcome(moment).await;
    let late = WaitError::Deadline(moment);
    assert!(matches!(slow, Err(EditError::Wait(error)) if error == late));
    assert!(controller.get("slow").is_ok());
}

fn refused<T>(result: Result<T, EditError>) -> Refusal {
    match result {
        Err(EditError::Refused(refusal)) => refusal,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was carried out"),
    }
}

#[tokio::test]
async fn what_could_never_run_is_refused_at_the_door() {
    let controller = start(MemoryStore::new()).await;
    for name in ["", "a/b", "a\u{1}", &"x".repeat(513)] {
        let refusal = refused(controller.create(task(name, &Task::Rest)).await);
        assert!(
            matches!(refusal, Refusal::InvalidName { .. }),
            "{name:?}: {refusal}"
        );
    }
    let foreign = Resource::declare("other", "a", &Task::Rest).unwrap();
    let refusal = refused(controller.apply(foreign).await);
    assert_eq!(refusal, Refusal::UnregisteredKind("other".into()));

    let mut unreadable = task("a", &Task::Rest);
    unreadable.spec = Arc::from(*b"{");
    let refusal = refused(controller.create(unreadable.clone()).await);
    assert!(matches!(refusal, Refusal::UnreadableSpec { .. }), "{refusal}");
    controller.create(task("a", &Task::Rest)).await.unwrap();
    for target in [
        key("a").into(),
        "a".into(),
        controller.get("a").unwrap().row.uid.into(),
    ] {
        let target: watershed_controller::resource::Target = target;
        let update = Update {
            spec: Some((Arc::clone(&unreadable.spec), 1)),
            ..Update::default()
        };
        let refusal = refused(controller.update(target, update).await);
        assert!(matches!(refusal, Refusal::UnreadableSpec { .. }), "{refusal}");
    }
    let newer = Edit::apply({
        let mut newer = task("b", &Task::Rest);
        newer.spec_format = 7;
        newer
    });
    let refusal = refused(controller.edit(vec![newer]).outcomes(None).await);
    assert!(matches!(refusal, Refusal::UnreadableSpec { .. }), "{refusal}");
    assert_eq!(controller.list(Select::all()).resources.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_transient_error_is_tried_again_unless_its_kind_says_otherwise() {
    struct Flaky(AtomicUsize);
    impl Reconciler for Flaky {
        type Spec = ();
        type State = ();
        async fn reconcile(&self, _: Context<Self>) -> Result<Outcome, Error> {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0..3 => Err(Error::transient("busy", "not yet")),
                _ => Ok(Outcome::changed()),
            }
        }
    }
    let never = KindOptions::new("once").retry(watershed_controller::RetryPolicy::Never);
    let builder = Controller::builder().kind("flaky", Flaky(AtomicUsize::new(0)));
    let builder = builder.kind(never, Tasks);
    let clock = watershed_controller::clock::TokioClock::starting_at(Timestamp(0));
    let controller = builder.clock(clock).start().await.unwrap();
    let began = tokio::time::Instant::now();
    controller
        .create(Resource::declare("flaky", "a", &()).unwrap())
        .await
        .unwrap();
    let well = |found: Option<&Resource>| found.is_some_and(|it| it.row.last_success.is_some());
    controller
        .wait_until(Key::new("flaky", "a"), well, SOON)
        .await
        .unwrap();
    // One, two and four seconds, exact where the clock is simulated.
    assert_eq!(began.elapsed().as_secs(), 7);
}

#[test]
fn times_convert_to_and_from_those_of_the_standard_library_and_of_jiff() {
    for millis in [-62_135_596_800_000_i64, -1, 0, 1_700_000_000_123] {
        let time = Timestamp(millis);
        assert_eq!(Timestamp::from(std::time::SystemTime::from(time)), time);
        let other = jiff::Timestamp::try_from(time).unwrap();
        assert_eq!(Timestamp::from(other), time);
    }
    assert!(jiff::Timestamp::try_from(Timestamp(i64::MAX)).is_err());
    let before = jiff::Timestamp::from_nanosecond(-1).unwrap();
    assert_eq!(Timestamp::from(before), Timestamp(-1), "rounded down");
}
