//! Simulations with random edits, crashes, faults and restarts, from seeds.
//!
//! After each step: a process that lives has its start stored, and the [reference](super::reference) agrees with what was
//! started, stopped and counted. At rest, without faults, the processes are those of a fresh start; when all is deleted,
//! nothing is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use watershed_controller::{Delete, Key, Refresh, Resource, Select, Uid};
use watershed_proto::{JobRetries, JobSpec, Program, ServiceSpec};

use super::reference::{ENDS_WELL, Ready, Reference};
use super::stand::{Stand, checked, service, with_own_checks, with_variable};
use crate::backend::StartId;
use crate::backend::simulated::Faults;
use crate::job::{self, JobStage};
use crate::replica::{self, ReplicaRecord, ReplicaSpec, Stage};
use crate::service::ServiceRecord;

/// Number of steps in a world.
const STEPS: u32 = 40;

/// The longest simulated time between two checks by the reference model, in milliseconds.
const SLICE_MS: u64 = 2_500;

/// Returns the number of worlds: for an ordinary run, for CI, or for a proof.
fn rounds() -> u64 {
    if let Some(rounds) = number("WATERSHED_WORKLOAD_ROUNDS") {
        return rounds;
    }
    match std::env::var("WATERSHED_PROOF").as_deref() {
        // Half a minute of one core.
        Err(_) | Ok("ci") => 30,
        Ok(_) => 75,
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
        lost_answers: chance(200),
        ignored_stops: chance(500),
        max_start: Duration::from_millis(u64::from(chance(3_000))),
        max_life: Duration::from_millis(u64::from(chance(60_000))),
        max_delay: Duration::from_millis(u64::from(chance(5_000))),
    }
}

/// The wanted specs of a world.
#[derive(Default)]
struct Wanted {
    services: BTreeMap<&'static str, ServiceSpec>,
    jobs: BTreeMap<&'static str, JobSpec>,
}

const SERVICES: [&str; 3] = ["a", "b", "c"];
const JOBS: [&str; 2] = ["x", "y"];

/// Time by which a clock is set back: longer than a world lasts.
const SET_BACK: Duration = Duration::from_secs(86_400);

/// Returns a separate random generator for later additions, so that kept seeds keep their meaning.
fn later(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed ^ 0x5eed)
}

/// Returns a service with the settings that its name implies, and those added later.
fn settle_service(name: &str, mut spec: ServiceSpec, later: &mut SmallRng) -> ServiceSpec {
    if let Some(restart) = spec.restart.as_mut().filter(|_| name == ENDS_WELL) {
        restart.policy = "on_failure".into();
    }
    let is_told = later.random_bool(0.3);
    for check in spec.checks.iter_mut().filter(|_| is_told) {
        check.on_failure = "alert".into();
    }
    spec
}

