//! The effect of file events on groups, names, resources, cycles and findings.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Changes, Group, Project, Source, claims::Claim, lanes, outputs, outputs::Writer, work::Work};
use crate::{
    diagnostics::{Code, Diagnostic, Findings},
    draft::{Compiled, Context, Draft, SqlBlock},
    file::{FileEvent, MANIFESTS, Part, part},
    kinds::unsupported,
    read::group::{self, GroupFiles},
    resource::ResourceKey,
    sql::{Cache, CacheKey, SqlAnalysis, SqlError, SqlParser},
};

/// The number of statements handed to the engine's parser at once, which bounds the memory for their trees.
const BATCH: usize = 256;

impl Project {
    /// Applies file events and updates resources and findings, asking `parser` only about statements it has not seen.
    /// The cost is proportional to what the events affect.
    pub fn apply(&mut self, events: impl IntoIterator<Item = FileEvent>, parser: &dyn SqlParser) -> Changes {
        // Before the events: crossing the limit, in either direction, changes what every file means.
        let was_over = self.files.over_limit();
        let first = self.manifest_trust.is_none();
        let changed = self.files.take(events);
        // An editor that saves what is there already, or a folder that is swept, asks the engine nothing.
        if changed.is_empty() && !first {
            return Changes::default();
        }
        let mut work = Work::default();
        self.sort_events(&changed, &mut work);
        if first || changed.iter().any(|path| MANIFESTS.contains(&path.as_str())) {
            self.settle_manifest(&mut work);
        }
        if self.files.over_limit() != was_over {
            self.touch_all(&mut work);
        }
        self.settle_limit(&mut work);
        self.settle_variables(&mut work);
        self.compile_groups(parser, &mut work);
        self.settle_engine(&mut work);
        self.settle_claims(&mut work);
        self.link_groups(parser, &mut work);
        self.settle_cycles(&mut work);
        self.settle_refs(&mut work);
        self.settle_fields(&mut work);
        self.changes(work)
    }

    fn sort_events(&self, changed: &BTreeSet<String>, work: &mut Work) {
        for path in changed {
            match part(path) {
                Some(Part::Member { stem }) => drop(work.groups.insert(stem)),
                Some(Part::Document { .. }) => drop(work.groups.insert(path.clone())),
                Some(Part::Env(_)) => drop(work.env_files.insert(path.clone())),
                Some(Part::Manifest) | None => {}
            }
        }
    }

    /// Marks all groups to be compiled again.
    pub(super) fn touch_all(&self, work: &mut Work) {
        work.groups.extend(self.groups.keys().cloned());
        for path in self.files.paths() {
            match part(path) {
                Some(Part::Member { stem }) => drop(work.groups.insert(stem)),
                Some(Part::Document { .. }) => drop(work.groups.insert(path.to_owned())),
                Some(Part::Manifest | Part::Env(_)) | None => {}
            }
        }
    }

    fn compile_groups(&mut self, parser: &dyn SqlParser, work: &mut Work) {
        let connectors = self.read_groups(work);
        if connectors {
            let drivers = self.connector_drivers();
            // What a connector is decides how others read their SQL and settings. Rare, so everything is read twice
            // rather than kept apart.
            if drivers != self.drivers {
                self.drivers = drivers;
                self.touch_all(work);
                self.read_groups(work);
            }
        }
        self.analyse(parser, work);
    }

    /// Compiles the marked groups again; returns true if a connector was added, removed or changed.
    fn read_groups(&mut self, work: &mut Work) -> bool {
        let keys: Vec<String> = work.groups.iter().cloned().collect();
        // What one group says does not depend on another.
        let read = lanes::map(&keys, |key| self.read_group(key));
        let mut connectors = false;
        for (key, group) in keys.iter().zip(read) {
            connectors |= self.replace_group(key, group, work);
        }
        connectors
    }

