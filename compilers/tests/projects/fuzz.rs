//! Fuzzing: inputs made of the cases of `testdata/compilers` and of the tables of keys, for as long as somebody wants.
//!
//! | target | what is made |
//! |---|---|
//! | `yaml` | one YAML file of any kind |
//! | `front_matter` | SQL with annotations and settings |
//! | `templates` | templates in SQL and in YAML |
//! | `projects` | whole projects, and events that change them |
//! | `editor` | questions of an editor at any place of any text |
//!
//! An input is a function of its seed. An ordinary run takes a second for each target, `WATERSHED_PROOF=ci` ten,
//! `WATERSHED_FUZZ_SECONDS` as many as it says (`scripts/prove fuzz`). A failure prints target and seed; `WATERSHED_SEED`
//! runs one seed alone. Seeds that once failed stand in `fuzz/seeds.txt` and are always run.

mod input;
mod watchdog;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use input::{Input, Random};
use watchdog::Watchdog;
use watershed_compilers::{FileEvent, Options, Project, Scope, editor, render_text};

use crate::{engine::Engine, report::report};

/// Seeds that once failed: target and seed, one a line.
const KEPT: &str = include_str!("fuzz/seeds.txt");
/// Seconds that each target has in an ordinary run.
const ORDINARY: u64 = 1;
/// Seconds that each target has in CI.
const CI: u64 = 10;

/// The time that each target has.
fn share() -> Duration {
    let said = std::env::var("WATERSHED_FUZZ_SECONDS").ok();
    let said = said.and_then(|seconds| seconds.parse().ok());
    let is_ci = std::env::var("WATERSHED_PROOF").is_ok_and(|proof| proof == "ci");
    Duration::from_secs(said.unwrap_or(if is_ci { CI } else { ORDINARY }))
}

/// The first fresh seed: another one each time where somebody fuzzes for long, and always the same otherwise.
fn first_seed() -> u64 {
    if std::env::var_os("WATERSHED_FUZZ_SECONDS").is_none() {
        return 1;
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_secs() << 24)
}

/// Runs a target on the seeds that were kept, then on fresh ones until its time is over.
#[allow(clippy::print_stdout, reason = "how far it came is what a long run is for")]
fn fuzz(target: &str, run: impl Fn(&mut Random, &Engine)) {
    let engine = Engine::new();
    let watchdog = Watchdog::new(target);
    let one = |seed: u64| {
        watchdog.begin(seed);
        let done = catch_unwind(AssertUnwindSafe(|| run(&mut Random::new(seed), &engine)));
        watchdog.end();
        assert!(done.is_ok(), "target {target} fails with WATERSHED_SEED={seed}");
    };
    if let Some(seed) = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        return one(seed);
    }
    let kept = KEPT.lines().filter_map(|line| line.split_once(' '));
    let own = kept.filter(|(of, _)| *of == target);
    own.for_each(|(_, seed)| one(seed.parse().expect("a seed")));
    let (begun, share, first) = (Instant::now(), share(), first_seed());
    let mut seed = first;
    while begun.elapsed() < share {
        one(seed);
        seed += 1;
    }
    println!("{target}: {} inputs from seed {first}", seed - first);
}

fn written(path: &str, content: &[u8]) -> FileEvent {
    FileEvent::Written {
        path: path.to_owned(),
        content: Arc::from(content),
    }
}

