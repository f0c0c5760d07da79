//! The demo comes to the same end wherever its program is killed, and no step has its effect twice.

use std::collections::BTreeMap;
use std::process::Command;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The kills of one play.
const KILLS: usize = 2;
/// The length of the session, in seconds.
const SECONDS: u64 = 6;
/// The time until the session is over, within which kills fall.
const MOMENTS_MS: u64 = 12_500;

/// The result of one play, as it is printed.
struct Played {
    text: String,
    /// The last stage of each resource.
    stages: BTreeMap<String, String>,
    /// Number of records of each step, by resource and stages.
    steps: BTreeMap<String, usize>,
    /// Number of times that each effect was had outside.
    effects: BTreeMap<String, usize>,
}

fn play(kill_at: &str) -> Played {
    let mut demo = Command::new(env!("CARGO_BIN_EXE_lab"));
    demo.args(["demo", "--seconds", &SECONDS.to_string()]);
    if !kill_at.is_empty() {
        demo.args(["--kill-at", kill_at]);
    }
    let output = demo.output().expect("the demo runs");
    let text = String::from_utf8(output.stdout).expect("its output is text");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "killed at {kill_at} ms\n{text}\n{errors}"
    );
    read(text)
}

fn read(text: String) -> Played {
    let (mut stages, mut steps, mut effects) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, "s", _, name, from, "->", to, reason, ..] = words.as_slice() {
            stages.insert((*name).to_owned(), (*to).to_owned());
            if reason.starts_with("(step") {
                *steps.entry(format!("{name} {from} -> {to}")).or_default() += 1;
            }
        } else if let ["effect", what, name, ..] = words.as_slice() {
            *effects.entry(format!("{what} {name}")).or_default() += 1;
        }
    }
    Played {
        text,
        stages,
        steps,
        effects,
    }
}

/// Sees that all came to its end, and that nothing happened twice but the start of the pod that was killed by hand.
fn check(played: &Played, kill_at: &str) {
    let text = &played.text;
    let names: Vec<&str> = played.stages.keys().map(String::as_str).collect();
    let all = [
        "monday",
        "monday.shell",
        "monday.shell.pod",
        "monday.web",
        "monday.web.pod",
        "worker",
    ];
    assert_eq!(names, all, "killed at {kill_at} ms\n{text}");
    for (name, stage) in &played.stages {
        assert_eq!(stage, "gone", "{name}, killed at {kill_at} ms\n{text}");
    }
    let boots = |name: &str| played.effects.get(&format!("boot {name}")).copied();
    assert_eq!(
        (boots("monday.shell.pod"), boots("monday.web.pod")),
        (Some(2), Some(1)),
        "killed at {kill_at} ms\n{text}"
    );
    for (what, count) in played.effects.iter().chain(&played.steps) {
        let is_mended =
            what.starts_with("boot monday.shell.pod") || what == "monday.shell.pod prepared -> active";
        assert!(
            *count == 1 || is_mended,
            "{what}: {count} times, killed at {kill_at} ms\n{text}"
        );
    }
    assert!(
        text.ends_with("nothing is left: no process, no folder, no port\n"),
        "{text}"
    );
}

/// `WATERSHED_LAB_PLAYS` says how many plays, `WATERSHED_SEED` from which seed.
#[test]
fn a_session_comes_to_the_same_end_wherever_the_program_is_killed() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, plays) = (
        number("WATERSHED_SEED").unwrap_or(1),
        number("WATERSHED_LAB_PLAYS").unwrap_or(1),
    );
    for seed in first..first + plays {
        let mut random = SmallRng::seed_from_u64(seed);
        let moments = (0..KILLS).map(|_| random.random_range(0..MOMENTS_MS).to_string());
        let kill_at = moments.collect::<Vec<_>>().join(",");
        println!("seed {seed}: killed at {kill_at} ms");
        check(&play(&kill_at), &kill_at);
    }
}

#[test]
fn an_option_that_there_is_not_is_refused() {
    let demo = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args(["demo", "--fast"])
        .output()
        .unwrap();
    assert!(!demo.status.success());
    let errors = String::from_utf8_lossy(&demo.stderr);
    assert!(errors.contains("unknown option: --fast"), "{errors}");
}
