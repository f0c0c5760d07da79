//! Tests of services and their replicas.

use std::time::Duration;

use watershed_controller::Key;
use watershed_proto::{Operator, ServiceSpec};

use super::stand::{Stand, checked, service, start_of, with_command, with_variable};
use crate::backend::simulated::Faults;

async fn stand() -> Stand {
    Stand::new(1, Faults::NONE).await
}

/// Covers rules W1, W12.
#[tokio::test(start_paused = true)]
async fn a_service_starts_its_replicas_and_scales_them() {
    let stand = stand().await;
    stand.service("api", &service(3)).await;
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready, 2 ready");
    assert_eq!(stand.machine.world.begun(), 3);
    stand.service("api", &service(5)).await;
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready, 2 ready, 3 ready, 4 ready");
    stand.service("api", &service(1)).await;
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 ready");
    assert_eq!(stand.living(), [start_of(&stand, 0)]);
    stand.service("api", &service(0)).await;
    stand.pass(1).await;
    assert_eq!((stand.stages(), stand.living().len()), (String::new(), 0));
    assert_eq!(stand.unready("service", "api"), "it is scaled to 0");
    assert_eq!(stand.machine.world.begun(), 5);
}

/// W1: only changes of the program make a release; the rest applies in place.
#[tokio::test(start_paused = true)]
async fn an_edit_that_is_no_release_restarts_nothing() {
    let stand = stand().await;
    stand.service("api", &service(2)).await;
    stand.pass(1).await;
    let mut edited = service(2);
    edited.description = "the same".into();
    if let Some(restart) = edited.restart.as_mut() {
        restart.base_ms = 1;
    }
    stand.service("api", &edited).await;
    stand.pass(1).await;
    assert_eq!(stand.machine.world.begun(), 2);
    let replicas = stand.replicas();
    assert!(
        replicas
            .values()
            .all(|(_, spec, _)| spec.restart.base.as_millis() == 1)
    );
    assert_eq!(stand.service_record("api").releases.len(), 1);
}

/// Covers rule W9.
#[tokio::test(start_paused = true)]
async fn a_replica_runs_once_it_has_lived_and_is_ready_once_its_checks_have_passed() {
    let stand = stand().await;
    stand.service("plain", &service(1)).await;
    stand
        .controller
        .wait_until_idle(super::stand::LONG)
        .await
        .unwrap();
    assert_eq!(stand.stages(), "0 starting");
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 ready");
    stand
        .controller
        .delete(Key::new("service", "plain"))
        .await
        .unwrap();
    stand.service("checked", &checked(1)).await;
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 running");
    assert_eq!(
        stand.unready("service", "checked"),
        "0 of 1 replicas are ready: the checks of replica 0 do not pass yet"
    );
    stand.pass(2).await;
    assert_eq!(stand.stages(), "0 ready");
    assert_eq!(stand.unready("service", "checked"), "");
}

/// Covers rules W5, W6.
#[tokio::test(start_paused = true)]
async fn a_crashing_replica_backs_off_and_fails_after_its_attempts() {
    let stand = stand().await;
    stand.service("api", &service(1)).await;
    let mut waits = Vec::new();
    for _ in 0..5 {
        stand.pass(1).await;
        stand.machine.kill(&start_of(&stand, 0));
        stand.pass(1).await;
        let (_, _, record) = stand.replicas().remove(&0).unwrap();
        let Some(next) = record.exits.next else { break };
        assert_eq!(stand.stages(), "0 backing_off");
        waits.push((next.0 - record.exits.last.unwrap().0) / 1_000);
        stand
            .pass(u64::try_from(next.0 - stand.now()).unwrap() / 1_000 + 1)
            .await;
    }
    assert_eq!(waits, [10, 20, 40, 80]);
    assert_eq!(stand.stages(), "0 failed");
    assert_eq!(
        stand.error("service", "api"),
        "crash-loop: replica 0 of service/api exited 5 times in a row, last with signal 9 after 2.0 s"
    );
    let uid = stand.replicas()[&0].0;
    stand
        .controller
        .refresh(uid, watershed_controller::Refresh::Plain)
        .await
        .unwrap();
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 ready");
    assert_eq!(stand.error("service", "api"), "");
}