    /// Replaces a group by its new compilation; returns true if a connector was added, removed or changed.
    fn replace_group(&mut self, key: &str, read: Option<Group>, work: &mut Work) -> bool {
        // Taken back whole and entered whole. An edit of the difference would have to know all that a group may claim.
        let before = self.groups.remove(key);
        let connector_before = before.as_ref().and_then(|group| group.compiled.connector.clone());
        if let Some(group) = &before {
            self.withdraw(key, group, work);
        }
        let Some(group) = read else {
            self.report(Source::Group(key.to_owned()), Vec::new(), work);
            return connector_before.is_some();
        };
        let differs = group.compiled.connector != connector_before;
        self.groups.insert(key.to_owned(), group);
        differs
    }

    /// Removes the claims, outputs and reads of a group.
    fn withdraw(&mut self, key: &str, group: &Group, work: &mut Work) {
        for (index, draft) in group.compiled.drafts.iter().enumerate() {
            let name = ResourceKey::new(draft.kind, &draft.name);
            self.note_name(&name, work);
            self.claims.remove(&name, &claim(key, group, index, draft));
        }
        for (table, writer) in writers(key, group) {
            self.outputs.remove(&table, &writer);
            work.tables.insert(table);
        }
        for name in &group.reads {
            if let Some(readers) = self.readers.get_mut(name) {
                readers.remove(key);
                if readers.is_empty() {
                    self.readers.remove(name);
                }
            }
        }
    }

    /// Records the winner of a name, and its resource, from before the first change.
    fn note_name(&self, name: &ResourceKey, work: &mut Work) {
        if !work.names.contains_key(name) {
            work.names.insert(name.clone(), self.claims.winner(name).cloned());
        }
        if !work.before.contains_key(name) {
            work.before
                .insert(name.clone(), self.resources.get(name).cloned());
        }
    }

