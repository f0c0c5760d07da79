//! Objects that migrations and connectors left in the engine, tracked as inputs of the statements that read them.
//!
//! A macro, a table, a view, a type or a setting that a migration made belongs to no model, and models read it by name.
//! Each of them has a version: of what has a definition the version stands for the definition, of a table for the last
//! run that made or changed it. What a definition names itself counts with it, however deep.
//!
//! All of this is known from the states of migrations, so that nobody opens the engine to learn that nothing changed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use uuid::Uuid;
use watershed_locks::Unpoisoned;
use watershed_proto::{MadeThing, MigrationState};

use crate::digest::digest;

/// A 16-byte fingerprint, different when the content is.
pub type Version = [u8; 16];

/// All objects that migrations and connectors left, shared by the reconcilers of one instance. Never locked across an
/// await.
#[derive(Debug, Default)]
pub struct Made {
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    migrations: BTreeMap<Uuid, MigrationState>,
    /// Objects by name in lower case. Several objects of one name count as one.
    things: HashMap<String, Thing>,
    /// Settings and statements that affect all SQL, by name.
    everywhere: BTreeMap<String, Version>,
    sessions: BTreeMap<String, Version>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Thing {
    version: Vec<u8>,
    names: BTreeSet<String>,
    files: Vec<String>,
}

/// Tracked objects that a statement reads, directly or through definitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Versions of objects by name; each covers the versions of the objects in its definition.
    pub inputs: BTreeMap<String, Version>,
    /// Paths and patterns of local files that the definitions read.
    pub files: Vec<String>,
}

impl Made {
    /// Records the objects that a migration left. Returns true if anything changed.
    pub fn learn(&self, migration: Uuid, state: &MigrationState) -> bool {
        let mut known = self.write();
        if known.migrations.get(&migration) == Some(state) {
            return false;
        }
        known.migrations.insert(migration, state.clone());
        known.count_anew();
        true
    }

    /// Forgets the objects that a migration left. Returns true if any were known.
    pub fn forget(&self, migration: Uuid) -> bool {
        let mut known = self.write();
        let was_known = known.migrations.remove(&migration).is_some();
        known.count_anew();
        was_known
    }

    /// Records the versions of the statements with which connections begin, by connector.
    pub fn begin_with<'a>(&self, sessions: impl Iterator<Item = (&'a str, Version)>) {
        let named = |(connector, version)| (format!("init_sql of {connector}"), version);
        self.write().sessions = sessions.map(named).collect();
    }

    /// Returns the inputs of a model whose SQL uses these names: objects, and the settings that affect all SQL.
    #[must_use]
    pub fn read_by_model(&self, uses: &[String]) -> Reads {
        let known = self.read();
        let mut reads = known.reads(uses.iter().map(String::as_str));
        let everywhere = known.everywhere.iter().chain(&known.sessions);
        reads
            .inputs
            .extend(everywhere.map(|(name, version)| (name.clone(), *version)));
        reads
    }

    /// Returns the inputs of a statement with these names, without the settings that affect all SQL.
    #[must_use]
    pub fn read_by_names<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Reads {
        self.read().reads(names.into_iter())
    }

    /// Returns the migrations whose settings or objects a model with these names depends on, transitively.
    #[must_use]
    pub fn behind(&self, uses: &[String]) -> BTreeSet<Uuid> {
        let known = self.read();
        let mut names = BTreeSet::new();
        for name in uses {
            names.extend(known.reached(name).into_keys().map(str::to_owned));
        }
        let is_behind = |state: &MigrationState| {
            let made = state.made.iter();
            !state.settings.is_empty()
                || made
                    .into_iter()
                    .any(|one| names.contains(&one.name.to_lowercase()))
        };
        let all = known.migrations.iter();
        all.filter(|(_, state)| is_behind(state))
            .map(|(uid, _)| *uid)
            .collect()
    }

    /// Returns a fingerprint of all tracked objects; none if there are none.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        let known = self.read();
        let mut names: Vec<&str> = known.things.keys().map(String::as_str).collect();
        names.sort_unstable();
        let reads = known.reads(names.into_iter());
        let everything = [&reads.inputs, &known.everywhere, &known.sessions];
        let parts = everything.into_iter().flatten();
        let mut parts = parts
            .map(|(name, version)| (name.as_str(), version.as_slice()))
            .peekable();
        parts.peek()?;
        Some(version_of(parts))
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unpoisoned()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unpoisoned()
    }
}

