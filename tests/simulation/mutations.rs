//! Deliberate breaks of the core: each must be noticed by its unit tests or by the simulator.
//!
//! They are made in a copy, so nothing of them is in the core itself. The copy has all of them at once, each behind a
//! switch, so it is compiled once; `WATERSHED_MUTANT` says which one is on. Run by hand, for it takes a while:
//! `scripts/prove mutations`.
//! `WATERSHED_MUTATIONS` picks those whose name contains it, or one of several with `|` between.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// Enough for what the unit tests leave to the simulator.
const STEPS: &str = "400000";

/// The tests of the simulator that run worlds; the one that looks at this list would notice anything.
const WORLDS: [&str; 6] = [
    "--test",
    "simulation",
    "--",
    "seeds_that_once",
    "one_seed_decides",
    "every_rule_holds",
];

/// Many times as long as the tests take that pass.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) struct Mutation {
    pub(super) name: &'static str,
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

fn mutations() -> Vec<Mutation> {
    parse(include_str!("mutations.txt"))
}

/// Reads a list of mutations.
pub(super) fn parse(list: &'static str) -> Vec<Mutation> {
    let blocks = list.split("\n\n");
    let parse = |block: &'static str| {
        let mut lines = block.trim_matches('\n').lines();
        Some(Mutation {
            name: lines.next()?,
            file: lines.next()?,
            before: lines.next()?.strip_prefix("- ")?,
            after: lines.next()?.strip_prefix('+')?.trim_start(),
        })
    };
    blocks
        .filter(|block| !block.starts_with('#'))
        .map(|block| parse(block).unwrap_or_else(|| panic!("not a mutation:\n{block}")))
        .collect()
}

pub(super) fn root() -> PathBuf {
    let simulation = Path::new(env!("CARGO_MANIFEST_DIR"));
    simulation.ancestors().nth(2).expect("the workspace").to_owned()
}

/// A workspace of its own with a copy of the core and the simulator over it.
fn workspace() -> PathBuf {
    let (root, copy) = (root(), root().join("target/mutations"));
    let core = copy.join("core");
    let _ = fs::remove_dir_all(&core);
    copy_folder(&root.join("runtime/core"), &core);
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let (start, rest) = manifest.split_once("members = [").expect("members");
    let (_, rest) = rest.split_once(']').expect("the end of the members");
    let manifest = format!("{start}members = [\"core\", \"simulation\"]{rest}");
    let manifest = manifest.replace("path = \"runtime/core\"", "path = \"core\"");
    fs::write(copy.join("Cargo.toml"), manifest).expect("a manifest");
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).expect("a lock file");
    let simulation = copy.join("simulation");
    fs::create_dir_all(&simulation).expect("a folder");
    let main = root.join("tests/simulation/main.rs");
    let manifest = format!(
        "[package]\nname = \"simulation\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nrand.workspace = true\nrustix.workspace = true\nuuid.workspace = true\nwatershed-core.workspace = true\n\n\
         [[test]]\nname = \"simulation\"\npath = {main:?}\n"
    );
    fs::write(simulation.join("Cargo.toml"), manifest).expect("a manifest");
    copy
}

pub(super) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => {
                fs::copy(entry.path(), target).expect("a copy");
            }
        }
    }
}

/// Puts every mutation into the sources of a copy, each behind its switch.
pub(super) fn plant(sources: &Path, mutations: &[Mutation]) {
    for (number, mutation) in mutations.iter().enumerate() {
        let path = sources.join(mutation.file);
        let text = fs::read_to_string(&path).expect("a file of the copy");
        fs::write(
            &path,
            text.replacen(mutation.before, &mutation.switched(number), 1),
        )
        .expect("a mutant");
    }
    let lib = sources.join("lib.rs");
    let text = fs::read_to_string(&lib).expect("the library");
    fs::write(lib, format!("#![allow(unused_parens)]\n{text}{SWITCH}")).expect("the switch");
}

/// The code that looks up once which mutation is on.
const SWITCH: &str = r#"
fn mutated(number: usize) -> bool {
    static MUTANT: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let read = || {
        let mutant = std::env::var("WATERSHED_MUTANT").ok()?.parse().ok();
        // One that never ends is noticed as well.
        std::thread::spawn(|| {
            std::thread::sleep(std::time::Duration::from_secs(1_800));
            std::process::exit(1)
        });
        mutant
    };
    *MUTANT.get_or_init(read) == Some(number)
}
"#;