    fn read_group(&self, key: &str) -> Option<Group> {
        if self.files.over_limit() {
            return None;
        }
        if let Some(Part::Document { kind, name }) = part(key) {
            let _ = self.files.get(key)?;
            let mut findings = Findings::default();
            let draft = unsupported::document(kind, &name, &mut findings);
            let compiled = Compiled {
                drafts: vec![draft],
                findings,
                ..Compiled::default()
            };
            return Some(Group {
                yaml: Some(key.to_owned()),
                compiled,
                ..Group::default()
            });
        }
        let path = |end: &str| Some(format!("{key}{end}")).filter(|path| self.files.get(path).is_some());
        let (sql, yaml, yml) = (path(".sql"), path(".yaml"), path(".yml"));
        let yaml_role = |path: Option<String>| path.filter(|path| !MANIFESTS.contains(&path.as_str()));
        let (yaml, yml) = (yaml_role(yaml), yaml_role(yml));
        let (yaml, second_yaml) = match (yaml, yml) {
            (Some(yaml), yml) => (Some(yaml), yml),
            (None, yml) => (yml, None),
        };
        if sql.is_none() && yaml.is_none() {
            return None;
        }
        let content = |path: &'_ Option<String>| {
            path.as_deref()
                .and_then(|path| Some((path.to_owned(), self.files.get(path)?)))
        };
        let (sql_file, yaml_file) = (content(&sql), content(&yaml));
        let files = GroupFiles {
            stem: key,
            sql: sql_file.as_ref().map(|(path, content)| (path.as_str(), *content)),
            yaml: yaml_file
                .as_ref()
                .map(|(path, content)| (path.as_str(), *content)),
            second_yaml: second_yaml.is_some(),
        };
        let context = Context {
            environment: &self.options.environment,
            variables: &self.variables,
            are_variables_known: self.is_manifest_whole(),
            olap: self.olap_connector(),
            drivers: &self.drivers,
            manifest: &self.manifest,
            engine: self.engine(),
        };
        let compiled = group::compile(&files, &context);
        Some(Group {
            sql,
            yaml,
            second_yaml,
            compiled,
            ..Group::default()
        })
    }

    /// Returns drivers by connector name, the manifest's overridden by connector files; of several files, the smallest
    /// path wins.
    pub(super) fn connector_drivers(&self) -> BTreeMap<String, String> {
        let mut drivers = self.manifest.connectors.clone();
        let connectors = self
            .groups
            .values()
            .rev()
            .filter_map(|group| group.compiled.connector.clone());
        drivers.extend(connectors);
        drivers
    }

    /// Analyses the statements of touched groups, from the cache or by the parser in batches.
    fn analyse(&mut self, parser: &dyn SqlParser, work: &Work) {
        let version = parser.version().to_owned();
        self.parser_version.clone_from(&version);
        let touched: Vec<&String> = work
            .groups
            .iter()
            .filter(|key| self.groups.contains_key(*key))
            .collect();
        let cache_keys = lanes::map(&touched, |key| {
            let texts = self.groups.get(*key).into_iter().flat_map(statements);
            texts.map(|text| Cache::key(&version, text)).collect::<Vec<_>>()
        });
        let mut unknown = BTreeMap::new();
        for (key, cache_keys) in touched.iter().zip(&cache_keys) {
            let texts = self.groups.get(*key).into_iter().flat_map(statements);
            for (text, cache_key) in texts.zip(cache_keys) {
                if self.cache.get(*cache_key).is_none() {
                    unknown.insert(*cache_key, text.to_owned());
                }
            }
        }
        // By key, so that a text that stands in many files is parsed once.
        let unknown: Vec<_> = unknown.into_iter().collect();
        for batch in unknown.chunks(BATCH) {
            let texts: Vec<&str> = batch.iter().map(|(_, text)| text.as_str()).collect();
            let answered: Vec<_> = batch.iter().zip(parser.parse(&texts)).collect();
            let read = lanes::map(&answered, |((_, text), answer)| SqlAnalysis::read(text, answer));
            for (((cache_key, _), answer), analysis) in answered.into_iter().zip(read) {
                // What outlives the process lies in a file, where no value of a variable belongs.
                let is_told = self.variables.values().any(|value| analysis.quotes(value));
                let lasting = !matches!(answer, Err(SqlError::Failed { .. })) && !is_told;
                self.cache.insert(*cache_key, analysis, lasting);
            }
        }
        for (key, cache_keys) in touched.into_iter().zip(cache_keys) {
            if let Some(group) = self.groups.get_mut(key) {
                attach_analyses(group, &self.cache, cache_keys);
            }
        }
        if self.cache.has_many_spares() {
            let live = self.live_statements();
            self.cache.retain(&live);
        }
    }

    /// Returns the keys of all statements in the project.
    pub(super) fn live_statements(&self) -> BTreeSet<CacheKey> {
        let texts = self.groups.values().flat_map(statements);
        texts.map(|text| Cache::key(&self.parser_version, text)).collect()
    }

    /// Records the claims and reads of touched groups, and marks the groups that must be linked again.
    fn settle_claims(&mut self, work: &mut Work) {
        let keys: Vec<String> = work
            .groups
            .iter()
            .filter(|key| self.groups.contains_key(*key))
            .cloned()
            .collect();
        let entered = lanes::map(&keys, |key| {
            let group = self
                .groups
                .get(key)
                .map(|group| (super::link::reads(group), claims(key, group)));
            group.unwrap_or_default()
        });
        for (key, (reads, claims)) in keys.into_iter().zip(entered) {
            for name in &reads {
                self.readers.entry(name.clone()).or_default().insert(key.clone());
            }
            if let Some(group) = self.groups.get_mut(&key) {
                group.reads = reads;
            }
            for (name, claim) in claims {
                self.note_name(&name, work);
                self.claims.insert(name, claim);
            }
            let group = self.groups.get(&key).into_iter();
            for (table, writer) in group.flat_map(|group| writers(&key, group)).collect::<Vec<_>>() {
                self.outputs.insert(table, writer);
            }
            work.links.insert(key);
        }
        for (name, before) in &work.names {
            let now = self.claims.winner(name);
            let readers = self
                .readers
                .get(name)
                .filter(|_| before.is_some() != now.is_some());
            work.links.extend(readers.into_iter().flatten().cloned());
            // Those that lose say where the winner is declared.
            let is_shared = self.claims.claimants(name).nth(1).is_some();
            if before.as_ref() != now || is_shared {
                let groups = self.claims.claimants(name).map(|claim| &claim.group);
                let new = groups.filter(|group| !work.links.contains(*group)).cloned();
                work.links.extend(new.collect::<Vec<_>>());
            }
        }
        self.settle_outputs(work);
    }

    /// Marks the groups of models that compete, or competed, for a table.
    fn settle_outputs(&self, work: &mut Work) {
        let linked = work.links.iter().filter_map(|key| self.groups.get(key));
        let tables = linked.flat_map(outputs::tables).map(|(_, _, table)| table);
        work.tables.extend(tables.collect::<Vec<_>>());
        let groups = work.tables.iter().flat_map(|table| self.outputs.groups(table));
        let new = groups.filter(|group| !work.links.contains(*group)).cloned();
        work.links.extend(new.collect::<Vec<_>>());
    }

    fn link_groups(&mut self, parser: &dyn SqlParser, work: &mut Work) {
        let version = crate::resource::meaning::version(parser.version());
        let unclaimed: Vec<ResourceKey> = work
            .names
            .keys()
            .filter(|name| !self.claims.exists(name))
            .cloned()
            .collect();
        // Only here, after all claims are in: within one batch a file may have moved, and its name has another file now.
        for name in unclaimed {
            self.resources.remove(&name);
            self.dangling.remove(&name);
            self.relations.remove(&name);
        }
        let keys = std::mem::take(&mut work.links);
        self.link(keys, &version, work);
        let touched: BTreeSet<ResourceKey> = work.before.keys().cloned().collect();
        let again = self.relations.settle(&self.resources, &touched);
        let again = again.iter().filter_map(|name| self.claims.winner(name));
        self.link(again.map(|claim| claim.group.clone()).collect(), &version, work);
    }

    fn link(&mut self, keys: BTreeSet<String>, version: &Arc<str>, work: &mut Work) {
        for key in &keys {
            let drafts = self.groups.get(key).into_iter();
            let drafts = drafts.flat_map(|group| &group.compiled.drafts);
            let names: Vec<ResourceKey> = drafts
                .map(|draft| ResourceKey::new(draft.kind, &draft.name))
                .collect();
            names.iter().for_each(|name| self.note_name(name, work));
        }
        let names = (&self.claims, &self.outputs, &self.relations);
        let keys: Vec<String> = keys.into_iter().collect();
        let linked = lanes::map(&keys, |key| {
            self.groups
                .contains_key(key)
                .then(|| super::link::link(key, &self.groups, names, version, &self.manifest_path))
        });
        for (key, linked) in keys.into_iter().zip(linked) {
            let Some(linked) = linked else { continue };
            for resource in linked.resources {
                self.resources.insert(resource.key(), resource);
            }
            for (name, part) in linked.relations {
                self.relations.set(name, part);
            }
            for (name, dangling) in linked.dangling {
                if dangling.is_empty() {
                    self.dangling.remove(&name);
                } else {
                    self.dangling.insert(name, dangling);
                }
            }
            self.report(Source::Group(key), linked.diagnostics, work);
        }
    }

    fn settle_cycles(&mut self, work: &mut Work) {
        // After linking, for it is refs that close a cycle.
        let touched: BTreeSet<ResourceKey> = work.before.keys().cloned().collect();
        let cycles = super::cycles::find(&self.resources, &touched, &self.on_cycle);
        for (name, cycle) in cycles {
            if cycle.is_some() {
                self.on_cycle.insert(name.clone());
            } else {
                self.on_cycle.remove(&name);
            }
            if !work.before.contains_key(&name) {
                work.before
                    .insert(name.clone(), self.resources.get(&name).cloned());
            }
            let found = match (&cycle, self.resources.get(&name)) {
                (Some(cycle), Some(resource)) => {
                    let group = self
                        .claims
                        .winner(&name)
                        .and_then(|claim| self.groups.get(&claim.group));
                    group
                        .map(|group| super::cycles::diagnostic(resource, cycle, group))
                        .into_iter()
                        .collect()
                }
                _ => Vec::new(),
            };
            self.report(Source::Cycle(name.clone()), found, work);
            if let Some(resource) = self.resources.get_mut(&name) {
                resource.cycle = cycle;
            }
        }
    }

    /// Replaces the findings of a source.
    pub(super) fn report(&mut self, source: Source, mut found: Vec<Diagnostic>, work: &mut Work) {
        found.sort();
        found.dedup();
        let before = self.findings.remove(&source).unwrap_or_default();
        work.findings |= before != found;
        if !found.is_empty() {
            self.findings.insert(source, found);
        }
    }

    fn changes(&mut self, work: Work) -> Changes {
        let mut changes = Changes::default();
        for (name, before) in work.before {
            match (before, self.resources.get(&name)) {
                (None, Some(_)) => changes.added.push(name),
                (Some(_), None) => changes.removed.push(name),
                (Some(before), Some(now)) if before != *now => changes.changed.push(name),
                _ => {}
            }
        }
        if work.findings {
            let mut all: Vec<Diagnostic> = self.findings.values().flatten().cloned().collect();
            all.sort();
            all.dedup();
            shorten(&mut all);
            changes.diagnostics = all != self.diagnostics;
            self.diagnostics = all;
        }
        changes
    }
}

