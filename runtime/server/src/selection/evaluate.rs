//! Evaluation of an expression to the resources that it selects.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobMatcher};
use watershed_api::{Code, Problem};
use watershed_core::Uid;

use super::expression::{Criterion, Expression, Method, State, Term};
use super::listing::{Direction, Listing, Node};
use crate::report::hints::nearest;

/// Returns the resources of a listing that an expression selects.
///
/// # Errors
/// When a criterion matches nothing, or nothing is left of all. That no resource stands as `state:` asks is no error.
pub(super) fn evaluate(expression: &Expression, listing: &Listing<'_>) -> Result<BTreeSet<Uid>, Problem> {
    let mut chosen = match expression.select.as_slice() {
        [] => (0..listing.nodes.len()).collect(),
        terms => union(terms, listing)?,
    };
    let left_out = union(&expression.exclude, listing)?;
    chosen.retain(|at| !left_out.contains(at));
    if chosen.is_empty() && !expression.asks_for_states() {
        let refusal = Problem::new(Code::BadArgument, "the selection leaves no resource");
        return Err(refusal.hint("of criteria joined by commas, a resource must match all"));
    }
    let nodes = chosen.iter().filter_map(|at| listing.nodes.get(*at));
    Ok(nodes.map(|node| node.row.uid).collect())
}

fn union(terms: &[Term], listing: &Listing<'_>) -> Result<BTreeSet<usize>, Problem> {
    let mut all = BTreeSet::new();
    for term in terms {
        all.extend(intersection(term, listing)?);
    }
    Ok(all)
}

fn intersection(term: &Term, listing: &Listing<'_>) -> Result<BTreeSet<usize>, Problem> {
    let mut common: Option<BTreeSet<usize>> = None;
    for criterion in term {
        let reached = reached(criterion, listing)?;
        common = Some(match common {
            None => reached,
            Some(before) => before.intersection(&reached).copied().collect(),
        });
    }
    Ok(common.unwrap_or_default())
}

fn reached(criterion: &Criterion, listing: &Listing<'_>) -> Result<BTreeSet<usize>, Problem> {
    let found = found(criterion, listing)?;
    if criterion.closed {
        let below = listing.reach(&found, Direction::Down, usize::MAX);
        return Ok(listing.reach(&below, Direction::Up, usize::MAX));
    }
    let mut reached = listing.reach(&found, Direction::Up, criterion.above);
    reached.extend(listing.reach(&found, Direction::Down, criterion.below));
    Ok(reached)
}

fn found(criterion: &Criterion, listing: &Listing<'_>) -> Result<BTreeSet<usize>, Problem> {
    let test = Test::new(criterion)?;
    let matching = listing
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| test.holds(node));
    let found: BTreeSet<usize> = matching.map(|(at, _)| at).collect();
    match (&criterion.method, found.is_empty()) {
        (Method::State(_), _) | (_, false) => Ok(found),
        (_, true) => Err(unmatched(criterion, listing)),
    }
}

/// A criterion in the form in which resources are tested by it.
enum Test<'a> {
    Name(Option<&'a str>, Text),
    Tag(Text),
    Kind(&'a str),
    Path(Text),
    State(State),
}

/// A text or a glob pattern, compared without case.
enum Text {
    Plain(String),
    Pattern(GlobMatcher),
}

impl<'a> Test<'a> {
    fn new(criterion: &'a Criterion) -> Result<Self, Problem> {
        Ok(match &criterion.method {
            Method::Name(typed) => match typed.split_once('/') {
                Some((kind, name)) => Self::Name(Some(kind), Text::new(name, criterion)?),
                None => Self::Name(None, Text::new(typed, criterion)?),
            },
            Method::Tag(tag) => Self::Tag(Text::new(tag, criterion)?),
            Method::Kind(kind) => Self::Kind(kind),
            Method::Path(path) => Self::Path(Text::new(path, criterion)?),
            Method::State(state) => Self::State(*state),
        })
    }

    fn holds(&self, node: &Node<'_>) -> bool {
        match self {
            Self::Name(kind, name) => {
                let is_kind = |kind: &str| node.kinds().iter().any(|own| own.eq_ignore_ascii_case(kind));
                kind.is_none_or(|kind| kind == "*" || is_kind(kind)) && name.is(node.row.name.as_str())
            }
            Self::Tag(tag) => node.tags().any(|own| tag.is(own)),
            Self::Kind(kind) => node.kind() == *kind,
            Self::Path(path) => node.row.paths.iter().any(|own| path.holds(own)),
            Self::State(State::Failed) => node.has_failed(),
            Self::State(State::Modified) => node.is_modified,
        }
    }
}

impl Text {
    fn new(text: &str, criterion: &Criterion) -> Result<Self, Problem> {
        if !text.contains(['*', '?', '[', '{']) {
            return Ok(Self::Plain(text.to_lowercase()));
        }
        let built = GlobBuilder::new(text)
            .literal_separator(true)
            .case_insensitive(true)
            .build();
        match built {
            Ok(glob) => Ok(Self::Pattern(glob.compile_matcher())),
            Err(error) => {
                let message = format!("`{}` is no pattern: {}", criterion.typed, error.kind());
                Err(Problem::new(Code::BadArgument, message))
            }
        }
    }

    fn is(&self, text: &str) -> bool {
        match self {
            Self::Plain(plain) => *plain == text.to_lowercase(),
            Self::Pattern(pattern) => pattern.is_match(text),
        }
    }

    /// Returns true if the path, or a folder above it, matches.
    fn holds(&self, path: &str) -> bool {
        self.is(path)
            || path
                .match_indices('/')
                .any(|(end, _)| path.get(..end).is_some_and(|above| self.is(above)))
    }
}

/// Returns the problem of a criterion that matches nothing, with the nearest match as its hint.
fn unmatched(criterion: &Criterion, listing: &Listing<'_>) -> Problem {
    let nodes = || listing.nodes.iter();
    let (message, before, typed, known): (String, &str, &str, BTreeSet<String>) = match &criterion.method {
        Method::Name(name) => {
            let plain = name.rsplit('/').next().unwrap_or(name);
            let known = nodes().map(|node| node.row.name.to_string()).collect();
            (format!("there is no resource `{name}`"), "", plain, known)
        }
        Method::Tag(tag) => {
            let known = nodes()
                .flat_map(|node| node.tags().map(str::to_owned).collect::<Vec<_>>())
                .collect();
            (format!("no resource has the tag `{tag}`"), "tag:", tag, known)
        }
        Method::Kind(kind) => {
            let known = nodes().map(Node::kind).collect();
            (
                format!("there is no resource of kind `{kind}`"),
                "kind:",
                kind,
                known,
            )
        }
        Method::Path(path) => {
            let known = nodes()
                .flat_map(|node| node.row.paths.iter().flat_map(|path| with_folders(path)))
                .collect();
            (
                format!("no resource is declared in `{path}`"),
                "path:",
                path,
                known,
            )
        }
        Method::State(_) => (String::new(), "", "", BTreeSet::new()),
    };
    let refusal = Problem::new(Code::BadArgument, message);
    match nearest(typed, known.iter().map(String::as_str)) {
        Some(near) => refusal.hint(format!("did you mean `{before}{near}`?")),
        None => refusal.hint("`watershed status` lists the resources"),
    }
}

/// Returns a path and the folders above it.
fn with_folders(path: &str) -> Vec<String> {
    let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
    above.chain([path]).map(str::to_owned).collect()
}