/// Compiles one file beside a few that are well; without it all is as before.
fn beside_others(path: &str, content: &[u8], engine: &Engine) {
    let mut project = Project::new(Options::default());
    let others: [(&str, &[u8]); 3] = [
        ("rill.yaml", b"env: {x: '1'}\n"),
        ("models/a.sql", b"SELECT 1 AS id"),
        (
            "metrics/v.yaml",
            b"type: metrics_view\nversion: 1\nmodel: a\nmeasures: [{name: n, expression: count(*)}]\n",
        ),
    ];
    project.apply(others.map(|(path, content)| written(path, content)), engine);
    let before = report(&project);
    project.apply([written(path, content)], engine);
    // Drawing a finding reads its file once more.
    let _ = report(&project);
    let after = match others.iter().find(|(other, _)| *other == path) {
        Some((path, content)) => written(path, content),
        None => FileEvent::Removed {
            path: path.to_owned(),
        },
    };
    project.apply([after], engine);
    assert_eq!(
        report(&project),
        before,
        "a file that came and went leaves a trace"
    );
}

#[test]
fn yaml_of_any_kind_is_read_or_refused() {
    fuzz("yaml", |random, engine| {
        let input = Input::yaml(random);
        beside_others(&input.path, &input.content, engine);
    });
}

#[test]
fn sql_with_settings_is_read_or_refused() {
    fuzz("front_matter", |random, engine| {
        let input = Input::sql(random);
        beside_others(&input.path, &input.content, engine);
    });
}

#[test]
fn templates_end_whatever_they_hold() {
    fuzz("templates", |random, engine| {
        let text = input::template(random);
        let _ = render_text(&text, &Scope::default());
        beside_others("models/t.sql", text.as_bytes(), engine);
        let quoted = text.replace('\'', "''");
        let yaml = format!("type: model\nsql: '{quoted}'\npath: {text}\n");
        beside_others("models/t.yaml", yaml.as_bytes(), engine);
    });
}

#[test]
fn projects_that_change_equal_fresh_ones() {
    fuzz("projects", |random, engine| {
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut project = Project::new(Options::default());
        for _ in 0..random.below(12) + 1 {
            let mut events = Vec::new();
            for _ in 0..random.below(4) + 1 {
                let known: Vec<String> = files.keys().cloned().collect();
                if random.below(4) == 0 && !known.is_empty() {
                    let path = random.pick(&known).clone();
                    files.remove(&path);
                    events.push(FileEvent::Removed { path });
                } else {
                    let input = Input::any(random);
                    events.push(written(&input.path, &input.content));
                    files.insert(input.path, input.content);
                }
            }
            project.apply(events, engine);
        }
        let mut fresh = Project::new(Options::default());
        let all = files.iter().map(|(path, content)| written(path, content));
        fresh.apply(all.collect::<Vec<_>>(), engine);
        assert_eq!(report(&project), report(&fresh));
        for resource in project.resources() {
            let place = project
                .definition(&resource.key())
                .expect("it is declared somewhere");
            assert!(files.contains_key(&place.path), "{place:?}");
        }
        for found in project.diagnostics().iter().flat_map(|found| &found.related) {
            assert!(files.contains_key(&found.path), "{found:?}");
        }
    });
}

#[test]
fn an_editor_is_answered_at_any_place() {
    fuzz("editor", |random, engine| {
        let mut project = Project::new(Options::default());
        let inputs: Vec<Input> = (0..3).map(|_| Input::any(random)).collect();
        let events = inputs.iter().map(|input| written(&input.path, &input.content));
        project.apply(events.collect::<Vec<_>>(), engine);
        for input in &inputs {
            let text = String::from_utf8_lossy(&input.content);
            for _ in 0..8 {
                let (line, column) = (random.small(), random.small());
                let _ = editor::complete(&project, &input.path, &text, line, column);
                let _ = editor::meaning(&project, &input.path, &text, line, column);
                let _ = project.declared_at(&input.path, line, column);
                if let Some(named) = project.reference_at(&input.path, line, column) {
                    let places = project.references_to(&named.target);
                    let is_here = |place: &watershed_compilers::Location| {
                        place.path == input.path && place.span == named.span
                    };
                    let is_whole = project.resource(&named.target).is_some();
                    assert!(
                        !is_whole || places.iter().any(is_here),
                        "{named:?} is not among {places:?}"
                    );
                }
            }
        }
    });
}
