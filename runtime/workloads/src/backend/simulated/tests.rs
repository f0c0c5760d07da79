use std::collections::BTreeSet;
use std::path::PathBuf;

use super::*;
use crate::backend::{Limits, Program};

const FAULTS: Faults = Faults {
    failed_starts: 100,
    exits: 500,
    lost_news: 300,
    lost_answers: 0,
    ignored_stops: 300,
    max_start: Duration::from_secs(2),
    max_life: Duration::from_secs(20),
    max_delay: Duration::from_secs(1),
};

fn id(uid: &str, counter: u64) -> StartId {
    StartId::new(uid, counter).unwrap()
}

fn order(id: &StartId) -> Start {
    Start {
        id: id.clone(),
        program: Program::Local {
            command: vec!["serve".into()],
            cwd: PathBuf::from("/"),
        },
        environment: Vec::new(),
        limits: Limits::default(),
        output: None,
    }
}

fn stop(id: &StartId, grace_ms: u64, then: Then) -> Stop {
    Stop {
        id: id.clone(),
        signal: "TERM".into(),
        grace_ms,
        then,
    }
}

async fn phase(backend: &dyn Backend, id: &StartId) -> Option<Phase> {
    let all = backend.list().await.unwrap();
    all.into_iter().find(|one| one.id == *id).map(|one| one.phase)
}

fn ended(exit: Exit, at: i64) -> Option<Phase> {
    Some(Phase::Ended {
        end: End::Exit(exit),
        at: Timestamp(at),
    })
}

/// Covers rule W13.
#[tokio::test]
async fn a_start_id_starts_one_process_and_never_again_after_it_was_forgotten() {
    let world = World::new(1, Faults::NONE);
    let backend = world.connect(1);
    let [first, second] = [1, 2].map(|counter| id("a", counter));
    let there = backend.start(order(&first)).await.unwrap();
    assert_eq!(there.phase, Phase::Running);
    assert_eq!(backend.start(order(&first)).await.unwrap(), there);
    assert_eq!(
        backend.start(order(&second)).await,
        Err(Error::Occupied {
            living: first.clone()
        })
    );
    assert_eq!(
        backend.forget(first.clone(), true).await,
        Err(Error::StillRunning)
    );
    world.kill(&first);
    assert_eq!(phase(&backend, &first).await, ended(Exit::Signal(9), 0));
    assert!(backend.start(order(&second)).await.is_ok());
    backend.forget(first.clone(), true).await.unwrap();
    world.kill(&second);
    assert_eq!(
        backend.start(order(&first)).await,
        Err(Error::Superseded { newer: second })
    );
    assert_eq!(world.begun(), 2);
}

/// Covers rule W13.
#[tokio::test]
async fn an_epoch_that_is_over_changes_nothing_and_may_look() {
    let world = World::new(1, Faults::NONE);
    let [old, new] = [1, 2].map(|epoch| world.connect(epoch));
    let first = id("a", 1);
    old.start(order(&first)).await.unwrap();
    new.stop(stop(&id("other", 1), 0, Then::Keep)).await.unwrap();
    let stale = Error::StaleEpoch { epoch: 1, newest: 2 };
    assert_eq!(old.start(order(&id("b", 1))).await, Err(stale.clone()));
    assert_eq!(old.stop(stop(&first, 0, Then::Keep)).await, Err(stale.clone()));
    assert_eq!(old.forget(first.clone(), false).await, Err(stale));
    world.advance(Timestamp(1_000));
    assert_eq!(phase(&old, &first).await, Some(Phase::Running));
}

/// Covers rule W14.
#[tokio::test]
async fn a_stop_ends_a_process_at_once_or_if_it_is_ignored_after_the_grace_period() {
    for (ignored_stops, exit, at) in [(0, Exit::Signal(15), 0), (1_000, Exit::Signal(9), 5_000)] {
        let faults = Faults {
            ignored_stops,
            ..Faults::NONE
        };
        let world = World::new(1, faults);
        let backend = world.connect(1);
        let first = id("a", 1);
        backend.start(order(&first)).await.unwrap();
        let there = backend.stop(stop(&first, 5_000, Then::Keep)).await.unwrap();
        assert!(there.is_some_and(|there| there.stopping));
        world.advance(Timestamp(at - 1));
        if at > 0 {
            assert_eq!(phase(&backend, &first).await, Some(Phase::Running));
        }
        world.advance(Timestamp(60_000));
        assert_eq!(phase(&backend, &first).await, ended(exit, at));
        backend.stop(stop(&first, 0, Then::Forget)).await.unwrap();
        assert_eq!(phase(&backend, &first).await, None);
    }
}

