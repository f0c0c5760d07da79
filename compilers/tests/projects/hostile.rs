//! Nothing that files hold makes the compiler panic, hang or depend on the order of events.
//!
//! The inputs are the cases of `testdata/compilers`, cut, doubled and spliced into one another. `PROPTEST_CASES=100000`
//! looks longer; a failure prints the files.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, OnceLock},
};

use proptest::{prelude::*, sample::Index, test_runner::Config};
use watershed_compilers::{FileEvent, Options, Project, ResourceKey, Scope, render_text};

use crate::{case::Case, engine::Engine, report::report};

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(Engine::new)
}

/// The files of all cases, by path and content.
pub(crate) fn corpus() -> &'static [(String, Vec<u8>)] {
    static CORPUS: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/compilers");
        let entries = ["ok", "err"].map(|folder| fs::read_dir(root.join(folder)).expect("a folder"));
        let paths = entries
            .into_iter()
            .flatten()
            .map(|entry| entry.expect("an entry").path());
        let mut cases: Vec<_> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "txt"))
            .collect();
        cases.sort();
        // A case of very many files, or of a very large one, would be most of the corpus.
        let texts = cases.iter().map(|path| fs::read_to_string(path).expect("a case"));
        let texts = texts.filter(|text| !text.contains("files=") && !text.contains(" large\n"));
        let files = texts.flat_map(|text| Case::read(&text).files);
        files
            .filter_map(|(path, content)| Some((path, content.ok()?.to_vec())))
            .collect()
    })
}

/// A change of a file's bytes.
#[derive(Debug, Clone)]
enum Change {
    Cut(Index, Index),
    Double(Index, Index),
    Splice(Index, Index, Index),
    Insert(Index, &'static str),
}

/// Pieces that are dangerous to readers of YAML, SQL or templates.
pub(crate) const PIECES: [&str; 24] = [
    "{{",
    "}}",
    "{{ if .x }}",
    "{{ end }}",
    "'",
    "\"",
    "\\",
    "\u{0}",
    "\u{feff}",
    "\u{202e}",
    "\t",
    "\r\n",
    "\n- ",
    ": ",
    "&a [*a]",
    "<<: *a",
    "|\n",
    "%",
    "--",
    "/*",
    "*/",
    ";",
    "((((((((((",
    "[[[[[[[[[[",
];

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Cut(from, to)),
        (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Double(from, to)),
        (any::<Index>(), any::<Index>(), any::<Index>())
            .prop_map(|(file, from, at)| Change::Splice(file, from, at)),
        (any::<Index>(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Insert(at, PIECES[piece])),
    ]
}

fn range(from: &Index, to: &Index, length: usize) -> std::ops::Range<usize> {
    let (one, other) = (from.index(length + 1), to.index(length + 1));
    one.min(other)..one.max(other)
}

fn changed(content: &[u8], change: &Change) -> Vec<u8> {
    let mut bytes = content.to_vec();
    match change {
        Change::Cut(from, to) => drop(bytes.drain(range(from, to, content.len()))),
        Change::Double(from, to) => {
            let range = range(from, to, content.len());
            let end = range.end;
            drop(bytes.splice(end..end, content[range].to_vec()));
        }
        Change::Splice(file, from, at) => {
            let (_, other) = file.get(corpus());
            let from = from.index(other.len() + 1);
            let at = at.index(content.len() + 1);
            drop(bytes.splice(at..at, other[from..].to_vec()));
        }
        Change::Insert(at, piece) => {
            let at = at.index(content.len() + 1);
            drop(bytes.splice(at..at, piece.bytes()));
        }
    }
    bytes
}

type Files = BTreeMap<String, Vec<u8>>;

fn files() -> impl Strategy<Value = Files> {
    let file = (any::<Index>(), prop::collection::vec(change(), 0..4));
    prop::collection::vec(file, 1..8).prop_map(|chosen| {
        let made = chosen.into_iter().map(|(file, changes)| {
            let (path, content) = file.get(corpus());
            let content = changes
                .iter()
                .fold(content.clone(), |content, change| changed(&content, change));
            (path.clone(), content)
        });
        let mut files: Files = made.collect();
        files.entry("rill.yaml".to_owned()).or_default();
        files
    })
}