impl Known {
    fn count_anew(&mut self) {
        let mut things: HashMap<String, Thing> = HashMap::new();
        let mut everywhere: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for state in self.migrations.values() {
            for made in &state.made {
                things.entry(made.name.to_lowercase()).or_default().add(made);
            }
            for (name, value) in &state.settings {
                everywhere.entry(format!("SET {name}")).or_default().push(value);
            }
        }
        let version = |values: Vec<&str>| version_of(values.into_iter().map(|value| ("", value.as_bytes())));
        self.everywhere = everywhere
            .into_iter()
            .map(|(name, values)| (name, version(values)))
            .collect();
        self.things = things;
    }

    fn reads<'a>(&self, names: impl Iterator<Item = &'a str>) -> Reads {
        let mut reads = Reads::default();
        for name in names {
            let name = name.to_lowercase();
            let reached = self.reached(&name);
            if reached.is_empty() {
                continue;
            }
            let files = reached.values().flat_map(|thing| &thing.files);
            reads.files.extend(files.cloned());
            let parts = reached
                .iter()
                .map(|(name, thing)| (*name, thing.version.as_slice()));
            let version = version_of(parts);
            reads.inputs.insert(name, version);
        }
        reads.files.sort();
        reads.files.dedup();
        reads
    }

    /// Returns the object of a name and all objects that its definition refers to, transitively; empty if there is
    /// none.
    fn reached<'a>(&'a self, name: &'a str) -> BTreeMap<&'a str, &'a Thing> {
        let mut reached = BTreeMap::new();
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            if let Some(thing) = self.things.get(name)
                && reached.insert(name, thing).is_none()
            {
                next.extend(thing.names.iter().map(String::as_str));
            }
        }
        reached
    }
}

impl Thing {
    fn add(&mut self, made: &MadeThing) {
        self.version.extend(&made.version);
        self.names.extend(made.names.iter().cloned());
        self.files.extend(made.files.iter().cloned());
    }
}

fn version_of<'a>(parts: impl Iterator<Item = (&'a str, &'a [u8])>) -> Version {
    let parts = parts.flat_map(|(name, version)| [name.as_bytes(), version]);
    digest("watershed 2026 version of what migrations made", parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thing(name: &str, version: u8, names: &[&str]) -> MadeThing {
        MadeThing {
            kind: "function".into(),
            name: name.into(),
            version: vec![version; 16],
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            files: vec![format!("{name}.csv")],
        }
    }

    fn state(made: Vec<MadeThing>) -> MigrationState {
        MigrationState {
            made,
            ..MigrationState::default()
        }
    }

    #[test]
    fn what_a_definition_names_counts_with_it_however_deep() {
        let made = Made::default();
        let id = Uuid::from_u128(1);
        let uses = ["Total".to_owned(), "sum".to_owned()];
        let read = |rates| {
            let all = vec![
                thing("total", 1, &["euros", "sum"]),
                thing("euros", 2, &["rates", "total"]),
                thing("rates", rates, &[]),
                thing("other", rates, &[]),
            ];
            assert!(made.learn(id, &state(all)));
            made.read_by_model(&uses)
        };
        let (one, two) = (read(3), read(4));
        assert_eq!(one.inputs.keys().collect::<Vec<_>>(), ["total"]);
        assert_eq!(one.files, ["euros.csv", "rates.csv", "total.csv"]);
        assert_ne!(one.inputs, two.inputs);
        assert_eq!(made.read_by_names(["sum"]), Reads::default());
    }

    #[test]
    fn a_setting_and_the_statements_of_a_connector_are_inputs_of_all_sql() {
        let made = Made::default();
        assert_eq!(made.version(), None);
        let id = Uuid::from_u128(1);
        let settings = BTreeMap::from([("default_null_order".to_owned(), "nulls_first".to_owned())]);
        made.learn(
            id,
            &MigrationState {
                settings,
                ..MigrationState::default()
            },
        );
        let begin = |version: u8| made.begin_with([("duckdb", [version; 16])].into_iter());
        begin(1);
        let before = made.read_by_model(&[]);
        let names: Vec<&String> = before.inputs.keys().collect();
        assert_eq!(names, ["SET default_null_order", "init_sql of duckdb"]);
        begin(2);
        assert_ne!(made.read_by_model(&[]), before);
        assert!(made.forget(id));
    }
}