/// W5: a person names the service, as its copies have no names in any file.
#[tokio::test(start_paused = true)]
async fn a_retry_of_a_service_starts_its_failed_copies_and_leaves_the_others_alone() {
    use crate::policy::exit::Exit;
    for exit in [Exit::Code(127), Exit::Code(3)] {
        let stand = stand().await;
        let mut spec = service(2);
        spec.restart.as_mut().unwrap().attempts = 1;
        stand.service("api", &spec).await;
        stand.pass(1).await;
        let other = start_of(&stand, 1);
        stand.machine.exit(&start_of(&stand, 0), exit);
        stand.pass(1).await;
        assert_eq!(stand.stages(), "0 failed, 1 ready");
        let mut asked = stand
            .controller
            .refresh("service/api", watershed_controller::Refresh::Plain)
            .await
            .unwrap();
        asked.outcome(super::stand::LONG).await.unwrap();
        assert_eq!(stand.error("service", "api"), "", "what had failed is past");
        stand.pass(1).await;
        assert_eq!(
            (stand.stages().as_str(), stand.error("service", "api")),
            ("0 ready, 1 ready", String::new())
        );
        assert_eq!(start_of(&stand, 1), other);
        assert_eq!(stand.replicas()[&0].2.exits.count, 0, "failures are forgotten");
    }
}

/// W12: a copy that is made after restarts and retries of its service has nothing to answer.
#[tokio::test(start_paused = true)]
async fn a_new_copy_starts_as_if_nobody_had_ever_asked_for_anything() {
    let stand = stand().await;
    stand.service("api", &service(1)).await;
    stand.pass(1).await;
    let asked = stand
        .controller
        .refresh("service/api", watershed_controller::Refresh::Plain);
    asked.await.unwrap();
    stand.pass(1).await;
    stand.service("api", &service(2)).await;
    stand.pass(1).await;
    let reasons: Vec<String> = stand.replicas()[&1]
        .2
        .transitions
        .iter()
        .map(|one| one.reason.clone())
        .collect();
    assert_eq!(reasons, ["start", "ready"]);
}

/// W3: an intended stop never counts, and W13: the end of the machine does not either.
#[tokio::test(start_paused = true)]
async fn stops_and_reboots_are_no_crashes() {
    let stand = stand().await;
    stand.service("api", &service(2)).await;
    stand.pass(1).await;
    stand.machine.reboot();
    stand.pass(20).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready");
    let mut restarted = service(2);
    restarted.operator = Some(Operator {
        restarts: 1,
        is_now: true,
        file_replicas: 2,
        ..Operator::default()
    });
    stand.service("api", &restarted).await;
    stand.pass(2).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready");
    let replicas = stand.replicas();
    assert!(
        replicas
            .values()
            .all(|(_, _, record)| record.exits.count == 0 && record.counter == 3)
    );
}

/// W13: a restarted program adopts, and an exit in between counts once.
#[tokio::test(start_paused = true)]
async fn a_program_that_starts_again_adopts_what_runs_and_counts_what_ended() {
    let mut stand = stand().await;
    stand.service("api", &service(3)).await;
    stand.pass(1).await;
    let before = stand.living();
    stand.workloads.leave();
    stand.machine.kill(&start_of(&stand, 1));
    stand.restart().await;
    stand.pass(0).await;
    assert_eq!(stand.stages(), "0 ready, 1 backing_off, 2 ready");
    stand.restart().await;
    stand.pass(5).await;
    assert_eq!(stand.replicas()[&1].2.exits.count, 1);
    assert_eq!(stand.living().len(), 2);
    assert!(stand.living().iter().all(|id| before.contains(id)));
    stand.pass(10).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready, 2 ready");
    assert_eq!(stand.machine.world.begun(), 4);
}

