//! Detection of renames: parsed resources that are earlier ones under a new name.
//!
//! A rename is one resource gone and one added in the same parse: of one kind, of equal meaning, with equal
//! refs. [`pair`] finds them for all kinds, by these rules:
//!
//! 1. Refs are compared after the renames of what they name, so a whole chain of renamed resources is found.
//! 2. When several match, the one with an equal file stem is taken, else the one with the smallest path: the
//!    result depends on the two sets alone, never on their order or on chance.
//! 3. A name that is there before and after with another meaning takes part only where names move on: in a swap
//!    (`a` and `b` trade places) and in a chain (`a` becomes `b`, what was `b` becomes `c`). A name that is merely
//!    written over is an edit, and one that is copied away and then edited is an edit and a new resource.
//!
//! The cost is near-linear: each candidate is looked at once, when all that its refs name is decided, and is
//! found by its signature.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// A resource that was removed, added, or changed in meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The kind of the resource.
    pub kind: String,
    /// The name of the resource, compared without regard to case.
    pub name: String,
    /// The canonical encoding of the meaning, with refs as ordinals.
    pub meaning: Vec<u8>,
    /// The refs as (kind, name), ordered by ordinal, which renames don't change.
    pub refs: Vec<(String, String)>,
    /// The paths of the files that declare the resource.
    pub paths: Vec<String>,
}

/// An earlier resource and its new name, as indices in the inputs of [`pair`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rename {
    /// The index among the earlier resources.
    pub before: usize,
    /// The index among the later resources.
    pub after: usize,
}

/// Finds the renames between removed or changed resources (as they were) and added or changed ones (as they are). A
/// changed resource is in both lists; within each list, (kind, name) is unique.
#[must_use]
pub fn pair(before: &[Candidate], after: &[Candidate]) -> Vec<Rename> {
    let mut keys = Keys::default();
    let before = before
        .iter()
        .map(|candidate| Node::new(candidate, &mut keys))
        .collect::<Vec<_>>();
    let after = after
        .iter()
        .map(|candidate| Node::new(candidate, &mut keys))
        .collect::<Vec<_>>();
    let pairs = Matching::new(&before, &after).run();
    let pairs = Moves::new(pairs, &before, &after).settle();
    let renames = pairs.iter().enumerate().filter_map(|(index, pair)| {
        let pair = (*pair)?;
        (before[index].key != after[pair].key).then_some(Rename {
            before: index,
            after: pair,
        })
    });
    renames.collect()
}

/// Numbers for identities: kind and name in lower case.
#[derive(Default)]
struct Keys(HashMap<(String, String), usize>);

impl Keys {
    fn of(&mut self, kind: &str, name: &str) -> usize {
        let next = self.0.len();
        *self
            .0
            .entry((kind.to_owned(), name.to_lowercase()))
            .or_insert(next)
    }
}

struct Node<'a> {
    candidate: &'a Candidate,
    key: usize,
    refs: Vec<usize>,
}

impl<'a> Node<'a> {
    fn new(candidate: &'a Candidate, keys: &mut Keys) -> Self {
        let refs = candidate
            .refs
            .iter()
            .map(|(kind, name)| keys.of(kind, name))
            .collect();
        Self {
            candidate,
            key: keys.of(&candidate.kind, &candidate.name),
            refs,
        }
    }

    fn path(&self) -> Option<&'a str> {
        self.candidate.paths.iter().map(String::as_str).min()
    }

    /// Returns the last part of the smallest path, without its extension.
    fn stem(&self) -> Option<&'a str> {
        let path = self.path()?;
        let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
        Some(file.rsplit_once('.').map_or(file, |(stem, _)| stem))
    }
}

/// The features that must be equal in a rename: kind, meaning, and targets of refs after the renames found so far.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Signature<'a> {
    kind: &'a str,
    meaning: &'a [u8],
    refs: Vec<usize>,
}

/// The search for pairs of earlier and later candidates, which handles candidates once their refs are decided.
struct Matching<'a> {
    before: &'a [Node<'a>],
    after: &'a [Node<'a>],
    before_by_key: HashMap<usize, usize>,
    /// Unpaired later candidates, by signature.
    open: BTreeMap<Signature<'a>, Vec<usize>>,
    pairs: Vec<Option<usize>>,
    decided: Vec<bool>,
}

