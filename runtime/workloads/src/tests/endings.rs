//! Tests of services that complete, miss deadlines or are restarted.

use std::time::Duration;

use watershed_controller::Key;
use watershed_proto::{Operator, ServiceSpec};

use super::stand::{Stand, checked, service, start_of, with_command, with_own_checks, with_variable};
use crate::backend::simulated::Faults;

async fn stand() -> Stand {
    Stand::new(1, Faults::NONE).await
}

/// A program that is stopped before its first scan stops what the one before has left, after however many turns.
#[tokio::test(start_paused = true)]
async fn a_program_that_leaves_before_its_first_scan_stops_what_another_has_left() {
    for turns in 0..40 {
        let mut stand = stand().await;
        stand.service("api", &service(2)).await;
        stand.pass(1).await;
        assert_eq!(stand.living().len(), 2);
        stand.crash().await;
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        stand.workloads.leave();
        let handle = stand.controller.handle();
        stand.controller.shutdown(super::stand::LONG).await.unwrap();
        stand.workloads.stop(&handle, |_| true).await;
        assert_eq!(stand.living(), [], "after {turns} turns");
    }
}

/// W5, W9: a service whose copies have completed is at its end, which no deadline turns into a failure.
#[tokio::test(start_paused = true)]
async fn a_service_that_has_completed_is_at_its_end_and_fails_no_deadline() {
    use crate::policy::exit::Exit;
    let stand = stand().await;
    let mut spec = service(2);
    spec.restart.as_mut().unwrap().policy = "on_failure".into();
    stand.service("api", &spec).await;
    stand
        .controller
        .wait_until_idle(super::stand::LONG)
        .await
        .unwrap();
    stand.machine.exit(&start_of(&stand, 0), Exit::Code(0));
    stand.pass(5).await;
    assert_eq!(stand.unready("service", "api"), "1 of 2 replicas have completed");
    stand.machine.exit(&start_of(&stand, 1), Exit::Code(0));
    stand.pass(5).await;
    let record = stand.service_record("api");
    assert_eq!((record.is_over, record.stage()), (true, "completed"));
    stand.pass(3_600).await;
    assert_eq!(
        (stand.error("service", "api"), stand.unready("service", "api")),
        (String::new(), "it has completed".to_owned())
    );
    assert_eq!(stand.machine.world.begun(), 2);

    // Another release of it replaces what has completed, and may complete as well.
    let mut other = with_command(checked(2), "other");
    other.restart = spec.restart.clone();
    stand.service("api", &other).await;
    stand.pass(1).await;
    for number in stand.replicas().into_keys().filter(|number| *number > 1) {
        stand.machine.exit(&start_of(&stand, number), Exit::Code(0));
    }
    stand.pass(5).await;
    for number in stand.replicas().into_keys().filter(|number| *number > 2) {
        stand.machine.exit(&start_of(&stand, number), Exit::Code(0));
    }
    stand.pass(60).await;
    assert_eq!(stand.service_record("api").active, 2);
    assert_eq!(stand.unready("service", "api"), "it has completed");

    let asked = stand
        .controller
        .refresh("service/api", watershed_controller::Refresh::Plain);
    asked.await.unwrap();
    stand.pass(5).await;
    assert_eq!(stand.living().len(), 2, "a person wants it once more");
    assert!(!stand.service_record("api").is_over);
}

/// W11: checks that are edited together with the program say nothing about copies of the release before.
#[tokio::test(start_paused = true)]
async fn a_copy_is_judged_by_the_checks_of_its_own_release() {
    let stand = stand().await;
    stand.service("api", &with_own_checks(checked(2), "serve")).await;
    stand.pass(5).await;
    assert_eq!(stand.stages(), "0 ready, 1 ready");
    let mut next = with_own_checks(checked(2), "other");
    next.stop = Some(watershed_proto::Stopping {
        signal: "INT".into(),
        grace_ms: 1,
    });
    stand.service("api", &next).await;
    for _ in 0..20 {
        stand.pass(1).await;
        let ready = stand
            .replicas()
            .into_values()
            .filter(|(_, _, record)| record.is_ready());
        assert!(ready.count() >= 2, "{}", stand.stages());
        for (_, spec, _) in stand.replicas().into_values() {
            let signal = if spec.release == 1 { "TERM" } else { "INT" };
            assert_eq!(spec.stop.signal, signal, "it is stopped as its release said");
        }
    }
    assert_eq!(
        (stand.stages().as_str(), stand.service_record("api").active),
        ("2 ready, 3 ready", 2)
    );
    // One that is edited alone applies in place.
    next.checks[0].on_failure = "alert".into();
    next.checks[0].command = vec!["check".into(), "nobody".into()];
    stand.service("api", &next).await;
    stand.pass(2).await;
    assert_eq!(stand.stages(), "2 running, 3 running");
}