/// W11: without checks a release replaces the other at once.
#[tokio::test(start_paused = true)]
async fn a_release_without_checks_replaces_the_other_at_once() {
    let stand = stand().await;
    stand.service("api", &service(2)).await;
    stand.pass(1).await;
    stand.service("api", &with_command(service(2), "other")).await;
    stand.pass(2).await;
    assert_eq!(stand.stages(), "2 ready, 3 ready");
    let record = stand.service_record("api");
    assert_eq!((record.active, record.candidate.is_none()), (2, true));
    let reasons: Vec<&str> = record.transitions.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.contains(&"force_replace"), "{reasons:?}");
}

/// W11: a rollout never drops below the count, and a bad release never becomes active.
#[tokio::test(start_paused = true)]
async fn a_release_with_checks_rolls_out_and_a_bad_one_is_removed_again() {
    let stand = stand().await;
    stand.service("api", &checked(3)).await;
    stand.pass(5).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready, 2 ready");
    stand.service("api", &with_command(checked(3), "other")).await;
    for _ in 0..40 {
        stand.pass(1).await;
        let ready = stand
            .replicas()
            .values()
            .filter(|(_, _, record)| record.is_ready())
            .count();
        assert!(ready >= 3 && stand.living().len() <= 4, "{}", stand.stages());
        assert!(stand.service_record("api").ready >= 3, "it is ready all the time");
    }
    assert_eq!(stand.stages(), "3 ready, 4 ready, 5 ready");
    assert_eq!(stand.service_record("api").active, 2);

    let bad = with_variable(checked(3), "HEALTH", "bad");
    stand.service("api", &bad).await;
    stand.pass(590).await;
    assert_eq!(stand.living().len(), 4);
    stand.pass(30).await;
    assert_eq!(stand.stages(), "3 ready, 4 ready, 5 ready");
    assert_eq!(
        stand.error("service", "api"),
        "rollout-failed: service/api keeps its old release: release 3 made no progress in time: \
         the checks of replica 6 did not pass"
    );
    stand.pass(1_000).await;
    assert_eq!(
        stand.service_record("api").active,
        2,
        "it is not tried again by itself"
    );
    stand.service("api", &with_command(checked(3), "other")).await;
    stand.pass(5).await;
    assert_eq!(stand.error("service", "api"), "");
}

/// Covers rule W9.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_never_ready_fails_and_its_replicas_are_stopped() {
    let stand = stand().await;
    stand
        .service("api", &with_variable(checked(2), "HEALTH", "bad"))
        .await;
    stand.pass(590).await;
    assert_eq!(stand.stages(), "0 running, 1 running");
    stand.pass(20).await;
    assert_eq!((stand.stages().as_str(), stand.living().len()), ("", 0));
    assert!(
        stand.error("service", "api").starts_with("never-ready: "),
        "{}",
        stand.error("service", "api")
    );
}

/// W9: the time to become ready begins with the first replica that is wanted.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_scaled_from_none_has_its_whole_time_to_become_ready() {
    let stand = stand().await;
    stand.service("api", &service(0)).await;
    stand.pass(3_600).await;
    stand.service("api", &service(2)).await;
    stand.pass(1).await;
    assert_eq!(
        (stand.stages().as_str(), stand.error("service", "api").as_str()),
        ("0 ready, 1 ready", "")
    );
    let reasons: Vec<String> = stand
        .service_record("api")
        .transitions
        .into_iter()
        .map(|one| one.reason)
        .collect();
    assert_eq!(reasons, ["release", "scaled", "ready"]);
}