fn written(path: &str, content: &[u8]) -> FileEvent {
    FileEvent::Written {
        path: path.to_owned(),
        content: Arc::from(content),
    }
}

fn config(cases: u32) -> Config {
    let wanted = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    Config {
        cases: wanted.unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config(192))]

    #[test]
    fn damaged_files_are_findings_whatever_they_hold(files in files()) {
        let events: Vec<_> = files.iter().map(|(path, content)| written(path, content)).collect();
        let mut project = Project::new(Options::default());
        project.apply(events, engine());
        // Drawing a finding reads its file once more.
        let _ = report(&project);
    }

    #[test]
    fn the_order_of_files_leaves_no_trace(files in files(), seed in any::<u64>()) {
        let mut at_once = Project::new(Options::default());
        at_once.apply(files.iter().map(|(path, content)| written(path, content)), engine());
        let mut order: Vec<_> = files.iter().collect();
        let length = order.len() as u64;
        order.sort_by_key(|(path, _)| (seed ^ path.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17) % (length * 31));
        let mut one_by_one = Project::new(Options::default());
        for (path, content) in order {
            one_by_one.apply([written(path, content)], engine());
        }
        prop_assert_eq!(report(&at_once), report(&one_by_one));
    }

    #[test]
    fn templates_render_or_say_why_not(texts in prop::collection::vec(prop_oneof![
        Just("{{ "), Just(" }}"), Just("ref \"a\""), Just(".env.x"), Just("if "), Just("range "), Just("end"), Just("| "),
        Just("list 1 2 "), Just("until 9999999 "), Just("repeat 9999999 \"x\" "), Just("now "), Just("date \"2006\" "), Just("(("),
        Just("))"), Just("$x := "), Just("\u{202e}"), Just("printf \"%s\" "), Just("a"), Just("\n"),
    ], 0..14)) {
        let _ = render_text(&texts.concat(), &Scope::default());
    }
}

/// Texts that say the same with other blanks and comments.
fn reformatted(path: &str, content: &str) -> String {
    let is_sql = path.ends_with(".sql");
    let lines = content.lines().map(|line| match is_sql {
        true if line.starts_with("-- @") => line.to_owned(),
        true => format!("{line}   -- said again"),
        false => line.to_owned(),
    });
    let body = lines.collect::<Vec<_>>().join("\n");
    if is_sql {
        format!("{body}\n/* and\n   again */\n\n")
    } else {
        format!("# said again\n\n{body}\n\n# and again\n")
    }
}

#[test]
fn comments_and_blanks_change_no_meaning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/compilers/ok");
    let mut compared = 0;
    for entry in fs::read_dir(root).expect("the folder of cases") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let case = Case::read(&fs::read_to_string(&path).expect("a case"));
        let meanings = |change: &dyn Fn(&str, &str) -> String| {
            let texts = case.files.iter().filter_map(|(path, content)| {
                let text = std::str::from_utf8(content.as_ref().ok()?).ok()?;
                // A file with a mark before its text can't have a comment before it.
                let plain = !text.starts_with('\u{feff}') && !text.contains("\r");
                let text = if plain {
                    change(path, text)
                } else {
                    text.to_owned()
                };
                Some(written(path, text.as_bytes()))
            });
            let mut project = Project::new(case.options.clone());
            project.apply(texts, engine());
            let all = project.resources().map(|one| (one.key(), one.meaning.clone()));
            all.collect::<BTreeMap<ResourceKey, _>>()
        };
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let before = meanings(&|_, text| text.to_owned());
        let after = meanings(&|path, text| {
            if path.ends_with(".env") {
                text.to_owned()
            } else {
                reformatted(path, text)
            }
        });
        for (key, meaning) in &before {
            // SQL of kinds that hold it as text is compared by its text.
            if matches!(
                key.kind.as_str(),
                "model" | "explore" | "theme" | "canvas" | "component" | "connector"
            ) {
                assert_eq!(after.get(key), Some(meaning), "{name}: {} {}", key.kind, key.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared} resources were compared");
}
