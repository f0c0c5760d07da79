//! Tests that kill the shim at random moments and at every crash point: nothing runs twice, is lost, or ends twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::time::sleep;
use watershed_shim::protocol::{End, Exit, Phase, Then};
use watershed_shim::{CRASH_POINTS, Client, StartId};

use crate::support::{Rig, all, id, kill, stop, until, until_true};

/// Number of uids in a round.
const UIDS: u64 = 4;

/// Number of requests in a round.
const STEPS: u32 = 30;

/// The most requests before a crash point must have been reached.
const MAX_STEPS: u32 = 300;

/// Returns the number of rounds with random kills: `WATERSHED_KILLS` if set (300 by hand), CI's 30, or a few.
fn rounds() -> u64 {
    let number = std::env::var("WATERSHED_KILLS")
        .ok()
        .and_then(|number| number.parse().ok());
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    number.unwrap_or(if is_ci { 30 } else { 3 })
}

/// Returns the first seed; `WATERSHED_SEED` sets another.
fn first_seed() -> u64 {
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    seed.unwrap_or(1)
}

/// The model of a round's starts.
#[derive(Default)]
struct Model {
    started: BTreeMap<StartId, i32>,
    forgotten: BTreeSet<StartId>,
    exits: BTreeMap<StartId, Exit>,
    counters: BTreeMap<u64, u64>,
}

impl Model {
    /// Compares the listed starts with earlier observations.
    async fn check(&mut self, client: &Client, seed: u64) {
        let listed = all(client).await;
        for id in self.started.keys().filter(|id| !self.forgotten.contains(*id)) {
            assert!(listed.contains_key(id), "seed {seed}: {id} is lost");
        }
        for (id, process) in &listed {
            assert!(!self.forgotten.contains(id), "seed {seed}: {id} was forgotten");
            let Phase::Exited(exit) = &process.phase else {
                let before = self.exits.get(id);
                assert_eq!(before, None, "seed {seed}: {id} lives again");
                continue;
            };
            let before = self.exits.entry(id.clone()).or_insert_with(|| exit.clone());
            assert_eq!(before, exit, "seed {seed}: {id} ended twice");
            if let End::Code(code) = exit.end {
                assert_eq!(Some(&code), self.started.get(id), "seed {seed}: {id}");
            }
        }
    }

    /// Compares the number of times that each program ran with the expected one.
    fn check_runs(&self, rig: &Rig, seed: u64) {
        for id in self.started.keys() {
            let runs = fs::read_to_string(rig.path(&id.to_string())).unwrap_or_default();
            let runs = runs.lines().count();
            assert!(runs <= 1, "seed {seed}: {id} ran {runs} times");
            let exit = self.exits.get(id).map(|exit| exit.end);
            if let Some(End::Code(_)) = exit {
                assert_eq!(runs, 1, "seed {seed}: {id} ended by itself and never ran");
            }
        }
    }

    async fn step(&mut self, rig: &Rig, client: &Client, random: &mut SmallRng) {
        let uid = random.random_range(0..UIDS);
        let counter = self.counters.entry(uid).or_default();
        let current = id(&format!("u{uid}"), *counter);
        match random.random_range(0..10) {
            0..=4 => {
                let next = id(&format!("u{uid}"), *counter + 1);
                let file = rig.text(&next.to_string());
                let code = random.random_range(0..100);
                let mode = match random.random_range(0..3) {
                    0 => vec!["run".to_owned(), file],
                    1 => vec!["nest".to_owned(), file],
                    _ => vec!["count".to_owned(), file, code.to_string()],
                };
                let mode: Vec<&str> = mode.iter().map(String::as_str).collect();
                // Refused while the one before it lives.
                if client.spawn(rig.order(&next, &mode)).await.is_ok() {
                    *counter += 1;
                    self.started.insert(next, code);
                }
            }
            5 | 6 => {
                let order = stop(&current, "TERM", random.random_range(0..50), Then::Keep);
                client.stop(order).await.unwrap();
            }
            7 => {
                client
                    .stop(stop(&current, "TERM", 20, Then::Forget))
                    .await
                    .unwrap();
                self.forgotten.insert(current.clone());
                until("it is forgotten", || async {
                    (!all(client).await.contains_key(&current)).then_some(())
                })
                .await;
            }
            _ => {
                if client.forget(current.clone(), false).await.is_ok() {
                    self.forgotten.insert(current);
                }
            }
        }
    }

    /// Stops the remaining processes, and checks that none is left.
    async fn end(&mut self, rig: &Rig, client: &Client, seed: u64) {
        self.check(client, seed).await;
        for id in all(client).await.into_keys() {
            client.stop(stop(&id, "TERM", 1_000, Then::Forget)).await.unwrap();
            self.forgotten.insert(id);
        }
        until("all are forgotten", || async {
            all(client).await.is_empty().then_some(())
        })
        .await;
        until_true("nothing is left", || rig.processes().is_empty()).await;
        self.check_runs(rig, seed);
    }
}

/// W13: kill -9 of the shim at random moments.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shim_that_is_killed_at_any_moment_runs_nothing_twice_and_loses_nothing() {
    for seed in first_seed()..first_seed() + rounds() {
        let mut random = SmallRng::seed_from_u64(seed);
        let rig = Rig::new();
        let client = rig.client(1);
        let kills = Arc::new(AtomicU32::new(0));
        let killer = {
            let (client, kills) = (client.clone(), kills.clone());
            let mut random = SmallRng::seed_from_u64(seed + 1_000_000);
            tokio::spawn(async move {
                loop {
                    if let Ok(shim) = client.shim().await {
                        sleep(Duration::from_micros(random.random_range(0..60_000))).await;
                        kill(shim);
                        kills.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        };
        let mut model = Model::default();
        for step in 0..STEPS {
            model.step(&rig, &client, &mut random).await;
            if step % 5 == 0 {
                model.check(&client, seed).await;
            }
        }
        killer.abort();
        let _ = killer.await;
        println!("seed {seed}: {} kills", kills.load(Ordering::Relaxed));
        model.end(&rig, &client, seed).await;
    }
}

/// W13: kill -9 of the shim before and after spawn, record, signal and forget.
#[tokio::test]
async fn a_shim_that_dies_at_a_named_point_runs_nothing_twice_and_loses_nothing() {
    for (index, point) in CRASH_POINTS.iter().enumerate() {
        for visit in [0, 1] {
            let seed = index as u64 * 2 + visit;
            println!("{point}, visit {visit}");
            let mut random = SmallRng::seed_from_u64(seed);
            let rig = Rig::new();
            let client = rig.dying_client(&format!("{point}={visit}*off->return"));
            let first = client.shim().await.unwrap();
            let mut model = Model::default();
            let mut steps = 0;
            // Until it has died, and some more. A child of the shim shows the shim's own command line until it executes
            // its program, so that the list may hold others beside the shim.
            while steps < MAX_STEPS && (rig.shims().contains(&first) || steps < 10) {
                model.step(&rig, &client, &mut random).await;
                model.check(&client, seed).await;
                steps += 1;
            }
            assert!(!rig.shims().contains(&first), "{point} was never passed");
            // A dying process loses its command line before its connections.
            until("the client sees that it died", || async {
                (client.shim().await.ok()? != first).then_some(())
            })
            .await;
            model.end(&rig, &client, seed).await;
        }
    }
}