/// W9: a machine that has slept over the deadline lets what was starting start.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_was_slept_over_is_judged_a_little_later() {
    let stand = stand().await;
    stand.service("api", &service(1)).await;
    stand
        .controller
        .wait_until_idle(super::stand::LONG)
        .await
        .unwrap();
    assert_eq!(stand.stages(), "0 starting");
    // All that is due meanwhile is due at once.
    tokio::time::advance(Duration::from_secs(3_600)).await;
    stand.pass(10).await;
    assert_eq!(
        (stand.stages().as_str(), stand.error("service", "api").as_str()),
        ("0 ready", "")
    );
}

/// W15: a restart, and each step of a rollout, are told of the service.
#[tokio::test(start_paused = true)]
async fn what_people_and_rollouts_do_is_told_of_the_service() {
    let stand = stand().await;
    stand.service("api", &checked(2)).await;
    stand.pass(5).await;
    let mut restarted = checked(2);
    restarted.operator = Some(Operator {
        restarts: 1,
        is_now: true,
        file_replicas: 2,
        ..Operator::default()
    });
    stand.service("api", &restarted).await;
    stand.pass(10).await;
    restarted.program = with_command(checked(2), "other").program;
    stand.service("api", &restarted).await;
    stand.pass(30).await;
    let told: Vec<String> = stand
        .service_record("api")
        .transitions
        .into_iter()
        .map(|one| format!("{} {}", one.reason, one.detail).trim().to_owned())
        .collect();
    assert_eq!(
        told,
        [
            "release release 1",
            "ready",
            "restarted all at once",
            "force_replace force",
            "unready",
            "ready",
            "rollout release 2",
            "rollout_step release 2: 0 of 2 ready, starting 1, stopping 0",
            "rollout_step release 2: 1 of 2 ready, starting 0, stopping 1",
            "rollout_step release 2: 1 of 2 ready, starting 1, stopping 0",
            "rollout_step release 2: 2 of 2 ready, starting 0, stopping 1",
            "rollout_complete release 2",
        ]
    );
}

/// W10: a check that fails after readiness restarts its replica, which counts.
#[tokio::test(start_paused = true)]
async fn a_failing_check_restarts_its_replica_alone() {
    let stand = stand().await;
    stand.service("api", &checked(2)).await;
    stand.pass(5).await;
    stand.answers.fail(start_of(&stand, 1));
    stand.pass(5).await;
    let replicas = stand.replicas();
    assert_eq!((replicas[&0].2.counter, replicas[&1].2.exits.count), (1, 1));
    stand.pass(15).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready");
}

/// W14: a delete hands the stop over and waits for no grace period.
#[tokio::test(start_paused = true)]
async fn a_deleted_service_leaves_nothing() {
    let faults = Faults {
        ignored_stops: 1_000,
        ..Faults::NONE
    };
    let stand = Stand::new(1, faults).await;
    stand.service("api", &service(3)).await;
    stand.pass(1).await;
    let before = stand.now();
    stand.controller.delete(Key::new("service", "api")).await.unwrap();
    stand.pass(0).await;
    assert_eq!(stand.now(), before, "nobody waits for the grace period");
    assert_eq!(
        stand
            .controller
            .list(watershed_controller::Select::all().with_deleted())
            .resources
            .len(),
        0
    );
    stand.pass(11).await;
    assert_eq!(stand.living(), []);
}

/// W14: a process of a deleted service has its whole grace period, however often it is looked at.
#[tokio::test(start_paused = true)]
async fn a_scan_shortens_no_grace_period_of_what_was_deleted() {
    let faults = Faults {
        ignored_stops: 1_000,
        ..Faults::NONE
    };
    let stand = Stand::new(1, faults).await;
    let mut spec = service(1);
    spec.stop = Some(watershed_proto::Stopping {
        signal: "TERM".into(),
        grace_ms: 100_000,
    });
    stand.service("api", &spec).await;
    // Another one keeps the scans going.
    stand.service("other", &service(1)).await;
    stand.pass(1).await;
    stand.controller.delete(Key::new("service", "api")).await.unwrap();
    stand.pass(90).await;
    assert_eq!(stand.living().len(), 2);
    stand.pass(15).await;
    assert_eq!(stand.living().len(), 1);
}