impl<'a> Matching<'a> {
    fn new(before: &'a [Node<'a>], after: &'a [Node<'a>]) -> Self {
        let mut open = BTreeMap::<_, Vec<usize>>::new();
        for (index, node) in after.iter().enumerate() {
            let Candidate { kind, meaning, .. } = node.candidate;
            let signature = Signature {
                kind,
                meaning,
                refs: node.refs.clone(),
            };
            open.entry(signature).or_default().push(index);
        }
        Self {
            before,
            after,
            before_by_key: by_key(before),
            open,
            pairs: vec![None; before.len()],
            decided: vec![false; before.len()],
        }
    }

    fn run(mut self) -> Vec<Option<usize>> {
        let mut readers = vec![Vec::new(); self.before.len()];
        let mut waits_for = vec![0_usize; self.before.len()];
        for (index, node) in self.before.iter().enumerate() {
            for target in node.refs.iter().filter_map(|key| self.before_by_key.get(key)) {
                if *target != index {
                    readers[*target].push(index);
                    waits_for[index] += 1;
                }
            }
        }
        let mut layer = (0..self.before.len())
            .filter(|index| waits_for[*index] == 0)
            .collect::<Vec<_>>();
        while !layer.is_empty() {
            self.decide(&layer);
            let mut next = Vec::new();
            for reader in layer.iter().flat_map(|index| &readers[*index]) {
                waits_for[*reader] -= 1;
                if waits_for[*reader] == 0 {
                    next.push(*reader);
                }
            }
            layer = next;
        }
        // What is left refers to itself in a circle: compared as it stands.
        let rest = (0..self.before.len())
            .filter(|index| !self.decided[*index])
            .collect::<Vec<_>>();
        self.decide(&rest);
        self.pairs
    }

    fn decide(&mut self, layer: &[usize]) {
        let mut groups = BTreeMap::<_, Vec<usize>>::new();
        for index in layer {
            self.decided[*index] = true;
            groups.entry(self.signature(*index)).or_default().push(*index);
        }
        for (signature, group) in groups {
            if let Some(open) = self.open.get_mut(&signature) {
                let taken = pair_group(&group, open, self.before, self.after);
                let gone = taken.iter().map(|pair| pair.after).collect::<HashSet<_>>();
                open.retain(|after| !gone.contains(after));
                for pair in taken {
                    self.pairs[pair.before] = Some(pair.after);
                }
            }
        }
    }

    fn signature(&self, index: usize) -> Signature<'a> {
        let node = &self.before[index];
        let Candidate { kind, meaning, .. } = node.candidate;
        let refs = node.refs.iter().map(|key| self.renamed(*key)).collect();
        Signature { kind, meaning, refs }
    }

    /// Returns the later identity of an earlier resource, as far as it is decided.
    fn renamed(&self, key: usize) -> usize {
        let target = self.before_by_key.get(&key).and_then(|index| self.pairs[*index]);
        target.map_or(key, |after| self.after[after].key)
    }
}

/// Pairs equal candidates: first by name, then by file stem, then by path.
fn pair_group(before: &[usize], after: &[usize], olds: &[Node<'_>], news: &[Node<'_>]) -> Vec<Rename> {
    let mut before = before.to_vec();
    let mut after = after.to_vec();
    before.sort_by_key(|index| (olds[*index].path(), &olds[*index].candidate.name));
    after.sort_by_key(|index| (news[*index].path(), &news[*index].candidate.name));
    let mut pairs = Vec::new();
    pair_by(
        &mut before,
        &mut after,
        &mut pairs,
        |index| Some(olds[index].key),
        |index| Some(news[index].key),
    );
    pair_by(
        &mut before,
        &mut after,
        &mut pairs,
        |index| olds[index].stem(),
        |index| news[index].stem(),
    );
    pairs.extend(
        before
            .into_iter()
            .zip(after)
            .map(|(before, after)| Rename { before, after }),
    );
    pairs
}