/// Covers rule W14.
#[tokio::test]
async fn a_later_stop_shortens_the_grace_period_and_never_prolongs_it() {
    let faults = Faults {
        ignored_stops: 1_000,
        ..Faults::NONE
    };
    let world = World::new(1, faults);
    let backend = world.connect(1);
    let first = id("a", 1);
    backend.start(order(&first)).await.unwrap();
    for grace_ms in [9_000, 4_000, 20_000] {
        backend.stop(stop(&first, grace_ms, Then::Keep)).await.unwrap();
    }
    world.advance(Timestamp(60_000));
    assert_eq!(phase(&backend, &first).await, ended(Exit::Signal(9), 4_000));
}

/// Covers rule W13.
#[tokio::test]
async fn a_reboot_ends_all_processes_and_says_that_news_were_missed() {
    let world = World::new(1, Faults::NONE);
    let backend = world.connect(1);
    let first = id("a", 1);
    backend.start(order(&first)).await.unwrap();
    world.advance(Timestamp(10));
    let mut news = backend.news();
    world.reboot();
    let reboot = Phase::Ended {
        end: End::Reboot,
        at: Timestamp(10),
    };
    assert_eq!(phase(&backend, &first).await, Some(reboot));
    assert_eq!(news.try_recv(), Ok(News::Missed));
    assert!(backend.start(order(&id("a", 2))).await.is_ok());
}

/// Plays a day of random requests, and returns its log as text.
async fn day(seed: u64) -> String {
    let world = World::new(seed, FAULTS);
    let backend = world.connect(1);
    let mut news = backend.news();
    let mut random = SmallRng::seed_from_u64(seed ^ 0x5eed);
    let mut log = String::new();
    for round in 0..60 {
        let one = id(
            ["a", "b", "c"][random.random_range(0..3)],
            random.random_range(1..8),
        );
        match random.random_range(0..5) {
            0 | 1 => log += &format!("{:?}\n", backend.start(order(&one)).await),
            2 => log += &format!("{:?}\n", backend.stop(stop(&one, 3_000, Then::Keep)).await),
            3 => log += &format!("{:?}\n", backend.forget(one, false).await),
            _ => world.kill(&one),
        }
        world.advance(Timestamp(round * 1_000));
        let all = backend.list().await.unwrap();
        let living = all.iter().filter(|one| one.phase.is_alive());
        let mut uids = BTreeSet::new();
        for one in living {
            assert!(
                uids.insert(one.id.uid().to_owned()),
                "seed {seed}: two of {}",
                one.id
            );
        }
        let begun: Vec<_> = all.iter().filter_map(|one| one.backend_id.clone()).collect();
        assert_eq!(
            begun.iter().collect::<BTreeSet<_>>().len(),
            begun.len(),
            "seed {seed}: one process for each start"
        );
        log += &format!("{all:?}\n");
        while let Ok(hint) = news.try_recv() {
            log += &format!("{hint:?}\n");
        }
    }
    log
}

/// Covers rule W18.
#[tokio::test]
async fn equal_seeds_give_equal_worlds_with_never_two_processes_of_one_uid() {
    let mut all = String::new();
    for seed in 0..200 {
        let log = day(seed).await;
        if seed < 20 {
            assert_eq!(log, day(seed).await, "seed {seed}");
        }
        all += &log;
    }
    for drawn in [
        "phase: Starting",
        "NotStarted",
        "Exit(Code(1))",
        "Exit(Unknown)",
        "Exit(OutOfMemory)",
        "Exit(Signal(15))",
        "stopping: true, phase: Running",
        "Occupied",
        "Superseded",
        "StillRunning",
        "\nChanged(",
    ] {
        assert!(all.contains(drawn), "`{drawn}` was never drawn");
    }
}

/// W2 and W18: what is lost or late is known by the number of hints and their times.
#[tokio::test]
async fn news_are_lost_and_late_and_the_list_has_everything() {
    for (lost_news, max_delay, at_once, in_the_end) in [(0, 0, 2, 2), (1_000, 0, 0, 0), (0, 60_000, 0, 2)] {
        let faults = Faults {
            lost_news,
            max_delay: Duration::from_millis(max_delay),
            ..Faults::NONE
        };
        let world = World::new(3, faults);
        let backend = world.connect(1);
        let mut news = backend.news();
        let first = id("a", 1);
        backend.start(order(&first)).await.unwrap();
        world.kill(&first);
        assert_eq!(phase(&backend, &first).await, ended(Exit::Signal(9), 0));
        let mut heard = 0;
        for (until, expected) in [(0, at_once), (60_000, in_the_end)] {
            world.advance(Timestamp(until));
            while news.try_recv().is_ok() {
                heard += 1;
            }
            assert_eq!(heard, expected, "{lost_news} {max_delay} until {until}");
        }
        assert_eq!(world.next_event(), None);
    }
}
