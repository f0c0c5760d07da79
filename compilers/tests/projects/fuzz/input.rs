//! Inputs, each a function of its seed.

use std::sync::OnceLock;

use watershed_compilers::schema;

use crate::hostile::{PIECES, corpus};

/// A generator whose numbers depend on the seed alone (SplitMix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or_default()
    }

    /// A line or a column: small most of the time, anything now and then.
    pub(super) fn small(&mut self) -> u32 {
        match self.below(40) {
            0 => u32::MAX,
            1 => 0,
            _ => u32::try_from(self.below(40)).unwrap_or_default(),
        }
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// One file.
pub(super) struct Input {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

/// Paths at which files stand: few, so that they meet.
const PATHS: [&str; 14] = [
    "rill.yaml",
    ".env",
    "models/a.sql",
    "models/a.yaml",
    "models/a.yml",
    "models/b.sql",
    "models/deep/b.sql",
    "sources/s.yaml",
    "metrics/v.yaml",
    "dashboards/d.yaml",
    "x/e.yaml",
    "x/f.yaml",
    "connectors/c.yaml",
    "init.sql",
];

impl Input {
    /// A YAML file: a damaged one of the cases, or one made of keys.
    pub(super) fn yaml(random: &mut Random) -> Self {
        let path = random.pick(&["models/f.yaml", "x/f.yaml", "rill.yaml", "sources/f.yaml"]);
        let content = match random.below(3) {
            0 => settings(random).into_bytes(),
            _ => damaged(random, ".yaml"),
        };
        Self {
            path: (*path).to_owned(),
            content,
        }
    }

    /// A SQL file with annotations.
    pub(super) fn sql(random: &mut Random) -> Self {
        let mut content = Vec::new();
        for _ in 0..random.below(5) {
            content.extend(annotation(random).into_bytes());
        }
        content.extend(damaged(random, ".sql"));
        let path = random.pick(&["models/f.sql", "init.sql", "sources/f.sql"]);
        Self {
            path: (*path).to_owned(),
            content,
        }
    }

    /// Any file of a project.
    pub(super) fn any(random: &mut Random) -> Self {
        let path = *random.pick(&PATHS);
        let content = match (random.below(4), path.ends_with(".sql")) {
            (0, false) => settings(random).into_bytes(),
            (0, true) => Self::sql(random).content,
            (1, true) => template(random).into_bytes(),
            (_, true) => damaged(random, ".sql"),
            (_, false) => damaged(random, ".yaml"),
        };
        Self {
            path: path.to_owned(),
            content,
        }
    }
}

/// The content of a file of the cases, with up to five changes.
fn damaged(random: &mut Random, end: &str) -> Vec<u8> {
    let mut bytes = file(random, end).to_vec();
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() + 1);
        let to = (at + random.below(40)).min(bytes.len());
        match random.below(5) {
            0 => drop(bytes.drain(at..to)),
            1 => {
                let part = bytes[at..to].to_vec();
                bytes.splice(to..to, part);
            }
            2 => {
                let other = file(random, end);
                let from = random.below(other.len() + 1);
                bytes.splice(at..at, other[from..].to_vec());
            }
            3 => {
                let piece = random.pick(&PIECES).bytes();
                bytes.splice(at..at, piece);
            }
            _ => {
                let byte = u8::try_from(random.below(256)).unwrap_or_default();
                bytes.insert(at, byte);
            }
        }
    }
    bytes
}

fn file(random: &mut Random, end: &str) -> &'static [u8] {
    loop {
        let (path, content) = random.pick(corpus());
        if path.ends_with(end) {
            return content;
        }
    }
}

/// The keys of all kinds.
fn keys() -> &'static [&'static str] {
    static KEYS: OnceLock<Vec<&'static str>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut keys: Vec<_> = schema::names()
            .into_iter()
            .flat_map(schema::current_keys)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    })
}

/// Values that keys take, or do not.
const VALUES: [&str; 24] = [
    "a",
    "v",
    "true",
    "null",
    "0",
    "-1",
    "1e400",
    "99999999999999999999",
    "1h30m",
    "P1D",
    "'* * * * *'",
    "[a, b]",
    "{a: b}",
    "'*'",
    "SELECT 1",
    "SELECT * FROM a",
    "{{ ref \"a\" }}",
    "'{{ .env.x }}'",
    "&x [*x]",
    "*x",
    "|\n    SELECT 1",
    "",
    "!!int a",
    "\u{202e}",
];

/// A file of a kind: keys that it may have, with values that may fit.
fn settings(random: &mut Random) -> String {
    let names = schema::names();
    let kind = *random.pick(&names);
    let own = schema::current_keys(kind);
    let mut text = format!("type: {kind}\n");
    for _ in 0..random.below(9) {
        let key = if random.below(4) == 0 {
            *random.pick(keys())
        } else {
            *random.pick(&own)
        };
        let value = *random.pick(&VALUES);
        match random.below(4) {
            0 => text += &format!("{key}:\n  {}: {value}\n", random.pick(keys())),
            1 => {
                text += &format!(
                    "{key}:\n  - {}: {value}\n    {}: {value}\n",
                    random.pick(keys()),
                    random.pick(keys())
                )
            }
            _ => text += &format!("{key}: {value}\n"),
        }
    }
    text
}

fn annotation(random: &mut Random) -> String {
    let key = random.pick(keys());
    let value = random.pick(&VALUES).replace('\n', " ");
    match random.below(3) {
        0 => format!("-- @{key}.{}: {value}\n", random.pick(keys())),
        1 => format!("{{{{ configure \"{key}\" \"{value}\" }}}}\n"),
        _ => format!("-- @{key}: {value}\n"),
    }
}

/// Pieces of templates.
const TEMPLATE: [&str; 40] = [
    "{{ ",
    " }}",
    "{{- ",
    " -}}",
    "ref \"a\"",
    "ref \"model\" \"a\"",
    ".env.x",
    ".vars.",
    ".user.email",
    ".state.max",
    ".partition.uri",
    "if ",
    "if incremental",
    "else",
    "else if dev",
    "range ",
    "with ",
    "end",
    "define \"t\"",
    "template \"t\" .",
    "block \"t\" .",
    "| ",
    "list 1 2 ",
    "until 9999999 ",
    "repeat 9999999 \"x\" ",
    "now ",
    "date \"2006\" ",
    "((",
    "))",
    "$x := ",
    "printf \"%*d\" ",
    "SELECT ",
    " FROM ",
    "\n",
    "'",
    "\"",
    "index .a 99 ",
    "dict \"a\" ",
    "{{/* ",
    " */}}",
];

/// A template that may not be one.
pub(super) fn template(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(18) {
        text += *random.pick(&TEMPLATE);
    }
    text
}