/// W11: also where the old release is unready.
#[tokio::test(start_paused = true)]
async fn a_candidate_that_has_failed_is_removed_whatever_became_of_the_old_release() {
    let stand = stand().await;
    let mut spec = checked(1);
    spec.checks[0].on_failure = "alert".into();
    stand.service("api", &spec).await;
    stand.pass(5).await;
    stand.answers.fail(start_of(&stand, 0));
    stand.pass(5).await;
    stand.service("api", &with_variable(spec, "HEALTH", "bad")).await;
    stand.pass(590).await;
    assert_eq!(stand.living().len(), 2);
    stand.pass(20).await;
    assert_eq!(stand.living(), [start_of(&stand, 0)]);
}

/// W9, W11: a deadline is not later than it says.
#[tokio::test(start_paused = true)]
async fn a_deadline_that_is_seen_in_time_is_judged_at_once() {
    let stand = stand().await;
    let mut spec = with_variable(checked(1), "HEALTH", "bad");
    spec.rollout.as_mut().unwrap().deadline_ms = 5_000;
    stand.service("never", &spec).await;
    stand.pass(4).await;
    assert_eq!(stand.error("service", "never"), "");
    stand.pass(2).await;
    assert!(stand.error("service", "never").starts_with("never-ready: "));
    let mut good = checked(1);
    good.rollout.as_mut().unwrap().deadline_ms = 5_000;
    stand.service("rolls", &good).await;
    stand.pass(4).await;
    stand
        .service("rolls", &with_variable(good, "HEALTH", "bad"))
        .await;
    stand.pass(4).await;
    assert_eq!(stand.error("service", "rolls"), "");
    stand.pass(2).await;
    assert!(stand.error("service", "rolls").starts_with("rollout-failed: "));
}

/// W5, W9: what is due at a stored time is due when it was, by the time that has passed.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_delays_nothing_by_more_than_one_wait() {
    let stand = stand().await;
    stand.service("api", &service(1)).await;
    stand.pass(1).await;
    stand.machine.kill(&start_of(&stand, 0));
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 backing_off");
    stand.set_back(Duration::from_secs(3_600));
    stand.pass(25).await;
    assert_eq!(stand.stages(), "0 ready");

    let mut never = with_variable(checked(1), "HEALTH", "bad");
    never.rollout.as_mut().unwrap().deadline_ms = 60_000;
    stand.service("never", &never).await;
    stand.pass(10).await;
    stand.set_back(Duration::from_secs(3_600));
    stand.pass(90).await;
    assert!(stand.error("service", "never").starts_with("never-ready: "));
}

fn restarted(mut spec: ServiceSpec, restarts: u64) -> ServiceSpec {
    spec.operator = Some(Operator {
        restarts,
        file_replicas: spec.replicas,
        ..Operator::default()
    });
    spec
}

/// W16: a restart keeps the count of ready copies, as a rollout does.
#[tokio::test(start_paused = true)]
async fn a_restart_starts_each_new_copy_before_an_old_one_goes() {
    for spec in [service(2), checked(2)] {
        let stand = stand().await;
        stand.service("api", &spec).await;
        stand.pass(5).await;
        assert_eq!(stand.stages(), "0 ready, 1 ready");
        stand.service("api", &restarted(spec, 1)).await;
        for _ in 0..20 {
            stand.pass(1).await;
            let ready = stand
                .replicas()
                .into_values()
                .filter(|(_, _, record)| record.is_ready());
            assert!(
                ready.count() >= 2 && stand.living().len() <= 3,
                "{}",
                stand.stages()
            );
        }
        let record = stand.service_record("api");
        assert_eq!(
            (stand.stages().as_str(), record.restarted),
            ("2 ready, 3 ready", 1)
        );
        assert_eq!(
            (record.active, record.releases.len()),
            (1, 1),
            "it is the same release"
        );
    }
}

