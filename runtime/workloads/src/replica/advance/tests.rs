use super::*;
use crate::policy::restart::Restart;
use crate::settings::{Logs, Stopping};

const NOW: Timestamp = Timestamp(100_000);

fn spec() -> ReplicaSpec {
    ReplicaSpec {
        service: "api".to_owned(),
        path: None,
        number: 0,
        release: 1,
        program: crate::Program::default(),
        services: Vec::new(),
        addresses: std::collections::BTreeMap::new(),
        is_wanted: true,
        restarts: 0,
        retries: 0,
        stop: Stopping::default(),
        logs: Logs { max_size: 1, keep: 1 },
        restart: Restart::default(),
        checks: Vec::new(),
        on_server_stop: String::new(),
    }
}

fn observed(counter: u64, phase: Phase, stopping: bool) -> Observation {
    Observation {
        id: StartId::new("u", counter).unwrap(),
        epoch: 1,
        backend_id: Some("7".to_owned()),
        started: Timestamp(0),
        stopping,
        phase,
    }
}

fn next(record: &ReplicaRecord, observed: Option<&Observation>, now: Timestamp) -> (ReplicaRecord, Action) {
    let spec = spec();
    advance(record, &facts(&spec, observed, now))
}

fn facts<'a>(spec: &'a ReplicaSpec, observed: Option<&'a Observation>, now: Timestamp) -> Facts<'a> {
    Facts {
        spec,
        observed,
        checks: &[],
        due: None,
        lack_of_room: None,
        refreshes: 0,
        now,
        draw: 0,
        invocation: InvocationId(1),
        epoch: 1,
    }
}

fn record(stage: Stage, counter: u64, is_open: bool) -> ReplicaRecord {
    ReplicaRecord {
        stage,
        counter,
        is_open,
        backend_id: is_open.then(|| "7".to_owned()),
        ..ReplicaRecord::default()
    }
}

/// W1 and W13: present but not desired. A catalog that is older than its processes (a backup) starts none beside them.
#[test]
fn a_start_that_the_record_does_not_stand_for_is_stopped_before_another_is_made() {
    for (stage, counter, is_open, living) in [
        (Stage::Running, 3, true, 7),
        (Stage::Failed, 3, false, 7),
        (Stage::Pending, 3, false, 3),
        (Stage::Failed, 3, false, 3),
        (Stage::Starting, 4, true, 3),
    ] {
        let before = record(stage, counter, is_open);
        let there = observed(living, Phase::Running, false);
        let (after, action) = next(&before, Some(&there), NOW);
        assert_eq!(action, Action::StopOther(living), "{stage:?} {counter}");
        assert_eq!(after.counter, counter.max(living));
        let stopping = observed(living, Phase::Running, true);
        assert_eq!(next(&after, Some(&stopping), NOW).1, Action::Wait(None));
        assert_eq!(after.exits.count, 0, "its end counts for nothing");
    }
    let ended = Phase::Ended {
        end: End::Exit(Exit::Code(1)),
        at: NOW,
    };
    let (after, action) = next(
        &record(Stage::Running, 3, true),
        Some(&observed(7, ended, false)),
        NOW,
    );
    assert_eq!((after.counter, action), (7, Action::Forget));
    assert_eq!(next(&after, None, NOW).0.counter, 8);
}

/// W13: whether a request without an answer was carried out is seen, not guessed.
#[test]
fn a_start_without_an_answer_is_ordered_again_under_its_own_number() {
    let spec = spec();
    let starting = ReplicaRecord {
        backend_id: None,
        ..record(Stage::Starting, 1, true)
    };
    let waiting = unanswered(&starting, "no answer", &facts(&spec, None, NOW));
    assert_eq!(
        (waiting.stage, waiting.is_open, waiting.counter),
        (Stage::Pending, true, 1)
    );
    let due = NOW.after(Duration::from_secs(1));
    assert_eq!(
        next(&waiting, None, NOW),
        (waiting.clone(), Action::Wait(Some(due)))
    );
    let (again, action) = next(&waiting, None, due);
    assert_eq!((again.counter, action), (1, Action::Start));

    let there = observed(1, Phase::Running, false);
    let (found, _) = next(&waiting, Some(&there), NOW);
    assert_eq!((found.stage, found.starts.count), (Stage::Running, 0));

    let mut given_up = starting;
    for _ in 0..6 {
        given_up = unanswered(&given_up, "no answer", &facts(&spec, None, NOW));
    }
    assert_eq!(given_up.stage, Stage::Failed);
    assert_eq!(next(&given_up, None, NOW).1, Action::Wait(None));
    assert_eq!(next(&given_up, Some(&there), NOW).0.stage, Stage::Running);
}

/// W5: the clock went back by an hour, and nothing waits for longer than it would have.
#[test]
fn a_clock_that_was_set_back_delays_no_start_and_no_readiness() {
    const HOUR: i64 = 3_600_000;
    let before = NOW.after(Duration::from_secs(3_600));
    let waits = Attempts {
        count: 1,
        last: Some(before),
        next: Some(before.after(Duration::from_secs(5))),
    };
    let due = NOW.after(Duration::from_secs(5));
    for (stage, exits, starts) in [
        (Stage::BackingOff, waits, Attempts::default()),
        (Stage::Pending, Attempts::default(), waits),
    ] {
        let waiting = ReplicaRecord {
            exits,
            starts,
            ..record(stage, 1, false)
        };
        let (after, action) = next(&waiting, None, NOW);
        assert_eq!(action, Action::Wait(Some(due)), "{stage:?}");
        let (again, action) = next(&after, None, NOW.after(Duration::from_secs(2)));
        assert_eq!(
            (again, action),
            (after.clone(), Action::Wait(Some(due))),
            "each look leaves the time"
        );
        assert_eq!(next(&after, None, due).1, Action::Start);
    }

    let started = Observation {
        started: before,
        ..observed(1, Phase::Running, false)
    };
    let starting = ReplicaRecord {
        started: before,
        ..record(Stage::Starting, 1, true)
    };
    let (seen, action) = next(&starting, Some(&started), NOW);
    assert_eq!(
        (seen.started, action),
        (NOW, Action::Wait(Some(NOW.after(Duration::from_millis(750)))))
    );
    let (ready, _) = next(&seen, Some(&started), NOW.after(Duration::from_secs(1)));
    assert!(ready.is_ready() && ready.ready_since < Some(Timestamp(NOW.0 + HOUR)));
    let (later, _) = next(&ready, Some(&started), Timestamp(50_000));
    assert!(later.is_ready() && later.ready_since == Some(Timestamp(50_000)));
}
