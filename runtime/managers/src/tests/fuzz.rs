//! Events of strangers: mutated requests are read or refused, and never more than that.
//!
//! The corpus is `testdata/events`: requests as headers, a blank line and a body. `WATERSHED_FUZZ_SECONDS` makes it go on;
//! what fails is printed, to be added to the corpus.

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::CloudEvent;

/// A request: its headers and its body.
type Request = (BTreeMap<String, String>, Vec<u8>);

fn corpus() -> Vec<Request> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/events");
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    files.sort();
    let request = |path: &std::path::PathBuf| {
        let text = fs::read_to_string(path).expect("it can be read");
        let (head, body) = text.split_once("\n\n").expect("a head and a body");
        let headers = head.lines().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        (headers.collect(), body.as_bytes().to_vec())
    };
    files.iter().map(request).collect()
}

/// Checks that an event that is read comes back from its structured form as it is.
fn check((headers, body): &Request) -> Result<bool, String> {
    let read = catch_unwind(|| CloudEvent::read(headers, body)).map_err(|_| "it panics".to_owned())?;
    let Ok(events) = read else { return Ok(false) };
    for event in events {
        let written = event.to_structured().to_string();
        match CloudEvent::structured(written.as_bytes()) {
            Ok(again) if again == event => {}
            other => return Err(format!("{event:?} comes back as {other:?}")),
        }
    }
    Ok(true)
}

const PIECES: [&str; 14] = [
    "\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "null",
    "1e999",
    "\\u0000",
    "\\ud800",
    "\"id\":",
    "specversion",
    "\u{fffd}",
    "%E2%82",
];

fn mutate(random: &mut SmallRng, (headers, body): &mut Request, others: &[Request]) {
    for _ in 0..random.random_range(1..=4) {
        let at = random.random_range(0..=body.len());
        match random.random_range(0..8) {
            0 => body.truncate(at),
            1 if at < body.len() => body[at] = random.random(),
            2 if at < body.len() => drop(body.remove(at)),
            3 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                body.splice(at..at, piece.bytes());
            }
            4 => {
                let other = &others[random.random_range(0..others.len())].1;
                body.splice(at.., other.iter().copied());
            }
            5 => {
                let other = &others[random.random_range(0..others.len())].0;
                headers.clone_from(other);
            }
            6 => {
                let names: Vec<String> = headers.keys().cloned().collect();
                if let Some(name) = names.get(random.random_range(0..names.len().max(1))) {
                    let piece = PIECES[random.random_range(0..PIECES.len())];
                    headers.entry(name.clone()).or_default().push_str(piece);
                }
            }
            _ => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                headers.insert(format!("ce-{}", piece.to_lowercase()), piece.to_owned());
            }
        }
    }
}

/// M12.
#[test]
fn whatever_a_stranger_sends_is_read_as_it_is_or_refused() {
    let corpus = corpus();
    for request in &corpus {
        assert_eq!(check(request), Ok(true), "{request:?}");
    }
    let seconds = std::env::var("WATERSHED_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let within = Duration::from_secs(seconds.unwrap_or(1));
    let seed = std::env::var("WATERSHED_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs())
    };
    let seed: u64 = seed.unwrap_or_else(now);
    let mut random = SmallRng::seed_from_u64(seed);
    let begun = Instant::now();
    let (mut tried, mut read) = (0_u64, 0_u64);
    while begun.elapsed() < within {
        for _ in 0..1_000 {
            let mut request = corpus[random.random_range(0..corpus.len())].clone();
            mutate(&mut random, &mut request, &corpus);
            match check(&request) {
                Ok(is_read) => read += u64::from(is_read),
                Err(finding) => {
                    let body = String::from_utf8_lossy(&request.1).into_owned();
                    panic!("{finding}\nseed {seed}, headers {:?}, body {body}", request.0);
                }
            }
            tried += 1;
        }
    }
    assert!(
        read > 0 && read < tried,
        "{read} of {tried} were read, seed {seed}"
    );
}
