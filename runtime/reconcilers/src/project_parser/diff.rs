//! The difference between a parse and the catalog as one batch of edits, computed without side effects.
//!
//! [`Diff::new`] compares what the files declare with the rows that the parser owns. Its rules:
//!
//! 1. A resource is edited only if it means something else, refers to something else or has another name. A text
//!    that says the same is left alone, unless its last run failed: then its errors should point into the text
//!    that is there.
//! 2. A resource whose files are there and do not compile keeps its last good spec, with the finding as its
//!    fault; so does one that a file of that sort declared before, whatever it would declare now.
//! 3. A resource whose files are gone, or compile without it, is deleted, unless it lives on under another name.
//! 4. A name that belongs to a resource of somebody else is a finding; the rest is applied.
//! 5. What reads a resource of rule 2 goes on reading it, although the files alone no longer say that it is there.
//! 6. The winner of a collision stays the winner while its file does not compile.
//! 7. What reports how resources stand reads all others.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use watershed_compilers::{Health, Kind, Requirement, Resource, ResourceRef, Spec};
use watershed_core::{Batch, Edit, Key, Name, NewResource, Ref, Required, RetryPolicy, Row, Uid, Update};
use watershed_proto::{Diagnostic, Fault, Message, ModelSpec, Severity};

use super::{
    renames::{self, Candidate},
    watching::{Watching, is_of_reporter},
};
use crate::{
    managed,
    model::{self, retries},
};

/// The kind whose resources are read by name.
const MODEL: &str = Kind::Model.as_str();

/// The largest depth of parts below a managed resource.
const PART_LEVELS: usize = 4;

/// The format number of the specs of parsed kinds.
const SPEC_FORMAT: u32 = 1;

/// The result of a parse: declared resources and findings.
#[derive(Debug)]
pub struct Parsed<'a> {
    /// The resources that the files declare.
    pub resources: Vec<&'a Resource>,
    /// Files that exist and do not compile.
    pub broken_paths: BTreeSet<&'a str>,
    /// All findings, by file and place.
    pub diagnostics: &'a [Diagnostic],
}

/// The edits that change the catalog to what the files declare.
#[derive(Debug, Default)]
pub struct Diff {
    /// The edits, to be applied atomically.
    pub batch: Batch,
    /// Faults of the files that only the catalog shows.
    pub findings: Vec<Diagnostic>,
}

/// A resource as it should be in the catalog.
struct Wanted<'a> {
    resource: &'a Resource,
    spec: Vec<u8>,
    refs: Vec<Ref>,
    /// The resource's own retry policy, if it sets one.
    retry: Option<RetryPolicy>,
}

impl Diff {
    /// Compares `parsed` with the live `rows` of the catalog. `parser` is the owner of parsed resources; `fresh`
    /// returns new uids.
    #[must_use]
    pub fn new(parsed: &Parsed<'_>, rows: &[Arc<Row>], parser: Uid, fresh: impl FnMut() -> Uid) -> Self {
        let mut comparison = Comparison::new(parsed, rows, parser);
        comparison.take_all();
        comparison.keep_broken();
        comparison.bind_to_kept();
        comparison.watch_all_others();
        let batch = Batch {
            edits: comparison.edits(fresh),
        };
        Self {
            batch,
            findings: comparison.findings,
        }
    }
}

/// The comparison of the parser's rows with the wanted resources.
struct Comparison<'a> {
    parsed: &'a Parsed<'a>,
    parser: Uid,
    owned: BTreeMap<Key, &'a Row>,
    /// Keys of resources that others own.
    others: BTreeSet<Key>,
    /// The parts of managed resources, by the uid of their owner.
    parts: BTreeMap<Uid, Vec<&'a Row>>,
    wanted: BTreeMap<Key, Wanted<'a>>,
    /// The keys of rows whose files do not compile, with the fault.
    kept: BTreeMap<Key, Fault>,
    findings: Vec<Diagnostic>,
}

