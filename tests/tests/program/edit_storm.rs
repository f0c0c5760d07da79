//! Random edits through the API and by hand, at once: the end is that of a fresh start over the same files.
//!
//! `WATERSHED_EDITS` sets the number of steps: 20,000 take about an hour.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// Steps unless set.
const STEPS: usize = 150;
/// Files that are edited.
const FILES: [&str; 8] = [
    "models/a.sql",
    "models/b.sql",
    "models/deep/c.sql",
    "models/d.yaml",
    "themes/e.yaml",
    "notes.md",
    "models/deep/er/f.sql",
    "apis/g.yaml",
];

/// Returns a text for a file, good or broken.
fn text(file: &str, random: &mut SmallRng) -> String {
    let number: u32 = random.random_range(0..1_000);
    let from = ["a", "b", "c", "d", "f", "nowhere"][random.random_range(0..6_usize)];
    match (file.rsplit('.').next(), random.random_range(0..5)) {
        (Some("md"), _) => format!("# {number}\n"),
        (Some("yaml"), 0) => format!("type: [{number}\n"),
        (Some("yaml"), _) if file.starts_with("themes") => {
            format!("type: theme\nlight: {{primary: '#{:06}'}}\n", number)
        }
        (Some("yaml"), _) if file.starts_with("apis") => format!("type: api\nsql: SELECT {number} AS n\n"),
        (Some("yaml"), _) => format!("type: model\nsql: SELECT {number} AS n\n"),
        (_, 0) => format!("SELEC {number}\n"),
        (_, 1) => format!("SELECT count(*) AS n FROM {from}\n"),
        _ => format!("-- @materialize: true\nSELECT {number} AS n\n"),
    }
}

/// The project as a naive reader of the story knows it.
struct Referee {
    files: BTreeMap<String, String>,
}

impl Referee {
    /// Compares the files on disk with those of the story.
    fn judge(&self, root: &Path, story: &str) {
        for file in FILES {
            let found = fs::read_to_string(root.join(file)).ok();
            assert_eq!(found.as_ref(), self.files.get(file), "{story}: {file}");
        }
    }
}

struct Api<'s> {
    serving: &'s Serving,
    place: String,
}

impl Api<'_> {
    fn version(&self, file: &str) -> Option<String> {
        let (status, head, _) = self
            .serving
            .ask("GET", &format!("{}/files/{file}", self.place), "");
        let line = head
            .lines()
            .find(|line| line.to_lowercase().starts_with("etag:"))?;
        (status == 200).then(|| line[5..].trim().to_owned())
    }

    fn put(&self, file: &str, version: Option<&str>, text: &str) -> u16 {
        let condition = match version {
            Some(version) => format!("if-match: {version}\r\n"),
            None => "if-none-match: *\r\n".to_owned(),
        };
        let path = format!("{}/files/{file}", self.place);
        self.serving.send("PUT", &path, &condition, text).0
    }

    fn delete(&self, file: &str, version: &str) -> u16 {
        let path = format!("{}/files/{file}", self.place);
        self.serving
            .ask("DELETE", &path, &format!("if-match: {version}\r\n"))
            .0
    }
}

fn by_hand(root: &Path, file: &str, text: Option<&str>) {
    let path = root.join(file);
    match text {
        Some(text) => {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("it can be written");
        }
        None => {
            let _ = fs::remove_file(path);
        }
    }
}

/// Returns what stands of each resource, without times and numbers of runs.
fn standing(serving: &Serving, place: &str) -> Vec<String> {
    let run = serving.send("POST", &format!("{place}/run"), "prefer: wait=60\r\n", "{}");
    assert_eq!(run.0, 200, "{}", run.2);
    let page = serving.json(&format!("{place}/resources?limit=1000"));
    let all = page["resources"].as_array().expect("resources").iter();
    let one = |it: &Value| {
        format!(
            "{} {} {} {} {} {}",
            it["kind"], it["name"], it["health"], it["paths"], it["refs"], it["error"]["code"]
        )
    };
    let mut all: Vec<String> = all.map(one).collect();
    all.sort();
    let found = serving.json(&format!("{place}/diagnostics"));
    let found = found["diagnostics"].as_array().expect("findings").iter();
    let told = |it: &Value| format!("{}:{}:{} {}", it["path"], it["line"], it["column"], it["code"]);
    all.extend(found.map(told));
    all
}

