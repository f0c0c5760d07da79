//! Parsed expressions: a union of intersections of criteria, each with its reach up and down the refs.

use watershed_api::request::Selection;
use watershed_api::{Code, Problem, hint};

use crate::report::hints::nearest;

/// The methods of criteria, as typed before the colon.
const METHODS: [&str; 4] = ["tag", "kind", "path", "state"];

/// A parsed selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expression {
    /// Terms whose union is selected; empty for everything.
    pub(super) select: Vec<Term>,
    /// Terms whose union is excluded.
    pub(super) exclude: Vec<Term>,
}

/// Criteria whose intersection is selected.
pub(super) type Term = Vec<Criterion>;

/// One criterion with its reach along refs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Criterion {
    /// The typed text without its reach, for messages.
    pub(super) typed: String,
    pub(super) method: Method,
    /// Steps towards dependencies (`2+name`).
    pub(super) above: usize,
    /// Steps towards dependents (`name+2`).
    pub(super) below: usize,
    /// True to add all dependents and their dependencies (`@`).
    pub(super) closed: bool,
}

/// The property that a criterion compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Method {
    /// A name, or `kind/name`; may be a glob pattern.
    Name(String),
    /// A tag; may be a glob pattern.
    Tag(String),
    /// A kind, or `source` for models that are declared as sources.
    Kind(String),
    /// A file, a folder, or a glob pattern of paths.
    Path(String),
    /// The state of a resource: failed or modified.
    State(State),
}

/// A state of resources that can be selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The last run failed with an error of its own.
    Failed,
    /// The resource was edited since its last run, or was never run.
    Modified,
}

/// The states with the words that are typed for them.
const STATES: [(&str, State); 2] = [("failed", State::Failed), ("modified", State::Modified)];

/// A number of steps without a bound.
const ALL: usize = usize::MAX;

impl Expression {
    /// Parses a selection: spaces separate terms, commas separate the criteria of a term.
    ///
    /// # Errors
    /// The first criterion that can't be read.
    pub(super) fn read(typed: &Selection) -> Result<Self, Problem> {
        Ok(Self {
            select: terms("select", &typed.select)?,
            exclude: terms("exclude", &typed.exclude)?,
        })
    }

    /// Returns true if a criterion needs the states of resources.
    pub(super) fn asks_for_states(&self) -> bool {
        let mut criteria = self.select.iter().chain(&self.exclude).flatten();
        criteria.any(|criterion| matches!(criterion.method, Method::State(_)))
    }
}

fn terms(option: &str, typed: &[String]) -> Result<Vec<Term>, Problem> {
    let terms: Vec<&str> = typed.iter().flat_map(|text| text.split_whitespace()).collect();
    if terms.is_empty() && !typed.is_empty() {
        return Err(unreadable(option, "", "it is empty"));
    }
    let term = |text: &&str| text.split(',').map(|part| criterion(option, part)).collect();
    terms.iter().map(term).collect()
}

fn criterion(option: &str, text: &str) -> Result<Criterion, Problem> {
    let (closed, rest) = match text.strip_prefix('@') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (above, rest) = match rest.split_once('+') {
        Some((steps, rest)) if !rest.is_empty() => match depth(steps) {
            Some(above) => (above, rest),
            None => (0, rest_of(text, closed)),
        },
        _ => (0, rest),
    };
    let (below, core) = match rest.rsplit_once('+') {
        Some((core, steps)) if !core.is_empty() => match depth(steps) {
            Some(below) => (below, core),
            None => (0, rest),
        },
        _ => (0, rest),
    };
    if core.is_empty() || core == "+" {
        return Err(unreadable(option, text, "it names nothing"));
    }
    if closed && above + below > 0 {
        return Err(unreadable(option, text, "`@` reaches both ways already"));
    }
    Ok(Criterion {
        typed: core.to_owned(),
        method: method(option, core)?,
        above,
        below,
        closed,
    })
}

fn rest_of(text: &str, closed: bool) -> &str {
    text.get(usize::from(closed)..).unwrap_or_default()
}

/// Parses the number of steps beside a `+`; all if the text is empty.
fn depth(text: &str) -> Option<usize> {
    match text {
        "" => Some(ALL),
        digits => digits.parse().ok(),
    }
}

fn method(option: &str, core: &str) -> Result<Method, Problem> {
    let Some((word, value)) = core.split_once(':') else {
        return Ok(match is_path(core) {
            true => Method::Path(path(core)),
            false => Method::Name(core.to_owned()),
        });
    };
    if value.is_empty() && METHODS.contains(&word) {
        return Err(unreadable(option, core, "nothing stands behind the colon"));
    }
    match word {
        "tag" => Ok(Method::Tag(value.to_owned())),
        "kind" => Ok(Method::Kind(value.to_lowercase().replace('-', "_"))),
        "path" => Ok(Method::Path(path(value))),
        "state" => match STATES.iter().find(|(name, _)| *name == value) {
            Some((_, state)) => Ok(Method::State(*state)),
            None => {
                let known = STATES.iter().map(|(name, _)| format!("`state:{name}`"));
                let known: Vec<String> = known.collect();
                let refusal = unreadable(option, core, "there is no such state");
                Err(refusal.hint(format!("there are {}", known.join(" and "))))
            }
        },
        // Names may hold colons: those of resources with a namespace do.
        other => match nearest(other, METHODS.into_iter()) {
            Some(near) if near != other => {
                let refusal = unreadable(option, core, "there is no such method");
                Err(refusal.hint(format!("did you mean `{near}:{value}`?")))
            }
            _ => Ok(Method::Name(core.to_owned())),
        },
    }
}

/// Returns true if a text without a method is a path: it has a file's extension, or a folder that is no kind.
fn is_path(text: &str) -> bool {
    let is_file = [".sql", ".yaml", ".yml"].iter().any(|end| text.ends_with(end));
    let kind = text.split_once('/').map(|(kind, _)| kind.to_lowercase());
    let names_kind = |kind: String| {
        kind == "source" || kind.contains('*') || watershed_compilers::Kind::read(&kind).is_some()
    };
    is_file || kind.is_some_and(|kind| !names_kind(kind))
}

/// Returns a typed path relative to the project's folder, without `./` and outer slashes.
fn path(typed: &str) -> String {
    let path = typed.strip_prefix("./").unwrap_or(typed);
    path.trim_matches('/').to_owned()
}

fn unreadable(option: &str, text: &str, why: &str) -> Problem {
    Problem::new(
        Code::BadArgument,
        format!("{} can't be read: {why}", hint::option(option, text)),
    )
}