impl<'a> Comparison<'a> {
    fn new(parsed: &'a Parsed<'a>, rows: &'a [Arc<Row>], parser: Uid) -> Self {
        let live = rows.iter().filter(|row| !row.intents.is_deleted());
        let (owned, others) = live.partition::<Vec<_>, _>(|row| row.owner == Some(parser));
        let mut parts = BTreeMap::<Uid, Vec<&Row>>::new();
        for row in others
            .iter()
            .copied()
            .filter(|row| row.kind.as_str() == managed::KIND)
        {
            if let Some(owner) = row.owner {
                parts.entry(owner).or_default().push(row.as_ref());
            }
        }
        Self {
            parts,
            parsed,
            parser,
            owned: owned.into_iter().map(|row| (row.key(), row.as_ref())).collect(),
            others: others.into_iter().map(|row| row.key()).collect(),
            wanted: BTreeMap::new(),
            kept: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    fn take_all(&mut self) {
        let declared = self
            .owned
            .values()
            .flat_map(|row| row.paths.iter().map(Arc::as_ref));
        let declared = declared.collect::<HashSet<&str>>();
        for resource in &self.parsed.resources {
            let key = Key::new(resource.kind.as_str(), resource.name.as_str());
            let row = self.owned.get(&key).copied();
            let known = |path: &String| declared.contains(path.as_str());
            if self.others.contains(&key) {
                self.findings.push(name_taken(resource));
            } else if row.is_some_and(|row| self.outranks(row, resource)) {
                self.findings.push(name_collision(resource));
            } else if row.is_none() && resource.health == Health::Broken && resource.paths.iter().all(known) {
                // A guess by the file's name; what it declared before is known better, and is kept.
            } else {
                let wanted = self.wanted(resource, row);
                self.wanted.insert(key, wanted);
            }
        }
    }

    /// Returns true if the uncompilable file of a row would win the name over `resource`, which another file declares.
    fn outranks(&self, row: &Row, resource: &Resource) -> bool {
        let shared = row
            .paths
            .iter()
            .any(|path| resource.paths.iter().any(|other| **other == **path));
        let first = row.paths.iter().map(Arc::as_ref).min();
        !shared && self.is_broken(row) && first < resource.paths.iter().map(String::as_str).min()
    }

    fn is_broken(&self, row: &Row) -> bool {
        row.paths
            .iter()
            .any(|path| self.parsed.broken_paths.contains(path.as_ref()))
    }

    fn wanted(&self, resource: &'a Resource, row: Option<&Row>) -> Wanted<'a> {
        let declared = || resource.refs.iter().map(reference);
        let kind = resource.kind;
        if resource.health != Health::Broken || !kind.is_supported() {
            return Wanted {
                resource,
                spec: managed::encode(&resource.spec, row),
                refs: declared().collect(),
                retry: retries::policy(&resource.spec),
            };
        }
        let last_good = row.and_then(spec_of);
        let (refs, retry) = match (&last_good, row) {
            (Some(_), Some(row)) => (row.refs.to_vec(), row.retry.as_deref().copied()),
            _ => (declared().collect(), None),
        };
        let fault = self.fault(resource.paths.iter().map(String::as_str));
        let spec = last_good.or_else(|| Spec::empty(kind)).unwrap_or(Spec::None);
        Wanted {
            resource,
            retry,
            spec: managed::encode(&spec.with_fault(fault), row),
            refs,
        }
    }

    /// Keeps the rows whose files do not compile.
    fn keep_broken(&mut self) {
        let unclaimed = self
            .owned
            .iter()
            .filter(|(key, _)| !self.wanted.contains_key(key));
        let broken = unclaimed.filter(|(_, row)| self.is_broken(row));
        self.kept = broken
            .map(|(key, row)| (key.clone(), self.fault(row.paths.iter().map(Arc::as_ref))))
            .collect();
    }

    /// Adds refs to kept models, whose names the compiler takes for undeclared tables. A text that merely equals such a
    /// name also becomes a ref until the broken file is mended.
    fn bind_to_kept(&mut self) {
        let kept = self.kept.keys().filter(|key| key.kind.as_str() == MODEL);
        let kept = kept
            .map(|key| key.name.as_str().to_lowercase())
            .collect::<HashSet<_>>();
        if kept.is_empty() {
            return;
        }
        for wanted in self.wanted.values_mut() {
            let text = match &wanted.resource.spec {
                Spec::Model(spec) => spec.sql.as_ref().map(|sql| sql.text.to_lowercase()),
                Spec::MetricsView(spec) => Some(format!("{} {}", spec.model, spec.table).to_lowercase()),
                _ => None,
            };
            let Some(text) = text else { continue };
            let words = text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect::<HashSet<_>>();
            // A name that is more than a word stands in quotes.
            let mentions = |name: &str| words.contains(name) || text.contains(&format!("\"{name}\""));
            let found = kept
                .iter()
                .filter(|name| mentions(name))
                .map(|name| Ref::completed(MODEL, name.as_str()));
            wanted.refs.extend(found);
            wanted.refs.sort();
            wanted.refs.dedup();
        }
    }

    /// Adds the refs of alerts and reports about the status of other resources.
    fn watch_all_others(&mut self) {
        let kept = self
            .kept
            .keys()
            .filter_map(|key| Some((key, &*self.owned.get(key)?.refs)));
        let wanted = self
            .wanted
            .iter()
            .map(|(key, wanted)| (key, wanted.refs.as_slice()));
        let spec = |key: &Key| match self.wanted.get(key) {
            Some(wanted) => managed::decode_as(key.kind.as_str(), &wanted.spec),
            None => self.owned.get(key).and_then(|row| spec_of(row)),
        };
        let Some(watching) = Watching::new(kept.chain(wanted).collect(), spec) else {
            return;
        };
        let (all, reporters) = (watching.refs(), watching.reporters().collect::<Vec<_>>());
        for key in reporters {
            let Some(wanted) = self.wanted.get_mut(&key) else {
                continue;
            };
            let said: BTreeSet<Key> = wanted.refs.iter().map(Ref::key).collect();
            let others = all.iter().filter(|one| !said.contains(&one.key()));
            wanted.refs.extend(others.cloned());
            wanted.refs.sort();
        }
    }

    /// Returns the first error about one of `paths` as a fault.
    fn fault<'p>(&self, paths: impl Iterator<Item = &'p str>) -> Fault {
        let paths = paths.collect::<Vec<_>>();
        let errors = self
            .parsed
            .diagnostics
            .iter()
            .filter(|found| found.severity() == Severity::Error);
        let found = errors
            .into_iter()
            .find(|found| paths.contains(&found.path.as_str()));
        found.map_or_else(
            || Fault {
                code: "file-broken".into(),
                message: "the file can't be compiled".into(),
                path: paths.first().copied().unwrap_or_default().to_owned(),
                line: 1,
                column: 1,
                ..Fault::default()
            },
            |found| Fault {
                code: found.code.clone(),
                message: found.message.clone(),
                hint: found.hint.clone(),
                path: found.path.clone(),
                line: found.line,
                column: found.column,
            },
        )
    }

    fn edits(&self, mut fresh: impl FnMut() -> Uid) -> Vec<Edit> {
        let moved = self.renames();
        let left = moved.values().map(|row| row.uid).collect::<HashSet<_>>();
        let stays = |key: &Key| {
            self.owned
                .get(key)
                .copied()
                .filter(|row| !left.contains(&row.uid))
        };
        let mut edits = Vec::new();
        for (key, wanted) in &self.wanted {
            match moved.get(key).copied().or_else(|| stays(key)) {
                Some(row) => edits.extend(self.change(row, wanted)),
                None => edits.push(Edit::create(self.create(wanted, fresh()))),
            }
        }
        for (key, row) in &self.owned {
            if let Some(fault) = self.kept.get(key) {
                edits.extend(set_fault(row, fault));
            } else if !self.wanted.contains_key(key) && !left.contains(&row.uid) {
                edits.push(Edit::delete(row.uid));
            }
        }
        edits
    }

    /// Returns the rows that continue under another name, by the new name.
    fn renames(&self) -> BTreeMap<Key, &'a Row> {
        let gone = |key: &Key| !self.wanted.contains_key(key) && !self.kept.contains_key(key);
        let changed = |key: &Key, row: &Row| {
            self.wanted.get(key).is_some_and(|wanted| {
                wanted.resource.health == Health::Ok
                    && (!says_same(row, &wanted.spec) || *row.refs != *wanted.refs)
            })
        };
        let before = self
            .owned
            .iter()
            .filter(|(key, row)| gone(key) || changed(key, row));
        let (rows, before): (Vec<_>, Vec<_>) = before
            .filter_map(|(_, row)| Some((*row, candidate_of_row(row)?)))
            .unzip();
        if rows.is_empty() {
            return BTreeMap::new();
        }
        let after = self
            .wanted
            .iter()
            .filter(|(key, wanted)| match self.owned.get(key) {
                None => wanted.resource.health == Health::Ok,
                Some(row) => changed(key, row),
            });
        let (keys, after): (Vec<_>, Vec<_>) = after
            .filter_map(|(key, wanted)| Some((key, candidate_of_file(wanted)?)))
            .unzip();
        let pairs = renames::pair(&before, &after);
        pairs
            .into_iter()
            .map(|pair| (keys[pair.after].clone(), rows[pair.before]))
            .collect()
    }

    fn create(&self, wanted: &Wanted<'_>, uid: Uid) -> NewResource {
        let Wanted {
            resource,
            spec,
            refs,
            retry,
        } = wanted;
        NewResource {
            owner: Some(self.parser),
            retry: *retry,
            paths: paths(resource),
            labels: labels(resource),
            ..NewResource::new(uid, resource.kind.as_str(), resource.name.as_str(), spec.clone())
                .with_refs(refs.clone())
        }
    }

    fn change(&self, row: &Row, wanted: &Wanted<'_>) -> Vec<Edit> {
        let Wanted {
            resource,
            spec,
            refs,
            retry,
        } = wanted;
        let (refs, paths, labels) = (
            Arc::<[Ref]>::from(refs.as_slice()),
            paths(resource),
            labels_over(&row.labels, resource),
        );
        let new_refs = refs != row.refs;
        let new_text = row.error.is_some() && **spec != *row.spec;
        let name = Name::from(resource.name.as_str());
        let is_renamed = !row.name.same_case(&name);
        let new_spec =
            new_refs || new_text || !says_same(row, spec) || is_renamed && has_other_tests(row, spec);
        let update = Update {
            spec: new_spec.then(|| (spec.as_slice().into(), SPEC_FORMAT)),
            refs: new_refs.then_some(refs),
            paths: (paths != row.paths).then_some(paths),
            labels: (labels != row.labels).then_some(labels),
            retry: (retry.as_ref() != row.retry.as_deref()).then_some(*retry),
            ..Update::default()
        };
        let mut edits = Vec::new();
        if is_renamed {
            self.rename_parts(row, name.as_str(), PART_LEVELS, &mut edits);
            edits.push(Edit::rename(row.uid, name));
        }
        edits.extend((update != Update::default()).then(|| Edit::update(row.uid, update)));
        edits
    }

    /// Renames the parts of a managed resource in the same batch, so that exchanged names of files work. Parts without
    /// the owner's name as prefix are left to the owner.
    fn rename_parts(&self, owner: &Row, name: &str, levels: usize, edits: &mut Vec<Edit>) {
        let Some(below) = levels.checked_sub(1) else {
            return;
        };
        for part in self.parts.get(&owner.uid).into_iter().flatten() {
            let end = part.name.as_str().strip_prefix(owner.name.as_str());
            let Some(end) = end.filter(|end| end.starts_with('.')) else {
                continue;
            };
            let name = format!("{name}{end}");
            self.rename_parts(part, &name, below, edits);
            edits.push(Edit::rename(part.uid, Name::from(name.as_str())));
        }
    }
}

/// Returns true if the tests of a model are written otherwise: they name its table.
fn has_other_tests(row: &Row, spec: &[u8]) -> bool {
    let tests = |spec: &[u8]| ModelSpec::decode(spec).map(|spec| spec.tests).ok();
    row.kind.as_str() == model::KIND && tests(&row.spec) != tests(spec)
}

/// Converts a ref of the compiler to one of the catalog.
fn reference(to: &ResourceRef) -> Ref {
    Ref {
        required: match to.requirement() {
            Requirement::Exists => Required::Exists,
            Requirement::Completed => Required::Completed,
            Requirement::Ready => Required::Ready,
        },
        ..Ref::completed(to.kind.as_str(), to.name.as_str())
    }
}

fn set_fault(row: &Row, fault: &Fault) -> Option<Edit> {
    let spec = managed::encode(&spec_of(row)?.with_fault(fault.clone()), Some(row));
    let update = Update {
        spec: Some((spec.as_slice().into(), SPEC_FORMAT)),
        ..Update::default()
    };
    (*spec != *row.spec).then(|| Edit::update(row.uid, update))
}

/// Decodes the spec of a row; none for kinds without a spec and for invalid bytes.
fn spec_of(row: &Row) -> Option<Spec> {
    managed::decode(row)
}

/// Returns true if a row's spec has the same meaning and fault as `spec`.
fn says_same(row: &Row, spec: &[u8]) -> bool {
    if *row.spec == *spec {
        return true;
    }
    let wanted = managed::decode_as(row.kind.as_str(), spec);
    let (Some(stored), Some(wanted)) = (spec_of(row), wanted) else {
        return false;
    };
    stored.meaning().is_some() && stored.meaning() == wanted.meaning() && stored.fault() == wanted.fault()
}

fn candidate_of_row(row: &Row) -> Option<Candidate> {
    let spec = spec_of(row)?;
    let refs = row
        .refs
        .iter()
        .filter(|_| !is_of_reporter(&spec))
        .map(|to| (to.kind.as_str(), to.name.as_str()));
    Some(Candidate {
        kind: row.kind.as_str().to_owned(),
        name: row.name.as_str().to_owned(),
        meaning: spec.meaning()?.encode_to_vec(),
        refs: spec.ordered_refs(refs),
        paths: row.paths.iter().map(|path| path.as_ref().to_owned()).collect(),
    })
}

fn candidate_of_file(wanted: &Wanted<'_>) -> Option<Candidate> {
    let Wanted { resource, refs, .. } = wanted;
    let is_reporter = is_of_reporter(&resource.spec);
    let refs = refs
        .iter()
        .filter(|_| !is_reporter)
        .map(|to| (to.kind.as_str(), to.name.as_str()));
    Some(Candidate {
        kind: resource.kind.as_str().to_owned(),
        name: resource.name.clone(),
        meaning: resource.spec.meaning()?.encode_to_vec(),
        refs: resource.spec.ordered_refs(refs),
        paths: resource.paths.clone(),
    })
}

fn paths(resource: &Resource) -> Arc<[Arc<str>]> {
    resource
        .paths
        .iter()
        .map(|path| Arc::from(path.as_str()))
        .collect()
}

/// The name of the label that holds a resource's tags.
const TAGS: &str = "tags";

/// Returns the labels of a resource in the catalog, which hold its tags.
#[must_use]
pub fn labels(resource: &Resource) -> Arc<BTreeMap<Arc<str>, Arc<str>>> {
    let tags = (!resource.tags.is_empty()).then(|| (TAGS.into(), resource.tags.join(",").into()));
    Arc::new(tags.into_iter().collect())
}

/// Returns the labels of a resource after a parse; other labels than tags are kept.
fn labels_over(
    before: &BTreeMap<Arc<str>, Arc<str>>,
    resource: &Resource,
) -> Arc<BTreeMap<Arc<str>, Arc<str>>> {
    let mut after = labels(resource);
    if before.keys().any(|label| **label != *TAGS) {
        let others = before.iter().filter(|(label, _)| ***label != *TAGS);
        Arc::make_mut(&mut after).extend(others.map(|(label, value)| (label.clone(), value.clone())));
    }
    after
}

fn name_taken(resource: &Resource) -> Diagnostic {
    let message = format!(
        "{} \"{}\" belongs to somebody else, expected a name of its own",
        resource.kind, resource.name
    );
    finding(
        resource,
        "name-taken",
        message,
        "it was made outside of the project's files: delete it there or rename this one",
    )
}

fn name_collision(resource: &Resource) -> Diagnostic {
    let message = format!("another {} is also named \"{}\"", resource.kind, resource.name);
    finding(
        resource,
        "name-collision",
        message,
        "its file does not compile; fix or remove that one, or rename this one",
    )
}

/// Returns a finding about the whole file of a resource.
fn finding(resource: &Resource, code: &str, message: String, hint: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error.into(),
        code: code.to_owned(),
        path: resource.paths.first().cloned().unwrap_or_default(),
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        message,
        hint: hint.to_owned(),
        resource_kind: resource.kind.as_str().to_owned(),
        resource_name: resource.name.clone(),
        related: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