/// Moves candidates with equal features from both lists to `pairs`, in the order of the lists.
fn pair_by<T: Eq + std::hash::Hash>(
    before: &mut Vec<usize>,
    after: &mut Vec<usize>,
    pairs: &mut Vec<Rename>,
    of_before: impl Fn(usize) -> Option<T>,
    of_after: impl Fn(usize) -> Option<T>,
) {
    let mut by_feature = HashMap::<T, VecDeque<usize>>::new();
    for index in after.iter() {
        if let Some(feature) = of_after(*index) {
            by_feature.entry(feature).or_default().push_back(*index);
        }
    }
    let mut taken = HashSet::new();
    before.retain(|index| {
        let found = of_before(*index).and_then(|feature| by_feature.get_mut(&feature)?.pop_front());
        if let Some(found) = found {
            taken.insert(found);
            pairs.push(Rename {
                before: *index,
                after: found,
            });
        }
        found.is_none()
    });
    after.retain(|index| !taken.contains(index));
}

/// The removal of pairs that violate rule 3, and of pairs that only matched because of a removed pair.
struct Moves<'a> {
    pairs: Vec<Option<usize>>,
    before: &'a [Node<'a>],
    after: &'a [Node<'a>],
    before_by_key: HashMap<usize, usize>,
    after_by_key: HashMap<usize, usize>,
    /// The earlier resource that each later one is paired with, if any.
    into: Vec<Option<usize>>,
    /// The earlier resources that refer to each identity.
    readers: HashMap<usize, Vec<usize>>,
}

impl<'a> Moves<'a> {
    fn new(pairs: Vec<Option<usize>>, before: &'a [Node<'a>], after: &'a [Node<'a>]) -> Self {
        let mut into = vec![None; after.len()];
        for (index, pair) in pairs.iter().enumerate() {
            if let Some(pair) = pair {
                into[*pair] = Some(index);
            }
        }
        let mut readers = HashMap::<usize, Vec<usize>>::new();
        for (index, node) in before.iter().enumerate() {
            for key in &node.refs {
                readers.entry(*key).or_default().push(index);
            }
        }
        let (before_by_key, after_by_key) = (by_key(before), by_key(after));
        Self {
            pairs,
            before,
            after,
            before_by_key,
            after_by_key,
            into,
            readers,
        }
    }

    fn settle(mut self) -> Vec<Option<usize>> {
        let mut suspects = (0..self.before.len()).collect::<Vec<_>>();
        while let Some(index) = suspects.pop() {
            if self.pairs[index].is_some_and(|pair| !self.moves_on(index, pair)) {
                self.take_back(index, &mut suspects);
            }
        }
        self.pairs
    }

    /// Returns true if the new name is unused or left by its holder, and the old name is unused or taken by another
    /// resource.
    fn moves_on(&self, index: usize, pair: usize) -> bool {
        let holder = self.before_by_key.get(&self.after[pair].key);
        let successor = self.after_by_key.get(&self.before[index].key);
        holder.is_none_or(|holder| self.pairs[*holder].is_some())
            && successor.is_none_or(|successor| self.into[*successor].is_some())
    }

    /// Undoes a pair and the pairs that depend on it. Pairs that used the freed names are checked again as suspects.
    fn take_back(&mut self, index: usize, suspects: &mut Vec<usize>) {
        let mut stack = vec![index];
        while let Some(index) = stack.pop() {
            let Some(pair) = self.pairs[index].take() else {
                continue;
            };
            self.into[pair] = None;
            let (from, to) = (self.before[index].key, self.after[pair].key);
            suspects.extend(
                self.after_by_key
                    .get(&from)
                    .and_then(|successor| self.into[*successor]),
            );
            suspects.extend(self.before_by_key.get(&to));
            if from != to {
                stack.extend(self.readers.get(&from).into_iter().flatten());
            }
        }
    }
}

fn by_key(nodes: &[Node<'_>]) -> HashMap<usize, usize> {
    nodes
        .iter()
        .enumerate()
        .map(|(index, node)| (node.key, index))
        .collect()
}

#[cfg(test)]
mod tests;
