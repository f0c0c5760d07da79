//! Property-test inputs that try to break out of quotes: a few hundred from a fixed seed, more with
//! `WATERSHED_PROOF=ci`. `PROPTEST_CASES` sets another number, `WATERSHED_SEED` another seed.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

/// Fragments from which hostile names and texts are put together.
const PIECES: [&str; 40] = [
    "'",
    "''",
    "\"",
    "\"\"",
    "`",
    "\\",
    "\\\\",
    "\\'",
    "\\\"",
    "\\0",
    "\\x27",
    "\0",
    "${x}",
    "{{ .x }}",
    "{x:String}",
    "?",
    "$1",
    "$$",
    "$a$",
    "--",
    "/*",
    "*/",
    "#",
    "#!",
    ";",
    "\n",
    "\r",
    "\t",
    "\u{b}",
    "e'",
    "x'27'",
    "; DROP TABLE t; --",
    "\u{202e}",
    "\u{200f}",
    "\u{feff}",
    "\u{2019}",
    "\u{ff07}",
    "ı",
    "ünïcode",
    "plain",
];

/// Returns a strategy for texts: of some fragments, of arbitrary letters, or of one fragment repeated to about 512
/// bytes.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(&PIECES[..]), 0..8);
    prop_oneof![
        6 => pieces.prop_map(|pieces| pieces.concat()),
        2 => prop::collection::vec(any::<char>(), 0..12).prop_map(String::from_iter),
        1 => prop::sample::select(&PIECES[..]).prop_map(|piece| piece.repeat(512 / piece.len())),
    ]
}

/// Calls a check with many generated pairs of a text and a name.
///
/// # Panics
/// When the check does, with the shortest text and name that were found.
pub fn each(check: impl Fn(&str, &str)) {
    let share = match std::env::var("WATERSHED_PROOF").as_deref() {
        Ok("ci") => 20_000,
        _ => 500,
    };
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.map_or(share, |cases| cases.parse().expect("PROPTEST_CASES: a number"));
    let seed =
        std::env::var("WATERSHED_SEED").map_or(42, |seed| seed.parse().expect("WATERSHED_SEED: a number"));
    let config = Config {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        ..Config::default()
    };
    let checked = TestRunner::new(config).run(&(text(), text()), |(text, name)| {
        check(&text, &name);
        Ok(())
    });
    if let Err(error) = checked {
        panic!("seed {seed}: {error}");
    }
}