#[test]
fn s_api23_random_edits_through_the_api_and_by_hand_end_as_a_fresh_start_over_the_same_files() {
    let steps = std::env::var("WATERSHED_EDITS")
        .ok()
        .and_then(|steps| steps.parse().ok());
    let seed: u64 = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(7);
    let mut random = SmallRng::seed_from_u64(seed);
    let sandbox = Sandbox::with(&[
        ("shop/watershed.yaml", "{}\n"),
        ("shop/models/kept.sql", "SELECT 1 AS kept\n"),
    ]);
    let root = sandbox.path().join("shop");
    let begin = |folder: &str| Serving::begin(&sandbox, &["start", "--listen=127.0.0.1:0", "-C", folder]);
    let serving = begin("shop");
    let name = serving.json("/v1/instances")["instances"][0]["name"]
        .as_str()
        .expect("a name")
        .to_owned();
    let api = Api {
        serving: &serving,
        place: format!("/v1/instances/{name}"),
    };
    let mut referee = Referee {
        files: BTreeMap::new(),
    };
    for step in 0..steps.unwrap_or(STEPS) {
        let file = FILES[random.random_range(0..FILES.len())];
        let (first, second) = (text(file, &mut random), text(file, &mut random));
        let version = api.version(file);
        let story = format!("seed {seed}, step {step}");
        assert_eq!(
            version.is_some(),
            referee.files.contains_key(file),
            "{story}: {file}"
        );
        let known = referee.files.get(file).cloned();
        match random.random_range(0..10) {
            0..3 => {
                let status = api.put(file, version.as_deref(), &first);
                assert_eq!(status, 200, "{story}: {file}");
                referee.files.insert(file.to_owned(), first);
            }
            // Two writers at once, of whom one wins.
            3..5 => {
                let both = std::thread::scope(|scope| {
                    let one = scope.spawn(|| api.put(file, version.as_deref(), &first));
                    let other = scope.spawn(|| api.put(file, version.as_deref(), &second));
                    [one, other].map(|writer| writer.join().expect("an answer"))
                });
                // Whoever writes what is there already has lost nothing.
                let is_same =
                    first == second || known.as_ref().is_some_and(|it| *it == first || *it == second);
                let winners = both.iter().filter(|status| **status == 200).count();
                assert!(winners == 1 || is_same && winners == 2, "{story}: {both:?}");
                let now = fs::read_to_string(root.join(file)).expect("a file");
                let expected = if both[0] == 200 && (winners == 1 || now == first) {
                    first
                } else {
                    second
                };
                assert_eq!(now, expected, "{story}: {both:?}");
                referee.files.insert(file.to_owned(), now);
            }
            // A save by hand beside a write: one of both texts is there, whole.
            5 => {
                let status = std::thread::scope(|scope| {
                    let writer = scope.spawn(|| api.put(file, version.as_deref(), &first));
                    by_hand(&root, file, Some(&second));
                    writer.join().expect("an answer")
                });
                assert!(matches!(status, 200 | 412), "{story}: {status}");
                // Who saves by hand writes into the file that is there, and not all at once.
                by_hand(&root, file, Some(&second));
                referee.files.insert(file.to_owned(), second);
            }
            6..8 => {
                by_hand(&root, file, Some(&first));
                referee.files.insert(file.to_owned(), first);
            }
            8 => {
                by_hand(&root, file, None);
                referee.files.remove(file);
            }
            _ => {
                if let Some(version) = &version {
                    assert_eq!(api.delete(file, "\"0\""), 412, "{story}");
                    assert_eq!(api.delete(file, version), 200, "{story}");
                    referee.files.remove(file);
                }
            }
        }
        referee.judge(&root, &story);
    }
    let place = api.place;
    let edited = standing(&serving, &place);
    serving.end(Signal::TERM);
    for file in FILES.iter().copied().chain(["watershed.yaml", "models/kept.sql"]) {
        if let Ok(text) = fs::read_to_string(root.join(file)) {
            sandbox.write(&format!("fresh/shop/{file}"), &text);
        }
    }
    let fresh = begin("fresh/shop");
    assert_eq!(edited, standing(&fresh, &place), "seed {seed}");
}
