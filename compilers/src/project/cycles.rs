//! Cycles of resources that read one another.
//!
//! A cycle that is new, or gone, holds a resource of which something was touched, or did. So it is enough to look at
//! what can be reached from touched resources and from those that were on a cycle with them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use rustc_hash::FxBuildHasher;

use super::Group;
use crate::{
    diagnostics::{At, Code, Diagnostic, DiagnosticResource, Finding, Role},
    draft::Purpose,
    resource::{Resource, ResourceKey},
    sql::{TokenKind, tokens},
};

/// The number of names of a cycle that a message lists.
const MAX_SPELLED: usize = 20;
/// The largest component in which every member is shown its shortest cycle, as the search is quadratic.
const MAX_SHORTEST: usize = 64;

type Resources = BTreeMap<ResourceKey, Resource>;

/// Returns the cycle, or none, of each resource that may have joined or left one.
pub(super) fn find(
    resources: &Resources,
    touched: &BTreeSet<ResourceKey>,
    on_cycle: &BTreeSet<ResourceKey>,
) -> BTreeMap<ResourceKey, Option<Vec<String>>> {
    let roots = touched
        .iter()
        .chain(on_cycle)
        .filter(|key| resources.contains_key(key))
        .collect();
    let mut found: BTreeMap<ResourceKey, Option<Vec<String>>> = BTreeMap::new();
    let next = |key: &ResourceKey| successors(resources, key);
    for knot in Knots::new(resources, &next).run(&roots) {
        let members: BTreeSet<&ResourceKey> = knot.iter().copied().collect();
        for key in &knot {
            let cycle = spell(resources, key, &members);
            // Only differences are told. In a large knot, an edit of one member leaves the rows of all others as they
            // are.
            let before = resources.get(*key).and_then(|resource| resource.cycle.clone());
            if before != cycle {
                found.insert((*key).clone(), cycle);
            }
        }
    }
    // A touched resource was made anew, without its cycle: its finding is to follow, if there is or was one.
    for key in touched {
        if !found.contains_key(key) {
            let cycle = resources.get(key).and_then(|resource| resource.cycle.clone());
            if cycle.is_some() || on_cycle.contains(key) {
                found.insert(key.clone(), cycle);
            }
        }
    }
    found
}

fn successors<'a>(resources: &'a Resources, key: &ResourceKey) -> Vec<&'a ResourceKey> {
    let Some(resource) = resources.get(key) else {
        return Vec::new();
    };
    resource
        .refs
        .iter()
        .filter_map(|one| resources.get_key_value(&one.key()).map(|(key, _)| key))
        .collect()
}

/// Strongly connected components reachable from given resources, found by Tarjan's algorithm with an explicit stack, so
/// that long chains don't overflow.
pub(super) struct Knots<'a, 'n> {
    resources: &'a Resources,
    /// Returns the resources that one leads to.
    next: &'n dyn Fn(&ResourceKey) -> Vec<&'a ResourceKey>,
    /// The visit numbers of resources, in order of discovery.
    numbers: HashMap<&'a ResourceKey, usize, FxBuildHasher>,
    /// The state of each visit, indexed by its number.
    visits: Vec<Visit<'a>>,
    /// The numbers of resources that are not yet assigned to a component.
    open: Vec<usize>,
    knots: Vec<Vec<&'a ResourceKey>>,
}

struct Visit<'a> {
    key: &'a ResourceKey,
    low: usize,
    is_open: bool,
}

/// The number of a resource on the search stack, with the successors still to be visited.
type Step<'a> = (usize, Vec<&'a ResourceKey>);

impl<'a, 'n> Knots<'a, 'n> {
    pub(super) fn new(
        resources: &'a Resources,
        next: &'n dyn Fn(&ResourceKey) -> Vec<&'a ResourceKey>,
    ) -> Self {
        Self {
            resources,
            next,
            numbers: HashMap::default(),
            visits: Vec::new(),
            open: Vec::new(),
            knots: Vec::new(),
        }
    }