/// Covers rule W16.
#[tokio::test(start_paused = true)]
async fn what_a_person_asked_for_holds_until_the_file_says_something_else() {
    let stand = stand().await;
    let scaled = |replicas: u32| ServiceSpec {
        operator: Some(Operator {
            replicas: Some(4),
            file_replicas: 2,
            ..Operator::default()
        }),
        ..service(replicas)
    };
    stand.service("api", &scaled(2)).await;
    stand.pass(1).await;
    assert_eq!(stand.living().len(), 4);
    stand.service("api", &scaled(3)).await;
    stand.pass(1).await;
    assert_eq!(stand.living().len(), 3);

    let first = stand.service_record("api").releases[0].digest.clone();
    stand.service("api", &with_command(service(1), "other")).await;
    stand.pass(2).await;
    let record = stand.service_record("api");
    let mut rolled_back = with_command(service(1), "other");
    rolled_back.operator = Some(Operator {
        release: 1,
        file_release: record.release(2).unwrap().digest.clone(),
        ..Operator::default()
    });
    stand.service("api", &rolled_back).await;
    stand.pass(2).await;
    let record = stand.service_record("api");
    assert_eq!(record.release(record.active).unwrap().digest, first);
}

/// W17: addresses of ready replicas.
#[tokio::test(start_paused = true)]
async fn the_ports_of_ready_replicas_are_told_to_others() {
    let stand = stand().await;
    let mut spec = service(2);
    spec.program.as_mut().unwrap().ports = vec![watershed_proto::Port {
        name: "PORT".into(),
        ..watershed_proto::Port::default()
    }];
    stand.service("my-api", &spec).await;
    stand.pass(1).await;
    let addresses = stand.service_record("my-api").addresses("my-api");
    let told = &addresses["MY_API_PORT"];
    assert_eq!(
        told.split(',')
            .filter(|one| one.starts_with("127.0.0.1:"))
            .count(),
        2,
        "{told}"
    );
}

/// W13: a request is open until its outcome is seen.
#[tokio::test(start_paused = true)]
async fn starts_whose_answers_are_lost_are_made_once() {
    let stand = stand().await;
    stand.service("first", &service(1)).await;
    stand.pass(1).await;
    stand.machine.world.set_faults(Faults {
        lost_answers: 1_000,
        ..Faults::NONE
    });
    stand.service("api", &service(4)).await;
    stand.pass(20).await;
    stand.machine.world.set_faults(Faults::NONE);
    stand.pass(60).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready, 2 ready, 3 ready");
    assert_eq!((stand.living().len(), stand.machine.world.begun()), (5, 5));
}

/// W7: what has no room is not ordered, and is looked at again.
#[tokio::test(start_paused = true)]
async fn a_program_that_may_use_more_memory_than_is_free_waits_for_room() {
    let stand = stand().await;
    stand.machine.world.set_free_memory(1 << 30);
    let mut large = service(2);
    large.program.as_mut().unwrap().memory_bytes = 2 << 30;
    stand.service("large", &large).await;
    stand.pass(60).await;
    for (_, _, record) in stand.replicas().into_values() {
        assert_eq!(
            (record.counter, record.transitions.len()),
            (0, 1),
            "no number is used up"
        );
        assert_eq!(record.reason, "insufficient_resources");
    }
    stand.machine.world.set_free_memory(4 << 30);
    stand.pass(15).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready");
    assert_eq!(stand.machine.world.begun(), 2);
}

/// W13: what runs for another catalog belongs to nothing here.
#[tokio::test(start_paused = true)]
async fn a_process_that_belongs_to_no_resource_is_stopped() {
    let mut stand = Stand::new(1, Faults::NONE).await;
    stand.service("a", &service(2)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(stand.living().len(), 2);
    stand.lose_catalog().await;
    stand.service("b", &service(1)).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(stand.living(), [start_of(&stand, 0)]);
    assert_eq!(stand.machine.world.kept(), 1);
}
