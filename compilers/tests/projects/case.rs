//! A project in one text.
//!
//! `//- path` begins a file. Words after the path say what is special about it:
//! `escaped` (`\t`, `\r`, `\xff`, `\u{feff}`, `\\` mean what they do in Rust; the last line break is left out),
//! `folder`, `loop` and `io` (it can't be read), `large` (it has 200,000 bytes). A first line `#! word...` sets
//! options: `environment=NAME`, `NAME=VALUE` for variables, `files=N` for N further files.

use std::{collections::BTreeMap, sync::Arc};

use watershed_compilers::{FileEvent, FileProblem, Options};

/// Words after a path.
const SPECIAL: [&str; 6] = ["escaped", "folder", "pipe", "loop", "io", "large"];

/// Files and options.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) options: Options,
    pub(crate) files: BTreeMap<String, Result<Arc<[u8]>, FileProblem>>,
}

impl Case {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Self {
        let mut case = Case {
            options: Options::default(),
            files: BTreeMap::new(),
        };
        let mut rest = text;
        if let Some(line) = text.strip_prefix("#! ") {
            let (line, after) = line.split_once('\n').unwrap_or((line, ""));
            line.split_whitespace().for_each(|word| case.option(word));
            rest = after;
        }
        for part in rest.split("//- ").skip(1) {
            let (head, content) = part.split_once('\n').unwrap_or((part, ""));
            let (path, special) = match head.rsplit_once(' ') {
                Some((path, word)) if SPECIAL.contains(&word) => (path, Some(word)),
                _ => (head, None),
            };
            case.files.insert(path.to_owned(), content_of(special, content));
        }
        case
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        match name {
            "environment" => self.options.environment = value.to_owned(),
            "files" => {
                let count: usize = value.parse().expect("a number");
                let many =
                    (0..count).map(|at| (format!("models/m{at}.sql"), Ok(Arc::from(&b"SELECT 1"[..]))));
                self.files.extend(many);
            }
            _ => drop(self.options.variables.insert(name.to_owned(), value.to_owned())),
        }
    }

    /// The events that make the project of nothing.
    pub(crate) fn events(&self) -> Vec<FileEvent> {
        self.files
            .iter()
            .map(|(path, content)| event(path, Some(content)))
            .collect()
    }
}

/// Returns the event of a file that then has a content, or none.
pub(crate) fn event(path: &str, content: Option<&Result<Arc<[u8]>, FileProblem>>) -> FileEvent {
    let path = path.to_owned();
    match content {
        Some(Ok(content)) => FileEvent::Written {
            path,
            content: Arc::clone(content),
        },
        Some(Err(problem)) => FileEvent::Unreadable {
            path,
            problem: problem.clone(),
        },
        None => FileEvent::Removed { path },
    }
}

fn content_of(special: Option<&str>, content: &str) -> Result<Arc<[u8]>, FileProblem> {
    match special {
        None => Ok(Arc::from(content.as_bytes())),
        Some("escaped") => Ok(unescaped(content.trim_end_matches('\n')).into()),
        Some("folder") => Err(FileProblem::Folder),
        Some("pipe") => Err(FileProblem::Special("a named pipe".into())),
        Some("loop") => Err(FileProblem::LinkLoop),
        Some("io") => Err(FileProblem::Io("permission denied".into())),
        Some("large") => Ok("-- large\n".repeat(200_000 / 9).as_bytes().into()),
        Some(other) => panic!("unknown word {other:?}"),
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend(c.to_string().bytes());
            continue;
        }
        match chars.next() {
            Some('t') => bytes.push(b'\t'),
            Some('r') => bytes.push(b'\r'),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two digits"));
            }
            Some('u') => {
                let digits: String = chars.by_ref().skip(1).take_while(|c| *c != '}').collect();
                let code = u32::from_str_radix(&digits, 16).expect("digits");
                bytes.extend(char::from_u32(code).expect("a character").to_string().bytes());
            }
            other => bytes.extend(other.iter().collect::<String>().bytes()),
        }
    }
    bytes
}