    pub(super) fn run(mut self, roots: &BTreeSet<&ResourceKey>) -> Vec<Vec<&'a ResourceKey>> {
        for root in roots {
            if let Some((root, _)) = self.resources.get_key_value(root)
                && !self.numbers.contains_key(root)
            {
                self.walk(root);
            }
        }
        self.knots
    }

    fn enter(&mut self, key: &'a ResourceKey) -> Step<'a> {
        let number = self.visits.len();
        self.numbers.insert(key, number);
        self.visits.push(Visit {
            key,
            low: number,
            is_open: true,
        });
        self.open.push(number);
        (number, (self.next)(key))
    }

    fn lower(&mut self, number: usize, to: usize) {
        if let Some(visit) = self.visits.get_mut(number) {
            visit.low = visit.low.min(to);
        }
    }

    fn is_open(&self, number: usize) -> bool {
        self.visits.get(number).is_some_and(|visit| visit.is_open)
    }

    fn walk(&mut self, root: &'a ResourceKey) {
        let mut path = vec![self.enter(root)];
        while let Some((number, rest)) = path.last_mut() {
            let number = *number;
            let Some(next) = rest.pop() else {
                path.pop();
                self.leave(number, path.last().map(|(parent, _)| *parent));
                continue;
            };
            match self.numbers.get(next).copied() {
                None => {
                    let step = self.enter(next);
                    path.push(step);
                }
                Some(entered) if self.is_open(entered) => self.lower(number, entered),
                Some(_) => {}
            }
        }
    }

    fn leave(&mut self, number: usize, parent: Option<usize>) {
        let low = self.visits.get(number).map_or(number, |visit| visit.low);
        if let Some(parent) = parent {
            self.lower(parent, low);
        }
        if low != number {
            return;
        }
        let mut knot = Vec::new();
        while let Some(member) = self.open.pop() {
            if let Some(visit) = self.visits.get_mut(member) {
                visit.is_open = false;
                knot.push(visit.key);
            }
            if member == number {
                break;
            }
        }
        // The order of the walk depends on where it began, which is where an edit was.
        knot.sort();
        self.knots.push(knot);
    }
}

/// Returns the names on a cycle from a member back to itself; none for a single member that does not read itself.
fn spell(resources: &Resources, key: &ResourceKey, members: &BTreeSet<&ResourceKey>) -> Option<Vec<String>> {
    let inside = |from: &ResourceKey| {
        let all = successors(resources, from).into_iter();
        all.filter(|next| members.contains(next)).collect::<Vec<_>>()
    };
    if members.len() == 1 && inside(key).is_empty() {
        return None;
    }
    let path = if members.len() <= MAX_SHORTEST {
        shortest(key, inside)
    } else {
        onwards(key, inside)
    };
    let names = path
        .iter()
        .filter_map(|key| resources.get(key))
        .map(|resource| resource.name.clone());
    Some(names.collect())
}

fn shortest<'a>(
    key: &'a ResourceKey,
    inside: impl Fn(&ResourceKey) -> Vec<&'a ResourceKey>,
) -> Vec<&'a ResourceKey> {
    let mut came: BTreeMap<&ResourceKey, &ResourceKey> = BTreeMap::new();
    let mut queue = VecDeque::from([key]);
    while let Some(from) = queue.pop_front() {
        for next in inside(from) {
            if next == key {
                let mut path = vec![key, from];
                let mut at = from;
                while at != key {
                    let Some(before) = came.get(at) else { break };
                    path.push(before);
                    at = before;
                }
                path.dedup();
                path.reverse();
                return if path.len() == 1 { vec![key, key] } else { path };
            }
            if !came.contains_key(next) {
                came.insert(next, from);
                queue.push_back(next);
            }
        }
    }
    vec![key]
}