fn draw_service(random: &mut SmallRng) -> ServiceSpec {
    let replicas = random.random_range(0..4);
    let base = match random.random_bool(0.5) {
        true => checked(replicas),
        false => service(replicas),
    };
    let mut named = with_own_checks(base, ["serve", "other", "third"][random.random_range(0..3)]);
    if let Some(rollout) = named.rollout.as_mut() {
        (rollout.surge, rollout.unavailable) = [(1, 0), (3, 0), (0, 1), (1, 1)][random.random_range(0..4)];
    }
    if let Some(program) = named.program.as_mut().filter(|_| random.random_bool(0.3)) {
        program.ports = vec![watershed_proto::Port {
            name: "PORT".into(),
            ..watershed_proto::Port::default()
        }];
    }
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

/// Performs one random event.
async fn happen(
    stand: &mut Stand,
    wanted: &mut Wanted,
    [random, later]: [&mut SmallRng; 2],
    reference: &mut Reference,
) {
    if later.random_bool(0.02) {
        stand.set_back(SET_BACK);
    }
    match random.random_range(0..15) {
        0..=2 => {
            let name = SERVICES[random.random_range(0..SERVICES.len())];
            let spec = settle_service(name, draw_service(random), later);
            stand.service(name, &spec).await;
            // Other bounds may hold from now on.
            reference.disturbed();
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
        6 | 7 => {
            if let Some(id) = one_of(&stand.living(), random) {
                match random.random_bool(0.7) {
                    true => stand.machine.kill(&id),
                    false => stand.answers.fail(id),
                }
                reference.disturbed();
            }
        }
        8 if random.random_bool(0.3) => stand.machine.reboot(),
        9 => stand.restart().await,
        10 => stand.crash().await,
        11 => {
            let all = stand.controller.list(Select::all()).resources;
            if let Some(resource) = one_of(&all, random) {
                refresh(stand, &resource, reference).await;
            }
        }
        12 => stand.machine.kill_parent(),
        13 if random.random_bool(0.5) => {
            // The lease is lost: whoever had it stands still, its processes are killed, and another program begins.
            stand.machine.end_lease();
            reference.disturbed();
            stand.crash().await;
        }
        _ => {}
    }
}

fn one_of<T: Clone>(all: &[T], random: &mut SmallRng) -> Option<T> {
    (!all.is_empty()).then(|| all[random.random_range(0..all.len())].clone())
}

/// Requests a refresh of a resource, as a person would.
async fn refresh(stand: &Stand, resource: &Resource, reference: &mut Reference) {
    let uid = resource.uid();
    // It may be gone by now.
    if stand.controller.refresh(uid, Refresh::Plain).await.is_err() {
        return;
    }
    match resource.kind().as_str() {
        "service" => reference.asked_service(uid),
        _ => reference.asked(uid),
    }
}

/// Requests refreshes of all failed services and jobs by name; replicas have no names in files.
async fn refresh_failed(stand: &Stand, reference: &mut Reference) {
    let all = stand.controller.list(Select::all()).resources;
    let failed = all.iter().filter(|one| one.row.error.is_some());
    let named: BTreeSet<Uid> = failed.map(|one| one.row.owner.unwrap_or(one.uid())).collect();
    for resource in all.iter().filter(|one| named.contains(&one.uid())) {
        refresh(stand, resource, reference).await;
    }
}

/// Lets simulated time pass in slices, and checks the rules after each.
async fn pass(stand: &Stand, ms: u64, reference: &mut Reference) -> Result<(), String> {
    let mut left = ms;
    loop {
        let slice = left.min(SLICE_MS);
        tokio::time::sleep(Duration::from_millis(slice)).await;
        check(stand, reference)?;
        left -= slice;
        if left == 0 {
            return Ok(());
        }
    }
}

/// Checks the rules that hold at every moment.
fn check(stand: &Stand, reference: &mut Reference) -> Result<(), String> {
    let all = stand.controller.list(Select::all().with_deleted()).resources;
    let counters: BTreeMap<String, u64> = all
        .iter()
        .filter_map(|one| match one.kind().as_str() {
            replica::KIND => {
                let record = one.state::<ReplicaRecord>().unwrap().unwrap_or_default();
                Some((one.uid().to_string(), record.counter))
            }
            job::KIND => {
                let record = one.state::<crate::job::JobRecord>().unwrap().unwrap_or_default();
                Some((one.uid().to_string(), record.counter))
            }
            _ => None,
        })
        .collect();
    let living = stand.living();
    for id in &living {
        if let Some(stored) = counters.get(id.uid())
            && *stored < id.counter()
        {
            return Err(format!("{id} runs, and {stored} is stored"));
        }
    }
    reference.read(stand)?;
    reference.compare(stand, false)?;
    for service in all.iter().filter(|one| one.kind().as_str() == "service") {
        let spec: crate::Service = service.spec().unwrap();
        let record = service.state::<ServiceRecord>().unwrap().unwrap_or_default();
        let unavailable = spec.0.rollout.as_ref().map_or(0, |rollout| rollout.unavailable);
        let owned = all.iter().filter(|one| one.row.owner == Some(service.uid()));
        let completed = owned.filter(|one| {
            let record = one.state::<ReplicaRecord>().unwrap();
            record.is_some_and(|record| record.stage == Stage::Completed)
        });
        // What is at its end serves no more, and need not be kept for.
        let completed = u32::try_from(completed.count()).unwrap();
        let needed = record
            .replicas
            .saturating_sub(unavailable)
            .saturating_sub(completed);
        let owned = all.iter().filter(|one| one.row.owner == Some(service.uid()));
        let believed: Vec<(Uid, ReplicaSpec)> = owned
            .filter(|one| {
                let state = one.state::<ReplicaRecord>().unwrap();
                one.spec::<ReplicaSpec>().unwrap().is_wanted && state.is_some_and(|record| record.is_ready())
            })
            .map(|one| (one.uid(), one.spec().unwrap()))
            .collect();
        let serves = |id: &StartId| !stand.answers.is_failing(id);
        // An edit may add checks to copies that run, and that never pass them: the next one finds that out.
        let fails =
            |spec: &ReplicaSpec| !spec.checks.is_empty() && spec.program.environment.contains_key("HEALTH");
        let lives = |(uid, spec): &&(Uid, ReplicaSpec)| {
            !fails(spec) && living.iter().any(|id| id.uid() == uid.to_string() && serves(id))
        };
        // One that has ended may still be taken for ready, by a check that passed before.
        let owned = all.iter().filter(|one| one.row.owner == Some(service.uid()));
        let unlearned = owned.filter(|one| {
            let record = one.state::<ReplicaRecord>().unwrap().unwrap_or_default();
            matches!(record.stage, Stage::Starting | Stage::Running)
                && reference.has_ended(one.uid(), record.counter)
        });
        let ready = Ready {
            believed: believed.len() + unlearned.count(),
            there: believed.iter().filter(lives).count(),
        };
        reference
            .watch_rollout(service.uid(), &record, usize::try_from(needed).unwrap(), ready)
            .map_err(|error| format!("service/{}: {error}", service.row.name))?;
    }
    Ok(())
}

/// Checks that without faults, after a while, exactly the wanted processes run.
async fn check_at_rest(stand: &Stand, wanted: &Wanted, reference: &mut Reference) -> Result<(), String> {
    stand.machine.world.set_faults(Faults::NONE);
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(1_500)).await;
        refresh_failed(stand, reference).await;
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    check(stand, reference)?;
    reference.compare(stand, true)?;
    let living = stand.living();
    for (name, spec) in &wanted.services {
        let service = stand.controller.get(Key::new("service", *name)).unwrap();
        let is_bad =
            spec.program.as_ref().unwrap().environment.contains_key("HEALTH") && !spec.checks.is_empty();
        let owned = owned_of(stand, service.uid());
        let lives = |uid: &Uid| living.iter().any(|id| id.uid() == uid.to_string());
        let is_there = |(uid, (_, record)): &(&Uid, &(ReplicaSpec, ReplicaRecord))| {
            lives(uid) || record.stage == Stage::Completed
        };
        let running = owned.iter().filter(is_there).count();
        let command = &spec.program.as_ref().unwrap().command;
        check_releases(
            &stand.service_record(name),
            owned.iter().filter(|(uid, _)| lives(uid)),
        )
        .map_err(|error| format!("service {name}: {error}: {}", stand.stages()))?;
        if is_bad {
            // Its old release, or none, and the copies of the attempt.
            continue;
        }
        if stand.error("service", name).starts_with("never-ready") {
            return Err(format!("service {name} has failed: {}", stand.stages()));
        }
        if running != usize::try_from(spec.replicas).unwrap() {
            return Err(format!(
                "service {name}: {running} of {} run: {}",
                spec.replicas,
                stand.stages()
            ));
        }
        for (uid, (spec, record)) in &owned {
            let programs = &spec.program.command;
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

/// W11: what is left of a release that failed is removed, whatever became of the old one.
fn check_releases<'a>(
    record: &ServiceRecord,
    living: impl Iterator<Item = (&'a Uid, &'a (ReplicaSpec, ReplicaRecord))>,
) -> Result<(), String> {
    if record.candidate.is_some() {
        return Ok(());
    }
    for (_, (spec, _)) in living {
        if spec.release != record.active {
            return Err(format!(
                "a copy of release {} lives, and {} is active",
                spec.release, record.active
            ));
        }
    }
    Ok(())
}

fn owned_of(stand: &Stand, owner: Uid) -> BTreeMap<Uid, (ReplicaSpec, ReplicaRecord)> {
    let all = stand.controller.list(Select::all()).resources;
    let owned = all.iter().filter(|one| one.row.owner == Some(owner));
    owned
        .map(|one| {
            let spec: replica::ReplicaSpec = one.spec().unwrap();
            let record = one.state().unwrap().unwrap_or_default();
            (one.uid(), (spec, record))
        })
        .collect()
}

async fn world(seed: u64) -> Result<(), String> {
    let (mut random, mut later) = (SmallRng::seed_from_u64(seed), later(seed));
    let drawn = faults(&mut random);
    let mut stand = Stand::new(seed, drawn).await;
    let (mut wanted, mut reference) = (Wanted::default(), Reference::default());
    for step in 0..STEPS {
        happen(&mut stand, &mut wanted, [&mut random, &mut later], &mut reference).await;
        let ms = [0, 10, 500, 3_000, 20_000][random.random_range(0..5)];
        let passed = pass(&stand, ms, &mut reference).await;
        passed.map_err(|error| format!("step {step}: {error}"))?;
    }
    check_at_rest(&stand, &wanted, &mut reference).await?;
    check_nothing_is_left(&stand, &wanted).await
}

/// W14: when everything is deleted, nothing is left of it.
async fn check_nothing_is_left(stand: &Stand, wanted: &Wanted) -> Result<(), String> {
    let services = wanted.services.keys().map(|name| Key::new("service", *name));
    for key in services.chain(wanted.jobs.keys().map(|name| Key::new("job", *name))) {
        stand.controller.delete(key).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    let left = (stand.machine.world.kept(), stand.workloads.kept());
    match left {
        (0, [0, 0, 0]) => Ok(()),
        (starts, kept) => Err(format!(
            "{starts} starts are left, and in memory (observations, ports, probes) {kept:?}"
        )),
    }
}

fn run(seed: u64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(world(seed))
}

/// Covers W1, W2, W3, W13 and further rules, under all faults.
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
