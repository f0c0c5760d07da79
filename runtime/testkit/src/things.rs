//! Resources that a play wants, place by place.

use std::sync::Arc;

use watershed_core::{Edit, Key, Kind, NewResource, Ref, Row, Uid, Update};

use crate::script::{GIVENS, Named, PLACES};

/// Names that the places have at the start.
const NAMES: [&str; PLACES] = ["alpha", "beta", "gamma"];

/// Names of the two given resources of each kind.
const GIVEN_NAMES: [&str; GIVENS] = ["one", "two"];

/// A wanted resource of the tested kind.
#[derive(Debug, Clone)]
pub(super) struct Thing {
    /// Uid in the catalog, once the resource is created.
    pub(super) uid: Uid,
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) spec: Arc<[u8]>,
    pub(super) refs: Vec<Key>,
}

/// A wanted given resource.
#[derive(Debug, Clone)]
pub(super) struct GivenThing {
    pub(super) key: Key,
    pub(super) uid: Uid,
    /// Seed from which the state is generated.
    pub(super) seed: u64,
    /// Spec of the resource; none if it should not exist.
    pub(super) spec: Option<Arc<[u8]>>,
    pub(super) fails: bool,
    /// Version of the state message.
    pub(super) format: u32,
}

/// All wanted resources.
#[derive(Debug, Clone)]
pub(super) struct Things {
    pub(super) kind: Kind,
    pub(super) places: [Option<Thing>; PLACES],
    pub(super) givens: Vec<GivenThing>,
    next_uid: u128,
}

impl Things {
    /// Creates an empty set; `givens` are the kinds of given resources, each with the version of its state message.
    pub(super) fn new(kind: Kind, givens: impl Iterator<Item = (Kind, u32)>) -> Self {
        let mut things = Self {
            kind,
            places: Default::default(),
            givens: Vec::new(),
            next_uid: 1,
        };
        for (kind, format) in givens {
            for name in GIVEN_NAMES {
                let given = GivenThing {
                    key: Key::new(kind.clone(), name),
                    uid: things.uid(),
                    seed: 0,
                    spec: None,
                    fails: false,
                    format,
                };
                things.givens.push(given);
            }
        }
        things
    }

    /// Returns a uid that no resource has had.
    pub(super) fn uid(&mut self) -> Uid {
        self.next_uid += 1;
        Uid(uuid::Uuid::from_u128(self.next_uid))
    }

    pub(super) fn place_of(&self, uid: Uid) -> Option<usize> {
        let is_it = |place: &Option<Thing>| place.as_ref().is_some_and(|thing| thing.uid == uid);
        self.places.iter().position(is_it)
    }

    /// Returns the name that a place has now, after renames.
    pub(super) fn name_of(&self, place: usize) -> String {
        match &self.places[place] {
            Some(thing) => thing.name.clone(),
            None => NAMES[place].to_owned(),
        }
    }

    /// Returns the name of a place in another case, or in the original one.
    pub(super) fn case_changed(&self, place: usize) -> String {
        let name = self.name_of(place);
        if name == NAMES[place] {
            name.to_uppercase()
        } else {
            NAMES[place].to_owned()
        }
    }

    pub(super) fn keys(&self, refs: &[Named]) -> Vec<Key> {
        let key = |named: &Named| match named {
            Named::Given(given) => self.givens[*given].key.clone(),
            Named::Place(place) => Key::new(self.kind.clone(), self.name_of(*place).as_str()),
        };
        refs.iter().map(key).collect()
    }

    /// Returns the refs of a place that can exist: given resources, and resources in earlier places.
    pub(super) fn sound_refs(&self, place: usize) -> Vec<Key> {
        let Some(thing) = &self.places[place] else {
            return Vec::new();
        };
        let earlier = &self.places[..place];
        let is_earlier = |key: &Key| {
            earlier
                .iter()
                .flatten()
                .any(|other| key.name == other.name.as_str().into())
        };
        let mut refs = thing.refs.clone();
        refs.retain(|key| key.kind != self.kind || is_earlier(key));
        refs
    }

    /// Returns all wanted resources as text: equal texts lead to equal results.
    pub(super) fn text(&self) -> String {
        format!("{:?} {:?}", self.places, self.givens)
    }

    /// Returns the edits that turn a catalog with these live rows into the wanted one.
    pub(super) fn edits(&self, rows: &[Arc<Row>], format: u32) -> Vec<Edit> {
        let mut edits = Vec::new();
        let found = |uid: Uid| rows.iter().find(|row| row.uid == uid);
        for given in &self.givens {
            let Some(spec) = &given.spec else { continue };
            let wanted = Wanted {
                uid: given.uid,
                key: given.key.clone(),
                spec: (Arc::clone(spec), given.format),
                refs: Arc::from([]),
            };
            edits.extend(wanted.edits(found(given.uid)));
        }
        for thing in self.places.iter().flatten() {
            let wanted = Wanted {
                uid: thing.uid,
                key: Key::new(self.kind.clone(), thing.name.as_str()),
                spec: (Arc::clone(&thing.spec), format),
                refs: as_refs(&thing.refs),
            };
            edits.extend(wanted.edits(found(thing.uid)));
        }
        let surplus = rows.iter().filter(|row| !self.has(row.uid));
        edits.extend(surplus.map(|row| Edit::delete(row.uid)));
        edits
    }

    fn has(&self, uid: Uid) -> bool {
        let given = |given: &GivenThing| given.uid == uid && given.spec.is_some();
        self.place_of(uid).is_some() || self.givens.iter().any(given)
    }

    /// Updates the uid of a created resource: an earlier one, if its delete was unfinished.
    pub(super) fn created(&mut self, asked: Uid, got: Uid) {
        for thing in self.places.iter_mut().flatten() {
            if thing.uid == asked {
                thing.uid = got;
            }
        }
        for given in &mut self.givens {
            if given.uid == asked {
                given.uid = got;
            }
        }
    }
}

/// A resource as it should be stored.
struct Wanted {
    uid: Uid,
    key: Key,
    spec: (Arc<[u8]>, u32),
    refs: Arc<[Ref]>,
}

impl Wanted {
    fn edits(self, row: Option<&Arc<Row>>) -> Vec<Edit> {
        let Some(row) = row else {
            let (spec, format) = self.spec;
            let mut new = NewResource::new(self.uid, self.key.kind, self.key.name, spec);
            new.spec_format = format;
            return vec![Edit::create(new.with_refs(self.refs))];
        };
        let mut edits = Vec::new();
        if !row.name.same_case(&self.key.name) {
            edits.push(Edit::rename(self.uid, self.key.name));
        }
        if row.spec != self.spec.0 || row.refs != self.refs {
            let update = Update {
                spec: Some(self.spec),
                refs: Some(self.refs),
                ..Update::default()
            };
            edits.push(Edit::update(self.uid, update));
        }
        edits
    }
}

fn as_refs(keys: &[Key]) -> Arc<[Ref]> {
    keys.iter()
        .map(|key| Ref::completed(key.kind.clone(), key.name.clone()))
        .collect()
}
