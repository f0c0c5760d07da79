use super::*;

const ALL: [Policy; 3] = [Policy::Always, Policy::OnFailure, Policy::Never];

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn ended(ending: Ending) -> Ended {
    Ended {
        ending,
        ready_for: None,
        at: Timestamp(0),
    }
}

fn first(wait: u64) -> Attempts {
    Attempts {
        count: 1,
        last: Some(Timestamp(0)),
        next: Some(Timestamp(0).after(seconds(wait))),
    }
}

/// W5, W6, W3 and W13: all policies by all endings.
#[test]
fn each_policy_decides_about_each_ending() {
    use Ending::{Check, Intended, Reboot, Unexpected};
    let [back_off, stay, start, complete] = [
        Decision::BackOff(first(10)),
        Decision::Stay,
        Decision::Start,
        Decision::Complete,
    ];
    let fail = |reason| Decision::Fail(reason, first(10));
    let [exited, permanent, check] = [Reason::Exited, Reason::NoRetryCode, Reason::StoppedByCheck].map(fail);
    let table = [
        (Intended, [stay, stay, stay]),
        (Reboot, [start, start, start]),
        (Check, [back_off, back_off, check]),
        (Unexpected(Exit::Code(0)), [back_off, complete, complete]),
        (Unexpected(Exit::Code(1)), [back_off, back_off, exited]),
        (Unexpected(Exit::Code(126)), [permanent, permanent, permanent]),
        (Unexpected(Exit::Code(127)), [permanent, permanent, permanent]),
        (Unexpected(Exit::Signal(9)), [back_off, back_off, exited]),
        (Unexpected(Exit::OutOfMemory), [back_off, back_off, exited]),
        (Unexpected(Exit::Timeout), [back_off, back_off, exited]),
        (Unexpected(Exit::Unknown), [back_off, back_off, exited]),
    ];
    for (ending, expected) in table {
        for (policy, expected) in ALL.into_iter().zip(expected) {
            let restart = Restart {
                policy,
                ..Restart::default()
            };
            let found = decide(&restart, Attempts::default(), ended(ending));
            assert_eq!(found, expected, "{policy:?} {ending:?}");
        }
    }
}

/// Covers rule W5.
#[test]
fn only_a_run_that_was_ready_for_the_whole_window_is_stable() {
    let window = Some(seconds(600));
    for (stable_window, ready_for, count) in [
        (window, None, 4),
        (window, Some(seconds(599)), 4),
        (window, Some(seconds(600)), 1),
        (window, Some(seconds(9_000)), 1),
        (None, Some(seconds(9_000)), 4),
        (Some(Duration::ZERO), None, 4),
        (Some(Duration::ZERO), Some(Duration::ZERO), 1),
    ] {
        let restart = Restart {
            stable_window,
            ..Restart::default()
        };
        let before = Attempts {
            count: 3,
            ..Attempts::default()
        };
        let ended = Ended {
            ready_for,
            ..ended(Ending::Unexpected(Exit::Code(1)))
        };
        let Decision::BackOff(after) = decide(&restart, before, ended) else {
            panic!("it backs off");
        };
        assert_eq!(after.count, count, "{stable_window:?} {ready_for:?}");
    }
}

/// Covers rule W5.
#[test]
fn jitter_makes_a_wait_up_to_a_tenth_longer() {
    let attempts = first(100);
    for (draw, wait_ms) in [(0, 100_000), (u32::MAX / 2, 104_999), (u32::MAX, 110_000)] {
        assert_eq!(
            with_jitter(attempts, draw).next,
            Some(Timestamp(wait_ms)),
            "{draw}"
        );
    }
    let ended = Attempts {
        next: None,
        ..attempts
    };
    assert_eq!(with_jitter(ended, u32::MAX), ended);
    let late = Attempts {
        last: Some(Timestamp(i64::MIN)),
        next: Some(Timestamp(i64::MAX)),
        ..attempts
    };
    assert_eq!(with_jitter(late, u32::MAX).next, Some(Timestamp(i64::MAX)));
}

/// One exit in a sequence: the exit, and true if the run was stable.
type Step = (Exit, bool);

const STEPS: [Step; 10] = [
    (Exit::Code(0), false),
    (Exit::Code(1), false),
    (Exit::Code(127), false),
    (Exit::Signal(11), false),
    (Exit::Unknown, false),
    (Exit::Code(0), true),
    (Exit::Code(1), true),
    (Exit::Code(127), true),
    (Exit::Signal(11), true),
    (Exit::Unknown, true),
];

/// Computes the decision about the last exit of a sequence directly from the rule, without a running count.
fn expected(restart: &Restart, steps: &[Step]) -> (&'static str, Option<u64>) {
    let (exit, _) = steps[steps.len() - 1];
    if exit == Exit::Code(127) {
        return ("no_retry_code", None);
    }
    let success = exit == Exit::Code(0);
    match restart.policy {
        Policy::Never if success => return ("completed", None),
        Policy::Never => return ("exited", None),
        Policy::OnFailure if success => return ("completed", None),
        _ => {}
    }
    let since_stable = steps.iter().rev().position(|(_, stable)| *stable);
    let failures = since_stable.map_or(steps.len(), |others| others + 1);
    if restart.attempts > 0 && failures >= restart.attempts as usize {
        return ("crash_loop_back_off", None);
    }
    let mut wait = restart.base.as_secs();
    for _ in 1..failures {
        wait *= 2;
    }
    ("backing_off", Some(wait.min(restart.cap.as_secs())))
}

/// Tries all sequences that begin with `steps`, and returns the number of compared decisions.
fn try_all(restart: &Restart, steps: &mut Vec<Step>, failures: Attempts) -> u64 {
    let mut tried = 0;
    for step in STEPS {
        steps.push(step);
        let at = Timestamp(1_000_000 * steps.len() as i64);
        let ended = Ended {
            ending: Ending::Unexpected(step.0),
            ready_for: step.1.then_some(seconds(600)),
            at,
        };
        let decision = decide(restart, failures, ended);
        let found = match decision {
            Decision::BackOff(next) => ("backing_off", next.wait(at).map(|wait| wait.as_secs())),
            Decision::Complete => ("completed", None),
            Decision::Fail(reason, _) => (reason.as_str(), None),
            Decision::Stay | Decision::Start => ("neither", None),
        };
        assert_eq!(found, expected(restart, steps), "{restart:?} {steps:?}");
        tried += 1;
        if let (Decision::BackOff(next), true) = (decision, steps.len() < 6) {
            tried += try_all(restart, steps, next);
        }
        steps.pop();
    }
    tried
}

/// Covers rules W5 and W6.
#[test]
fn all_sequences_of_six_exits_are_decided_as_a_naive_reference_does() {
    let mut tried = 0;
    for policy in ALL {
        for attempts in [0, 1, 2, 5] {
            let restart = Restart {
                policy,
                attempts,
                cap: seconds(100),
                ..Restart::default()
            };
            tried += try_all(&restart, &mut Vec::new(), Attempts::default());
        }
    }
    assert!(tried > 500_000, "{tried}");
}
