//! Tests of jobs under the controller.

use std::time::Duration;

use watershed_controller::{Key, Refresh};
use watershed_proto::{JobRetries, JobSchedule, JobSpec, Program};

use super::stand::Stand;
use crate::backend::StartId;
use crate::backend::simulated::Faults;
use crate::job::JobStage;

fn job() -> JobSpec {
    JobSpec {
        program: Some(Program {
            command: vec!["import".into()],
            ..Program::default()
        }),
        success_codes: vec![0, 9],
        ..JobSpec::default()
    }
}

async fn stand() -> Stand {
    Stand::new(1, Faults::NONE).await
}

fn start_of(stand: &Stand, name: &str) -> StartId {
    let uid = stand.controller.get(Key::new("job", name)).unwrap().uid();
    StartId::new(&uid.to_string(), stand.job_record(name).counter).unwrap()
}

/// Lets simulated seconds pass, whether or not anything runs.
async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// W8: a finished key never runs again, whatever restarts.
#[tokio::test(start_paused = true)]
async fn a_job_runs_once_and_again_only_if_somebody_asks() {
    let faults = Faults {
        exits: 1_000,
        max_life: Duration::from_secs(1),
        ..Faults::NONE
    };
    let mut stand = Stand::new(5, faults).await;
    stand.job("import", &job()).await;
    stand.pass(0).await;
    let record = stand.job_record("import");
    assert_ne!(record.stage, JobStage::Running);
    assert_eq!(
        (stand.machine.world.begun(), record.finished.is_some()),
        (1, true)
    );
    stand.restart().await;
    stand.pass(100).await;
    assert_eq!(stand.machine.world.begun(), 1);
    stand
        .controller
        .refresh("job/import", Refresh::Plain)
        .await
        .unwrap();
    stand.pass(0).await;
    assert_eq!(stand.machine.world.begun(), 2);
    let mut edited = job();
    edited.timeout_ms = 5;
    edited.description = "the same".into();
    stand.job("import", &edited).await;
    stand.pass(0).await;
    assert_eq!(stand.machine.world.begun(), 2, "policies make no other run");
    edited.program.as_mut().unwrap().command.push("all".into());
    stand.job("import", &edited).await;
    stand.pass(0).await;
    assert_eq!(stand.machine.world.begun(), 3);
}

/// W8: a job is unready until its first success.
#[tokio::test(start_paused = true)]
async fn a_job_that_runs_is_waited_for_and_one_that_failed_says_so() {
    let stand = stand().await;
    stand.job("import", &job()).await;
    sleep(60).await;
    assert_eq!(stand.job_record("import").stage, JobStage::Running);
    stand.machine.kill(&start_of(&stand, "import"));
    stand.pass(0).await;
    assert_eq!(
        stand.error("job", "import"),
        "killed: job/import exited with signal 9 after 60 s"
    );
    assert_eq!(stand.living(), []);
}

/// W8: attempts, with their waits.
#[tokio::test(start_paused = true)]
async fn a_failed_run_is_tried_again_as_its_retries_say() {
    let stand = stand().await;
    let mut spec = job();
    spec.retries = Some(JobRetries {
        attempts: 3,
        base_ms: 4_000,
        cap_ms: 60_000,
    });
    stand.job("import", &spec).await;
    let mut starts = Vec::new();
    for _ in 0..3 {
        while stand.job_record("import").stage != JobStage::Running {
            sleep(1).await;
        }
        starts.push(stand.now() / 1_000);
        stand.machine.kill(&start_of(&stand, "import"));
        stand.pass(0).await;
    }
    assert_eq!(stand.machine.world.begun(), 3);
    assert!(
        starts[1] - starts[0] >= 4 && starts[2] - starts[1] >= 8,
        "{starts:?}"
    );
    assert_eq!(
        stand.error("job", "import"),
        "killed: job/import failed 3 times, last with signal 9 after 1.0 s"
    );
}

/// Covers rules W7, W8.
#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_stopped_and_has_failed() {
    let stand = stand().await;
    let mut spec = job();
    spec.timeout_ms = 30_000;
    stand.job("import", &spec).await;
    sleep(29).await;
    assert_eq!(stand.living().len(), 1);
    sleep(2).await;
    stand.pass(0).await;
    assert_eq!(
        stand.error("job", "import"),
        "timeout: job/import exited with timeout after 30 s"
    );
}

/// W8: a shutdown leaves the process to the next program, which adopts it, or stops it if the key differs.
#[tokio::test(start_paused = true)]
async fn the_next_program_adopts_a_run_and_replaces_one_of_another_key() {
    let mut stand = stand().await;
    stand.job("import", &job()).await;
    sleep(1).await;
    let first = start_of(&stand, "import");
    stand.restart().await;
    sleep(5).await;
    assert_eq!(
        (stand.living(), stand.machine.world.begun()),
        (vec![first.clone()], 1)
    );
    let mut edited = job();
    edited.program.as_mut().unwrap().command.push("all".into());
    stand.job("import", &edited).await;
    sleep(5).await;
    let second = start_of(&stand, "import");
    assert_ne!(first, second);
    assert_eq!((stand.living(), stand.machine.world.begun()), (vec![second], 2));
    assert_eq!(
        stand.job_record("import").exits.count,
        0,
        "a replaced run has not failed"
    );
}

