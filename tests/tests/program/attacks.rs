//! Programs beside the data while whatever keeps them is killed without mercy: nothing runs twice, nothing is lost, no end
//! is counted twice, and nothing is left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Stdio};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use watershed_workloads::CRASH_POINTS;

use crate::processes::{Program, is_alive, kill, pause, programs, shims, start_of, until};
use crate::sandbox::Sandbox;

/// Services and jobs write the tag of each start to a file beside the project.
const WRITE: &str = "echo \"$WATERSHED_PROCESS\" >> ../ledger";

/// Crash points that are tried at once.
const AT_ONCE: usize = 4;

/// Returns a number that the environment sets, or the one for CI or for an ordinary run.
fn number(variable: &str, ci: u64, ordinary: u64) -> u64 {
    let set = std::env::var(variable).ok().and_then(|set| set.parse().ok());
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    set.unwrap_or(if is_ci { ci } else { ordinary })
}

/// A project of three programs: one that is steady, one that ends again and again until it is calmed, and a job.
struct Arena {
    project: Sandbox,
    start: Option<Child>,
    label: u64,
    replicas: u64,
    run: u64,
}

impl Arena {
    fn new() -> Self {
        let arena = Self {
            project: Sandbox::with(&[("watershed.yaml", "")]),
            start: None,
            label: 0,
            replicas: 2,
            run: 0,
        };
        let crashing = format!(
            "type: service\nrun: |\n  {WRITE}; test -e ../calm && exec sleep 100000; exit 3\n\
             environment: {{NAME: crashing}}\nrestart: {{base: 20ms, cap: 200ms, attempts: 0}}\n"
        );
        arena.project.write("programs/crashing.yaml", &crashing);
        arena.write();
        arena
    }

    fn write(&self) {
        let steady = format!(
            "type: service\nrun: |\n  {WRITE}; exec sleep 100000\nenvironment: {{NAME: steady, LABEL: \"{}\"}}\n\
             replicas: {}\nrestart: {{base: 10ms, attempts: 0}}\nstop: {{grace: 1s}}\n",
            self.label, self.replicas
        );
        self.project.write("programs/steady.yaml", &steady);
        let job = format!(
            "type: job\nrun: |\n  {WRITE}; echo {} >> ../done\nretries: {{attempts: 50, base: 10ms, cap: 50ms}}\n",
            self.run
        );
        self.project.write("programs/job.yaml", &job);
    }