impl Mutation {
    /// Its text with both ways in it. What both begin and end with stays outside: a pattern, an `if`, a comma.
    fn switched(&self, number: usize) -> String {
        let (before, after) = (self.before, self.after);
        let is_statement = before.ends_with(';') && !before.starts_with("let ");
        if is_statement {
            return format!("if crate::mutated({number}) {{ {after} }} else {{ {before} }}");
        }
        let word = |word: &str| before.starts_with(word).then_some(word.len());
        let through = |sign: &str| before.find(sign).map(|at| at + sign.len());
        let binding = through("let ").and_then(|_| through(" = "));
        let begin = binding
            .or_else(|| word("if "))
            .or_else(|| word("while "))
            .or_else(|| through("=> "));
        let end = [" {", ",", ";"]
            .into_iter()
            .find(|end| before.ends_with(end))
            .unwrap_or("");
        let (begin, rest) = before.split_at(begin.unwrap_or(0));
        let other = rest.strip_suffix(end).unwrap_or(rest);
        let one = after
            .strip_prefix(begin)
            .and_then(|after| after.strip_suffix(end));
        let one = one.unwrap_or_else(|| panic!("{}: both must be {begin}...{end}", self.name));
        format!("{begin}(if crate::mutated({number}) {{ {one} }} else {{ {other} }}){end}")
    }
}

/// The tests of a package of the copy, compiled.
pub(super) fn build(workspace: &Path, package: &str, arguments: &[&str]) {
    let built = cargo(workspace, package, arguments, None)
        .arg("--no-run")
        .status();
    assert!(built.expect("cargo runs").success(), "the copy does not compile");
}

pub(super) fn cargo(workspace: &Path, package: &str, arguments: &[&str], mutant: Option<usize>) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(workspace)
        .args(["test", "-q", "-j", "2", "-p", package]);
    command.args(arguments);
    command.env("CARGO_TARGET_DIR", workspace.join("target"));
    command
        .env("WATERSHED_SIM_STEPS", STEPS)
        .env("RUST_BACKTRACE", "0");
    command.env_remove("WATERSHED_PROOF");
    if let Some(mutant) = mutant {
        command.env("WATERSHED_MUTANT", mutant.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    command
}

/// Returns true if its tests pass. A core that never comes to an end has been noticed as well.
pub(super) fn ends_well(mut command: Command) -> bool {
    let mut child = command.process_group(0).spawn().expect("cargo runs");
    let group = Pid::from_child(&child);
    let (tell, told) = mpsc::channel();
    let waiting = thread::spawn(move || tell.send(child.wait()));
    let ended = told.recv_timeout(PATIENCE);
    if ended.is_err() {
        kill_process_group(group, Signal::KILL).expect("it runs");
    }
    let _ = waiting.join();
    ended.is_ok_and(|status| status.expect("it can be waited for").success())
}

/// Returns the first suite that notices a mutation: the cheapest runs first.
fn noticed_by(workspace: &Path, mutant: usize) -> Option<&'static str> {
    let passes =
        |package: &str, arguments: &[&str]| ends_well(cargo(workspace, package, arguments, Some(mutant)));
    let rest = [
        "--lib",
        "--",
        "--skip",
        "exhaustive",
        "--skip",
        "hundred_thousand",
    ];
    if !passes("watershed-core", &rest) {
        Some("unit tests")
    } else if !passes("watershed-core", &["--lib", "--", "exhaustive"]) {
        Some("all small graphs")
    } else if !passes("simulation", &WORLDS) {
        Some("the simulator")
    } else {
        None
    }
}

#[test]
#[ignore = "compiles the core anew, and runs its tests once for each mutation"]
fn every_mutation_of_the_core_is_noticed() {
    let (workspace, mutations) = (workspace(), mutations());
    plant(&workspace.join("core/src"), &mutations);
    build(&workspace, "watershed-core", &["--lib"]);
    build(&workspace, "simulation", &["--test", "simulation"]);
    assert_noticed(&mutations, |number| noticed_by(&workspace, number));
}

#[test]
fn every_mutation_still_fits_the_core() {
    assert_fits(&mutations(), "runtime/core/src");
}

/// Sees that somebody notices each mutation that is picked; `noticed_by` makes one and says who did.
#[track_caller]
#[expect(
    clippy::print_stdout,
    reason = "it goes on for minutes, and whoever runs it wants to see how far it is"
)]
pub(super) fn assert_noticed(mutations: &[Mutation], noticed_by: impl Fn(usize) -> Option<&'static str>) {
    let picked = std::env::var("WATERSHED_MUTATIONS").unwrap_or_default();
    let mut survived = Vec::new();
    let picked = mutations
        .iter()
        .enumerate()
        .filter(|(_, it)| picked.split('|').any(|part| it.name.contains(part)));
    for (number, mutation) in picked {
        let by = noticed_by(number);
        println!("{:75} {}", mutation.name, by.unwrap_or("NOBODY"));
        survived.extend(by.is_none().then_some(mutation.name));
    }
    assert!(survived.is_empty(), "not noticed: {survived:?}");
}

/// Sees that the text of each mutation stands once in its file below a folder and can be planted there, and that there
/// are enough.
#[track_caller]
pub(super) fn assert_fits(mutations: &[Mutation], sources: &str) {
    assert!(mutations.len() >= 20, "{} mutations", mutations.len());
    for mutation in mutations {
        let path = root().join(sources).join(mutation.file);
        let text = fs::read_to_string(path).expect("a file of the sources");
        let places = text.matches(mutation.before).count();
        assert_eq!(places, 1, "{}: its text is there {places} times", mutation.name);
        mutation.switched(0);
    }
}