/// W16: where two copies can't stand beside each other, and where one serves nobody, the copy itself is restarted.
#[tokio::test(start_paused = true)]
async fn a_restart_is_in_place_with_a_fixed_port_and_of_copies_that_do_not_serve() {
    let stand = stand().await;
    let mut fixed = service(1);
    fixed.program.as_mut().unwrap().ports = vec![watershed_proto::Port {
        name: "PORT".into(),
        fixed: 1,
        ..watershed_proto::Port::default()
    }];
    stand.service("fixed", &fixed).await;
    stand.pass(1).await;
    stand.service("fixed", &restarted(fixed, 1)).await;
    stand.pass(5).await;
    assert_eq!(stand.stages(), "0 ready");
    assert_eq!(
        (
            stand.service_record("fixed").restarted,
            stand.replicas()[&0].2.counter
        ),
        (1, 2)
    );
    stand
        .controller
        .delete(Key::new("service", "fixed"))
        .await
        .unwrap();
    stand.pass(20).await;

    let mut fragile = service(1);
    fragile.restart.as_mut().unwrap().attempts = 1;
    stand.service("api", &fragile).await;
    stand.pass(1).await;
    stand.machine.kill(&start_of(&stand, 0));
    stand.pass(1).await;
    assert_eq!(stand.stages(), "0 failed");
    stand.service("api", &restarted(fragile, 1)).await;
    stand.pass(5).await;
    assert_eq!(
        (stand.stages().as_str(), stand.error("service", "api")),
        ("0 ready", String::new())
    );
    assert_eq!(stand.service_record("api").restarted, 1);
}

/// W16: a restart whose copies do not come up is given up, and what serves goes on.
#[tokio::test(start_paused = true)]
async fn a_restart_that_makes_no_progress_is_given_up() {
    let stand = stand().await;
    stand.service("api", &checked(2)).await;
    stand.pass(5).await;
    stand.service("api", &restarted(checked(2), 1)).await;
    for _ in 0..700 {
        stand.pass(1).await;
        for number in stand.replicas().into_keys().filter(|number| *number > 1) {
            let start = start_of(&stand, number);
            if !stand.answers.is_failing(&start) {
                stand.answers.fail(start);
            }
        }
    }
    let record = stand.service_record("api");
    assert_eq!(
        record.restart_failed.as_deref(),
        Some("a new copy was not ready in time")
    );
    assert_eq!(
        (stand.stages().as_str(), record.restarted),
        ("0 ready, 1 ready", 1)
    );
    assert_eq!(stand.error("service", "api"), "", "it serves as before");
}

/// W2: who embeds workloads may look at once.
#[tokio::test(start_paused = true)]
async fn a_scan_that_is_asked_for_finds_what_nobody_told_of() {
    let faults = Faults {
        lost_news: 1_000,
        ..Faults::NONE
    };
    let stand = Stand::new(1, faults).await;
    stand.service("api", &service(2)).await;
    stand.pass(12).await;
    stand.workloads.scan().await;
    assert_eq!(stand.workloads.running().len(), 2);
    let [status] = stand.workloads.status().try_into().unwrap();
    assert_eq!(
        (status.name, status.is_listed, status.error),
        ("simulated", true, None)
    );
    let before = stand.now();
    stand.machine.kill(&start_of(&stand, 0));
    stand.workloads.scan().await;
    assert_eq!(
        (stand.workloads.running().len(), stand.now()),
        (1, before),
        "no interval is waited for"
    );
    stand.workloads.leave();
    stand.workloads.scan().await;
}

/// W12: a large service leaves the others their turn.
#[tokio::test(start_paused = true)]
async fn copies_are_made_in_batches() {
    let stand = stand().await;
    stand.machine.world.set_free_memory(1 << 20);
    let mut large = service(u32::MAX);
    large.program.as_mut().unwrap().memory_bytes = 1 << 30;
    stand.service("large", &large).await;
    stand.pass(30).await;
    assert_eq!(
        stand.service_record("large").replicas,
        crate::service::REPLICAS_MAX,
        "a catalog of before"
    );
    let batch = stand.replicas().len();
    assert_eq!(
        batch,
        crate::replica::AT_ONCE,
        "what waits for room is not made any more of"
    );
    stand.machine.world.set_free_memory(2 << 30);
    large.replicas = 200;
    stand.service("large", &large).await;
    stand.pass(60).await;
    assert_eq!(stand.living().len(), 200);
}

/// W11: a release that never came up is none to go back to.
#[tokio::test(start_paused = true)]
async fn a_release_knows_whether_it_ever_came_up() {
    let stand = stand().await;
    stand.service("api", &service(1)).await;
    stand.pass(2).await;
    let mut fragile = with_command(service(1), "other");
    fragile.restart.as_mut().unwrap().attempts = 1;
    stand.service("api", &fragile).await;
    while !stand.replicas().contains_key(&1) || stand.living().len() != 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stand.machine.kill(&start_of(&stand, 1));
    stand.pass(2).await;
    assert_eq!(stand.stages(), "1 failed");
    stand.service("api", &with_command(service(1), "third")).await;
    stand.pass(2).await;
    let releases = stand.service_record("api").releases;
    let again: Vec<bool> = releases
        .iter()
        .map(crate::service::Release::may_serve_again)
        .collect();
    assert_eq!(again, [true, false, true]);
}