/// The number of places at which one key without effect is reported.
const MOST_PLACES: usize = 20;

/// Drops repeated findings about one key without effect, and notes on the last remaining one how many were dropped.
fn shorten(all: &mut Vec<Diagnostic>) {
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for found in all.iter().filter(|found| found.code == Code::NoEffectYet) {
        *told.entry(found.message.clone()).or_default() += 1;
    }
    told.retain(|_, times| *times > MOST_PLACES);
    if told.is_empty() {
        return;
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    all.retain_mut(|found| {
        let Some(times) = told
            .get(&found.message)
            .filter(|_| found.code == Code::NoEffectYet)
        else {
            return true;
        };
        let place = seen.entry(found.message.clone()).or_default();
        *place += 1;
        if *place == MOST_PLACES {
            found.hint = Some(format!("and at {} more places", times - MOST_PLACES));
        }
        *place <= MOST_PLACES
    });
}

/// Returns the names that a group claims, each with its claim.
fn claims(key: &str, group: &Group) -> Vec<(ResourceKey, Claim)> {
    let drafts = group.compiled.drafts.iter().enumerate();
    let claimed = drafts.map(|(index, draft)| {
        let name = ResourceKey::new(draft.kind, &draft.name);
        (name, claim(key, group, index, draft))
    });
    claimed.collect()
}

/// Returns the models of a group with the tables that they write.
fn writers(key: &str, group: &Group) -> Vec<(String, Writer)> {
    let drafts = &group.compiled.drafts;
    let writer = |(index, name, table)| {
        let claim = claim(key, group, index, drafts.get(index)?);
        Some((table, Writer { claim, key: name }))
    };
    outputs::tables(group).filter_map(writer).collect()
}

fn claim(key: &str, group: &Group, draft_index: usize, draft: &Draft) -> Claim {
    Claim {
        implicit: draft.implicit,
        path: group.first_path(),
        group: key.to_owned(),
        draft: draft_index,
    }
}

/// Assigns the analyses of statements to a group, by cache keys in the order of the statements.
fn attach_analyses(group: &mut Group, cache: &Cache, cache_keys: Vec<CacheKey>) {
    let mut found = cache_keys
        .into_iter()
        .map(|key| cache.get(key).unwrap_or_default());
    let of_block = |block: &SqlBlock, found: &mut dyn Iterator<Item = Arc<SqlAnalysis>>| {
        found.take(block.statements.len()).collect()
    };
    let of_draft = |draft: &Draft| {
        draft
            .blocks
            .iter()
            .map(|block| of_block(block, &mut found))
            .collect()
    };
    group.analyses = group.compiled.drafts.iter().map(of_draft).collect();
    group.judge();
}

fn statements(group: &Group) -> impl Iterator<Item = &str> {
    let blocks = group.compiled.drafts.iter().flat_map(|draft| &draft.blocks);
    blocks
        .flat_map(|block| &block.statements)
        .map(|one| one.text.as_str())
}