/// W8: cancelling stops the process.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stops_its_process() {
    let stand = stand().await;
    stand.job("import", &job()).await;
    sleep(1).await;
    stand.controller.cancel("job/import").await.unwrap();
    sleep(1).await;
    assert_eq!(stand.living(), []);
    stand.pass(600).await;
    assert_eq!(
        stand.machine.world.begun(),
        1,
        "nothing but a request runs it again"
    );
    assert_eq!(
        stand.error("job", "import"),
        "cancelled: job/import was cancelled"
    );
    stand
        .controller
        .refresh("job/import", Refresh::Plain)
        .await
        .unwrap();
    sleep(1).await;
    assert_eq!(stand.job_record("import").stage, JobStage::Running);
}

/// W8: cancelling stops the process of a paused job, too, and its end is nobody's failure.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_of_a_paused_job_stops_its_process() {
    let stand = stand().await;
    stand.job("import", &job()).await;
    sleep(1).await;
    stand.controller.pause("job/import").await.unwrap();
    sleep(1).await;
    assert_eq!(stand.living().len(), 1, "a pause lets it go on");
    stand.controller.cancel("job/import").await.unwrap();
    sleep(1).await;
    assert_eq!(stand.living(), []);
    stand.controller.resume("job/import").await.unwrap();
    stand.pass(600).await;
    assert_eq!(
        stand.error("job", "import"),
        "cancelled: job/import was cancelled"
    );
    assert_eq!(stand.machine.world.begun(), 1);
}

/// W8: a request that comes during a run is answered by that run.
#[tokio::test(start_paused = true)]
async fn a_request_during_a_run_leaves_its_process_alone() {
    let stand = stand().await;
    stand.job("import", &job()).await;
    sleep(1).await;
    let first = start_of(&stand, "import");
    let mut request = stand.controller.reconcile("job/import").await.unwrap();
    sleep(1).await;
    assert_eq!(stand.living(), std::slice::from_ref(&first), "it goes on");
    stand
        .machine
        .world
        .exit(&first, crate::policy::exit::Exit::Code(0));
    let outcome = request.outcome(super::stand::LONG).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    stand.pass(60).await;
    assert_eq!(stand.job_record("import").stage, JobStage::Completed);
    assert_eq!(stand.machine.world.begun(), 1);
}

/// W8: ticks alone run a job with a schedule; one during a run is skipped, or replaces it.
#[tokio::test(start_paused = true)]
async fn a_schedule_runs_a_job_and_a_tick_during_a_run_is_skipped_or_replaces_it() {
    let stand = stand().await;
    for (name, concurrency) in [("skips", "forbid"), ("replaces", "replace")] {
        let mut spec = job();
        spec.schedule = Some(JobSchedule {
            every_ms: 60_000,
            concurrency: concurrency.into(),
            ..JobSchedule::default()
        });
        stand.job(name, &spec).await;
    }
    stand.pass(1).await;
    assert_eq!(stand.machine.world.begun(), 0);
    assert_eq!(stand.unready("job", "skips"), "it has not run yet");
    sleep(62).await;
    assert_eq!(stand.machine.world.begun(), 2);
    let first = start_of(&stand, "skips");
    sleep(60).await;
    assert_eq!(start_of(&stand, "skips"), first);
    assert_eq!((stand.machine.world.begun(), stand.living().len()), (3, 2));
    stand.machine.kill(&first);
    sleep(50).await;
    assert_eq!(stand.job_record("skips").stage, JobStage::Failed);
    sleep(12).await;
    assert_eq!(stand.job_record("skips").stage, JobStage::Running);
}

/// W8: times of the new schedule that passed before the edit were not missed.
#[tokio::test(start_paused = true)]
async fn an_edited_schedule_counts_from_the_edit_on() {
    let stand = stand().await;
    let every = |minutes: u64| {
        let mut spec = job();
        spec.schedule = Some(JobSchedule {
            every_ms: minutes * 60_000,
            ..JobSchedule::default()
        });
        spec
    };
    stand.job("import", &every(10)).await;
    sleep(9 * 60).await;
    stand.job("import", &every(5)).await;
    sleep(4 * 60).await;
    assert_eq!(stand.machine.world.begun(), 0);
    sleep(2 * 60).await;
    assert_eq!(stand.machine.world.begun(), 1);
}

/// Covers rule W14.
#[tokio::test(start_paused = true)]
async fn a_deleted_job_stops_its_process() {
    let stand = stand().await;
    stand.job("import", &job()).await;
    sleep(1).await;
    stand.controller.delete("job/import").await.unwrap();
    stand.pass(0).await;
    assert_eq!(stand.living(), []);
}