/// Returns the first resources of a path inside a large component, which eventually leads back to `key`.
fn onwards<'a>(
    key: &'a ResourceKey,
    inside: impl Fn(&ResourceKey) -> Vec<&'a ResourceKey>,
) -> Vec<&'a ResourceKey> {
    let mut path = vec![key];
    let mut at = key;
    while path.len() <= MAX_SPELLED {
        let Some(next) = inside(at).into_iter().find(|next| !path.contains(next)) else {
            break;
        };
        path.push(next);
        at = next;
    }
    path
}

/// Returns the finding about a member of a cycle, at the place where it reads the next one.
pub(super) fn diagnostic(resource: &Resource, cycle: &[String], group: &Group) -> Diagnostic {
    let own = &resource.name;
    let (message, hint) = match cycle {
        [_, only] if only.eq_ignore_ascii_case(own) => (
            format!("{} \"{own}\" reads itself", resource.kind),
            Some("its own last rows can be read inside `{{ if incremental }}` only".to_owned()),
        ),
        _ => {
            let mut names: Vec<&str> = cycle.iter().take(MAX_SPELLED).map(String::as_str).collect();
            if cycle.len() > MAX_SPELLED {
                names.extend(["...", own]);
            }
            (
                format!(
                    "{} \"{own}\" is on a cycle: {}",
                    resource.kind,
                    names.join(" -> ")
                ),
                None,
            )
        }
    };
    let next = cycle.get(1).map_or(own, |next| next);
    let (at, by) = place(group, own, next);
    let hint = match by {
        Reader::Test if hint.is_none() => Some(format!(
            "only its test reads `{next}`, which reads it: write that test in the file of `{next}`, as \
             `tests: [{{name: ..., sql: SELECT ... FROM {own} ...}}]`"
        )),
        _ => hint,
    };
    let path = match at.role {
        Role::Yaml => group.yaml.as_ref().or(group.sql.as_ref()),
        _ => group.sql.as_ref().or(group.yaml.as_ref()),
    };
    let about = DiagnosticResource {
        key: resource.key(),
        name: own.clone(),
    };
    let finding = Finding {
        at,
        code: Code::Cycle,
        message,
        hint,
        related: Vec::new(),
    };
    finding.in_file(path.map_or("", String::as_str), Some(&about))
}

/// The part of a resource that contains a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Only a test of the resource.
    Test,
    /// The resource's own SQL or refs.
    Itself,
}

/// Returns the place where the SQL first reads a name, and the part that does; the start of the file if the name is not
/// found.
fn place(group: &Group, own: &str, next: &str) -> (At, Reader) {
    let start = At::start(if group.sql.is_some() {
        Role::Sql
    } else {
        Role::Yaml
    });
    let at = group.compiled.drafts.iter().position(|draft| draft.name == own);
    let draft = at.and_then(|at| group.compiled.drafts.get(at));
    let analyses = at.and_then(|at| group.analyses.get(at));
    for (at, block) in draft.into_iter().flat_map(|draft| &draft.blocks).enumerate() {
        let read = analyses.and_then(|analyses| analyses.get(at)).map(|all| {
            let mut tables = all.iter().flat_map(|analysis| &analysis.tables);
            tables.any(|table| table.name.eq_ignore_ascii_case(next))
        });
        // A common table expression of that name reads nothing.
        if read == Some(false) {
            continue;
        }
        let by = match block.purpose {
            Purpose::Test => Reader::Test,
            _ => Reader::Itself,
        };
        let found = tokens(&block.text).into_iter().find(|token| match token.kind {
            TokenKind::Word | TokenKind::Quoted => token.meaning().eq_ignore_ascii_case(next),
            TokenKind::Action => token.text.contains(&format!("\"{next}\"")),
            _ => false,
        });
        if let Some(token) = found {
            return (block.place.range(&block.text, token.range), by);
        }
    }
    let named = draft.into_iter().flat_map(|draft| &draft.refs);
    let named = named
        .filter(|one| one.name.eq_ignore_ascii_case(next))
        .find_map(|one| one.at);
    if let Some(at) = named {
        return (at, Reader::Itself);
    }
    (start, Reader::Itself)
}
