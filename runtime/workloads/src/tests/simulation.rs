//! Random edits, crashes, faults and restarts, over seeds.
//!
//! After each step: a process that lives has its start stored, no workload has two, and no end that was ordered is
//! counted. At rest, without faults, the processes are those of a fresh start.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::{Delete, Key, Refresh, Select, Uid};
use watershed_proto::{JobRetries, JobSpec, Program, ServiceSpec};

use super::stand::{Stand, checked, service, with_command, with_variable};
use crate::backend::simulated::Faults;
use crate::job::{self, JobStage};
use crate::replica::{self, ReplicaRecord, Stage};

/// Steps of one world.
const STEPS: u32 = 40;

/// Worlds of an ordinary run, of CI, and of a proof.
fn rounds() -> u64 {
    if let Some(rounds) = number("WATERSHED_WORKLOAD_ROUNDS") {
        return rounds;
    }
    match std::env::var("WATERSHED_PROOF").as_deref() {
        Ok("ci") => 300,
        _ => 30,
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn faults(random: &mut SmallRng) -> Faults {
    let mut chance = |most: u32| match random.random_range(0..3) {
        0 => 0,
        _ => random.random_range(0..=most),
    };
    Faults {
        failed_starts: chance(200),
        exits: chance(400),
        lost_news: chance(500),
        ignored_stops: chance(500),
        max_start: Duration::from_millis(u64::from(chance(3_000))),
        max_life: Duration::from_millis(u64::from(chance(60_000))),
        max_delay: Duration::from_millis(u64::from(chance(5_000))),
    }
}

/// The specs that are wanted of a world.
#[derive(Default)]
struct Wanted {
    services: BTreeMap<&'static str, ServiceSpec>,
    jobs: BTreeMap<&'static str, JobSpec>,
}

const SERVICES: [&str; 3] = ["a", "b", "c"];
const JOBS: [&str; 2] = ["x", "y"];

fn draw_service(random: &mut SmallRng) -> ServiceSpec {
    let replicas = random.random_range(0..4);
    let base = match random.random_bool(0.5) {
        true => checked(replicas),
        false => service(replicas),
    };
    let named = with_command(base, ["serve", "other", "third"][random.random_range(0..3)]);
    match random.random_range(0..8) {
        0 => with_variable(named, "HEALTH", "bad"),
        _ => named,
    }
}

fn draw_job(random: &mut SmallRng) -> JobSpec {
    JobSpec {
        program: Some(Program {
            command: vec![["import", "load"][random.random_range(0..2)].to_owned()],
            ..Program::default()
        }),
        success_codes: vec![0],
        timeout_ms: [0, 20_000][random.random_range(0..2)],
        retries: Some(JobRetries {
            attempts: random.random_range(1..4),
            base_ms: 1_000,
            cap_ms: 10_000,
        }),
        ..JobSpec::default()
    }
}

/// One random thing happens.
async fn happen(stand: &mut Stand, wanted: &mut Wanted, random: &mut SmallRng) {
    match random.random_range(0..12) {
        0..=2 => {
            let name = SERVICES[random.random_range(0..SERVICES.len())];
            let spec = draw_service(random);
            stand.service(name, &spec).await;
            wanted.services.insert(name, spec);
        }
        3 => {
            let name = JOBS[random.random_range(0..JOBS.len())];
            let spec = draw_job(random);
            stand.job(name, &spec).await;
            wanted.jobs.insert(name, spec);
        }
        4 => {
            let name = SERVICES[random.random_range(0..SERVICES.len())];
            if wanted.services.remove(name).is_some() {
                stand.controller.delete(Key::new("service", name)).await.unwrap();
            }
        }
        5 => {
            let name = JOBS[random.random_range(0..JOBS.len())];
            if wanted.jobs.remove(name).is_some() {
                stand
                    .controller
                    .delete_with(Key::new("job", name), Delete::Graceful)
                    .await
                    .unwrap();
            }
        }
        6 => {
            let living = stand.living().await;
            if !living.is_empty() {
                stand.machine.kill(&living[random.random_range(0..living.len())]);
            }
        }
        7 if random.random_bool(0.3) => stand.machine.reboot(),
        8 => stand.restart().await,
        9 => stand.crash().await,
        10 => {
            let all = stand.controller.list(Select::all()).resources;
            if !all.is_empty() {
                let uid = all[random.random_range(0..all.len())].uid();
                // It may be gone by now.
                let _ = stand.controller.refresh(uid, Refresh::Plain).await;
            }
        }
        _ => {}
    }
    let ms = [0, 10, 500, 3_000, 20_000][random.random_range(0..5)];
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Checks the rules that hold at every moment.
async fn check(stand: &Stand) -> Result<(), String> {
    let living = stand.living().await;
    let mut by_uid: BTreeMap<&str, u64> = BTreeMap::new();
    for id in &living {
        if let Some(other) = by_uid.insert(id.uid(), id.counter()) {
            return Err(format!("{} runs twice: {other} and {}", id.uid(), id.counter()));
        }
    }
    let all = stand.controller.list(Select::all().with_deleted()).resources;
    let counters: BTreeMap<String, (u64, u32)> = all
        .iter()
        .filter_map(|one| match one.kind().as_str() {
            replica::KIND => {
                let record = one.state::<ReplicaRecord>().unwrap().unwrap_or_default();
                let spec: replica::ReplicaSpec = one.spec().unwrap();
                // Its checks may restart it, which counts.
                let is_bad = spec.program.environment.contains_key("HEALTH");
                let failures = if is_bad { 0 } else { record.exits.count };
                Some((one.uid().to_string(), (record.counter, failures)))
            }
            job::KIND => {
                let record = one.state::<crate::job::JobRecord>().unwrap().unwrap_or_default();
                // A timeout is an end that was ordered, and counts.
                Some((one.uid().to_string(), (record.counter, 0)))
            }
            _ => None,
        })
        .collect();
    for (uid, counter) in &by_uid {
        if let Some((stored, _)) = counters.get(*uid)
            && stored < counter
        {
            return Err(format!("{uid}:{counter} runs, and {stored} is stored"));
        }
    }
    for (uid, (_, failures)) in &counters {
        let ends = stand.machine.world.unexpected_ends(uid);
        if *failures > ends + stand.answers.restarts(uid) {
            return Err(format!("{uid} counts {failures} failures of {ends} ends"));
        }
    }
    Ok(())
}

/// Without faults, after a while, the processes are those that are wanted.
async fn check_at_rest(stand: &Stand, wanted: &Wanted) -> Result<(), String> {
    stand.machine.world.set_faults(Faults::NONE);
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(1_500)).await;
        // A person looks after what has failed.
        for resource in stand.controller.list(Select::all()).resources {
            if resource.row.error.is_some() {
                let _ = stand.controller.refresh(resource.uid(), Refresh::Plain).await;
            }
        }
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let living = stand.living().await;
    for (name, spec) in &wanted.services {
        let service = stand.controller.get(Key::new("service", *name)).unwrap();
        let is_bad =
            spec.program.as_ref().unwrap().environment.contains_key("HEALTH") && !spec.checks.is_empty();
        let owned = owned_of(stand, service.uid());
        let lives = |uid: &Uid| living.iter().any(|id| id.uid() == uid.to_string());
        let running = owned.iter().filter(|(uid, _)| lives(uid)).count();
        let command = &spec.program.as_ref().unwrap().command;
        if is_bad {
            // Its old release, or none, and the copies of the attempt.
            continue;
        }
        if running != usize::try_from(spec.replicas).unwrap() {
            return Err(format!(
                "service {name}: {running} of {} run: {}",
                spec.replicas,
                stand.stages()
            ));
        }
        for (uid, (programs, record)) in &owned {
            if lives(uid) && (programs != command || record.stage != Stage::Running) {
                return Err(format!(
                    "service {name}: {programs:?} is {:?}, wanted {command:?}",
                    record.stage
                ));
            }
        }
    }
    for name in wanted.jobs.keys() {
        let record = stand.job_record(name);
        // Nothing ends by itself any more.
        if !matches!(
            record.stage,
            JobStage::Completed | JobStage::Failed | JobStage::Running
        ) {
            return Err(format!("job {name} is {:?}", record.stage));
        }
    }
    let known = stand.controller.list(Select::all()).resources;
    for id in &living {
        if !known.iter().any(|one| one.uid().to_string() == id.uid()) {
            return Err(format!("{id} runs and belongs to nothing"));
        }
    }
    Ok(())
}

fn owned_of(stand: &Stand, owner: Uid) -> BTreeMap<Uid, (Vec<String>, ReplicaRecord)> {
    let all = stand.controller.list(Select::all()).resources;
    let owned = all.iter().filter(|one| one.row.owner == Some(owner));
    owned
        .map(|one| {
            let spec: replica::ReplicaSpec = one.spec().unwrap();
            let record = one.state().unwrap().unwrap_or_default();
            (one.uid(), (spec.program.command, record))
        })
        .collect()
}

async fn world(seed: u64) -> Result<(), String> {
    let mut random = SmallRng::seed_from_u64(seed);
    let drawn = faults(&mut random);
    let mut stand = Stand::new(seed, drawn).await;
    let mut wanted = Wanted::default();
    for step in 0..STEPS {
        happen(&mut stand, &mut wanted, &mut random).await;
        check(&stand)
            .await
            .map_err(|error| format!("step {step}: {error}"))?;
    }
    check_at_rest(&stand, &wanted).await
}

fn run(seed: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(world(seed))
}

/// W1, W2, W3, W13 and more, under every fault.
#[test]
fn the_processes_are_those_that_are_wanted_whatever_happens() {
    let from = number("WATERSHED_WORKLOAD_SEED").unwrap_or(0);
    let rounds = match number("WATERSHED_WORKLOAD_SEED") {
        Some(_) if number("WATERSHED_WORKLOAD_ROUNDS").is_none() => 1,
        _ => rounds(),
    };
    for seed in from..from + rounds {
        if let Err(error) = run(seed) {
            panic!("{error}\nreplay with WATERSHED_WORKLOAD_SEED={seed} (and keep it in seeds.txt)");
        }
    }
}

#[test]
fn seeds_that_once_failed_pass() {
    for seed in include_str!("seeds.txt")
        .lines()
        .filter_map(|line| line.parse().ok())
    {
        if let Err(error) = run(seed) {
            panic!("seed {seed}: {error}");
        }
    }
}