    /// Starts the program, maybe with a point at which it dies.
    fn begin(&mut self, points: Option<&str>) {
        let mut command = self.project.command(&["start"]);
        if let Some(points) = points {
            command.env("FAILPOINTS", points);
        }
        let log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.beside("log"));
        let log = log.expect("a file of what it says");
        command.stdout(Stdio::null()).stderr(log);
        self.start = Some(command.spawn().expect("the program can be started"));
    }

    fn beside(&self, name: &str) -> std::path::PathBuf {
        self.project.path().join("..").join(name)
    }

    fn kill_program(&mut self) {
        if let Some(mut start) = self.start.take() {
            start.kill().expect("the program can be killed");
            start.wait().expect("a killed program ends");
        }
    }

    fn kill_shims(&self) {
        shims(&self.project).into_iter().for_each(kill);
    }

    fn of(&self, name: &str) -> Vec<Program> {
        let mut found = programs(&self.project);
        found.retain(|one| one.environment.get("NAME").is_some_and(|found| found == name));
        found
    }

    /// Sees that nothing runs twice, and that nothing ran twice.
    #[track_caller]
    fn check(&self, story: &str) {
        let mut by_uid: BTreeMap<String, Program> = BTreeMap::new();
        for one in programs(&self.project) {
            if let Some(other) = by_uid.insert(one.uid.clone(), one.clone()) {
                // They were looked at one after the other, so one may have followed on the other.
                let both = is_alive(one.pid) && is_alive(other.pid);
                assert!(!both, "{story}: {other:?} and {one:?}");
            }
        }
        let ledger = fs::read_to_string(self.beside("ledger")).unwrap_or_default();
        let mut seen = BTreeSet::new();
        for line in ledger.lines() {
            let start = start_of(line).expect("each line is a tag");
            assert!(seen.insert(start), "{story}: {line} ran twice");
        }
    }

    /// Lets everything come to rest, and sees that all is as the files say.
    fn end(mut self, story: &str) {
        fs::write(self.beside("calm"), "").expect("a file");
        match &mut self.start {
            Some(start) => assert!(
                start.try_wait().expect("it can be asked").is_none(),
                "{story}: it ended"
            ),
            None => self.begin(None),
        }
        let label = self.label.to_string();
        until(
            &format!("{story}: the steady ones run, of the last release"),
            || {
                let found = self.of("steady");
                let is_last = |one: &Program| one.environment.get("LABEL") == Some(&label);
                found.len() as u64 == self.replicas && found.iter().all(is_last)
            },
        );
        until(&format!("{story}: the crashing one is calm"), || {
            self.of("crashing").len() == 1
        });
        let run = self.run.to_string();
        until(&format!("{story}: the last job has run"), || {
            let done = fs::read_to_string(self.beside("done")).unwrap_or_default();
            done.lines().last() == Some(&run)
        });
        self.check(story);
        let crashing = self.of("crashing").remove(0);
        let failures = || {
            let document = self.project.call(&["status", "crashing", "--json"]).json();
            let replicas = &document["resources"][0]["result"]["replicas"];
            assert_eq!(replicas.as_array().map(Vec::len), Some(1), "{story}: {document}");
            (replicas[0]["stage"] == "ready").then(|| replicas[0]["failures"].as_u64())
        };
        until(&format!("{story}: it is ready"), || failures().is_some());
        // Each start before this one has ended once.
        assert_eq!(failures(), Some(Some(crashing.counter - 1)), "{story}");
        for file in ["crashing", "steady", "job"] {
            self.project.remove(&format!("programs/{file}.yaml"));
        }
        until(&format!("{story}: nothing is left"), || {
            programs(&self.project).is_empty() && files_of_programs(&self.project) == 0
        });
        self.check(story);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Some(start) = &mut self.start {
            let _ = start.kill();
            let _ = start.wait();
        }
        self.kill_shims();
        programs(&self.project).iter().for_each(|one| kill(one.pid));
    }
}

/// The folders of what programs have written.
fn files_of_programs(project: &Sandbox) -> usize {
    fs::read_dir(project.path().join(".watershed/dev/programs")).map_or(0, Iterator::count)
}

/// One random edit or mishap, one kill, and a look.
fn attack(arena: &mut Arena, random: &mut SmallRng, story: &str) {
    match random.random_range(0..8) {
        0 | 1 => arena.label += 1,
        2 | 3 => arena.run += 1,
        4 => arena.replicas = random.random_range(1..4),
        5 => {
            if let Some(one) = arena.of("steady").first() {
                kill(one.pid);
            }
        }
        _ => {}
    }
    arena.write();
    pause(Duration::from_millis(random.random_range(0..900)));
    match random.random_range(0..5) {
        0 | 1 => arena.kill_program(),
        2 => arena.kill_shims(),
        3 => {
            arena.kill_program();
            pause(Duration::from_millis(random.random_range(0..50)));
            arena.kill_shims();
        }
        _ => {
            arena.kill_shims();
            pause(Duration::from_millis(random.random_range(0..50)));
            arena.kill_program();
        }
    }
    if arena.start.is_none() {
        pause(Duration::from_millis(random.random_range(0..100)));
        arena.begin(None);
    }
    arena.check(story);
}