/// W13: a request is open until its outcome is seen.
#[tokio::test(start_paused = true)]
async fn a_run_whose_order_has_no_answer_is_made_once() {
    let stand = stand().await;
    stand.job("first", &job()).await;
    sleep(1).await;
    stand.machine.world.set_faults(Faults {
        lost_answers: 1_000,
        ..Faults::NONE
    });
    stand.job("import", &job()).await;
    sleep(10).await;
    stand.machine.world.set_faults(Faults::NONE);
    sleep(60).await;
    assert_eq!((stand.living().len(), stand.machine.world.begun()), (2, 2));
    assert_eq!(stand.job_record("import").stage, JobStage::Running);
}

/// W1 and W8: a run of an edit that was taken back is not wanted any more.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_edited_and_edited_back_stops_the_run_of_the_edit() {
    let faults = Faults {
        exits: 1_000,
        max_life: Duration::from_secs(1),
        ..Faults::NONE
    };
    let stand = Stand::new(5, faults).await;
    stand.job("import", &job()).await;
    sleep(30).await;
    assert!(stand.job_record("import").finished.is_some());
    stand.machine.world.set_faults(Faults::NONE);
    let mut edited = job();
    edited.program.as_mut().unwrap().command.push("all".into());
    stand.job("import", &edited).await;
    sleep(5).await;
    assert_eq!(stand.living().len(), 1);
    let before = stand.job_record("import").has_succeeded;
    stand.job("import", &job()).await;
    sleep(30).await;
    assert_eq!(stand.living(), []);
    let stage = match before {
        true => JobStage::Completed,
        false => JobStage::Failed,
    };
    assert_eq!(
        stand.job_record("import").stage,
        stage,
        "what had finished counts"
    );
}

/// W8: the retry of an edit that was taken back is not made, and what had finished before is told.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_edited_back_while_a_retry_waits_is_as_it_had_finished() {
    let faults = Faults {
        exits: 1_000,
        max_life: Duration::from_secs(1),
        ..Faults::NONE
    };
    let stand = Stand::new(5, faults).await;
    stand.job("import", &job()).await;
    sleep(30).await;
    let finished = stand.job_record("import").finished.expect("it ends soon");
    let mut edited = job();
    edited.program.as_mut().unwrap().command.push("all".into());
    edited.success_codes = vec![77];
    edited.retries = Some(JobRetries {
        attempts: 5,
        base_ms: 60_000,
        cap_ms: 60_000,
    });
    stand.job("import", &edited).await;
    sleep(5).await;
    assert_eq!(stand.job_record("import").stage, JobStage::BackingOff);
    stand.job("import", &job()).await;
    sleep(600).await;
    let record = stand.job_record("import");
    assert!(
        matches!(record.stage, JobStage::Completed | JobStage::Failed),
        "{:?}",
        record.stage
    );
    assert_eq!((record.finished, record.exits.next), (Some(finished), None));
}

/// W8: a job whose record changes without another run has made nothing new.
#[tokio::test(start_paused = true)]
async fn a_job_runs_again_for_runs_of_what_it_refers_to_and_for_nothing_else() {
    let faults = Faults {
        exits: 1_000,
        max_life: Duration::from_secs(1),
        ..Faults::NONE
    };
    let stand = Stand::new(5, faults).await;
    let all_codes = JobSpec {
        success_codes: (0..=255).collect(),
        retries: Some(JobRetries {
            attempts: 100,
            base_ms: 1_000,
            cap_ms: 1_000,
        }),
        ..job()
    };
    stand.job("import", &all_codes).await;
    stand.job_after("report", &all_codes, "import").await;
    let ends = async |name: &str| {
        while stand.job_record(name).stage != JobStage::Completed {
            sleep(1).await;
        }
    };
    ends("import").await;
    ends("report").await;
    let first = (
        stand.job_record("import").finished,
        stand.job_record("report").counter,
    );
    stand.machine.world.set_faults(Faults::NONE);
    let mut edited = all_codes.clone();
    edited.program.as_mut().unwrap().command.push("all".into());
    stand.job("import", &edited).await;
    sleep(5).await;
    stand.job("import", &all_codes).await;
    sleep(60).await;
    let after = (
        stand.job_record("import").finished,
        stand.job_record("report").counter,
    );
    assert_eq!(after, first, "the run of the edit was taken back");
    assert_eq!(stand.job_record("report").stage, JobStage::Completed);

    stand.machine.world.set_faults(faults);
    stand
        .controller
        .refresh("job/import", Refresh::Plain)
        .await
        .unwrap();
    sleep(600).await;
    assert!(
        stand.job_record("report").counter > first.1,
        "another run is news"
    );
}

/// Covers rule W7.
#[tokio::test(start_paused = true)]
async fn a_job_that_may_use_more_memory_than_is_free_waits_for_room() {
    let stand = stand().await;
    stand.machine.world.set_free_memory(1 << 30);
    let mut large = job();
    large.program.as_mut().unwrap().memory_bytes = 2 << 30;
    stand.job("import", &large).await;
    sleep(60).await;
    let record = stand.job_record("import");
    assert_eq!(
        (record.counter, record.reason.as_str()),
        (0, "insufficient_resources")
    );
    assert_eq!(record.transitions.len(), 1);
    stand.machine.world.set_free_memory(4 << 30);
    sleep(15).await;
    assert_eq!(stand.machine.world.begun(), 1);
}