/// W13: kill -9 of the program, of the parent of its processes, and of both, at random moments.
#[test]
fn killed_at_any_moment_program_and_parent_run_nothing_twice_and_count_each_end_once() {
    let seed = number("WATERSHED_SEED", 1, 1);
    let rounds = number("WATERSHED_ATTACKS", 30, 3);
    let mut random = SmallRng::seed_from_u64(seed);
    let mut arena = Arena::new();
    arena.begin(None);
    for round in 0..rounds {
        attack(&mut arena, &mut random, &format!("seed {seed}, round {round}"));
    }
    arena.end(&format!("seed {seed}, {rounds} rounds"));
}

/// W3 and W13: kill -9 of the program before and after it stores, starts, stops and forgets.
#[test]
fn dead_at_a_named_point_the_next_program_goes_on_where_it_was() {
    let visits: &[u32] = if number("WATERSHED_ATTACKS", 1, 0) > 0 {
        &[0, 3]
    } else {
        &[0]
    };
    let cases: Vec<(&str, u32)> = CRASH_POINTS
        .iter()
        .flat_map(|point| visits.iter().map(move |visit| (*point, *visit)))
        .collect();
    for some in cases.chunks(AT_ONCE) {
        std::thread::scope(|scope| {
            for (point, visit) in some {
                scope.spawn(move || die_at(point, *visit));
            }
        });
    }
}

fn die_at(point: &str, visit: u32) {
    let story = format!("{point}, visit {visit}");
    let mut arena = Arena::new();
    arena.begin(Some(&format!("{point}={visit}*off->return")));
    let mut start = arena.start.take().expect("it was started");
    until(&format!("{story}: it dies"), || {
        let ended = start.try_wait().expect("it can be asked");
        if ended.is_none() {
            (arena.label, arena.run) = (arena.label + 1, arena.run + 1);
            arena.write();
            pause(Duration::from_millis(300));
        }
        ended.is_some()
    });
    arena.check(&story);
    arena.begin(None);
    arena.end(&story);
}

/// W14: after many starts and stops no process, zombie, descriptor or file of output remains, and in the end no parent.
#[test]
fn starts_and_stops_leave_nothing_in_program_parent_and_folder() {
    const COPIES: u64 = 10;
    let rounds = number("WATERSHED_LEAKS", 100, 30) / COPIES;
    let mut arena = Arena::new();
    for file in ["crashing", "steady", "job"] {
        arena.project.remove(&format!("programs/{file}.yaml"));
    }
    arena.begin(None);
    let mut before = None;
    for round in 0..rounds + 1 {
        let service = format!(
            "type: service\nrun: echo begun; exec sleep 100000\nreplicas: {COPIES}\nports: [{{name: PORT}}]\n\
             environment: {{ROUND: \"{round}\"}}\nchecks: [{{tcp: {{port: PORT}}, on_failure: alert, interval: 50ms}}]\n"
        );
        arena.project.write("programs/many.yaml", &service);
        until("all run", || programs(&arena.project).len() as u64 == COPIES);
        arena.project.remove("programs/many.yaml");
        until("none runs", || {
            programs(&arena.project).is_empty() && files_of_programs(&arena.project) == 0
        });
        // The first round opens what stays open.
        before.get_or_insert_with(|| descriptors(&arena));
    }
    until("no descriptor is left", || {
        descriptors(&arena) <= before.expect("a round has passed")
    });
    let parent = shims(&arena.project);
    let zombies =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    until("no zombie is left", || {
        parent.iter().all(|pid| zombies(pid).is_empty())
    });
    arena.kill_program();
    until("the parent has ended", || shims(&arena.project).is_empty());
}

/// The open files of the program and of the parent.
fn descriptors(arena: &Arena) -> (usize, usize) {
    let of = |pid: i32| fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let program = arena
        .start
        .as_ref()
        .map(|start| i32::try_from(start.id()).expect("a pid"));
    (
        program.map_or(0, of),
        shims(&arena.project).into_iter().map(of).sum(),
    )
}
