//! The cache of analyses by text, which can be exported for the next process.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;

use super::{analysis::SqlAnalysis, digest::digest};

/// The first bytes of an exported cache; must change with the content of analyses.
const MAGIC: &[u8] = b"watershed sql 3\n";

/// The number of new analyses after which those of removed texts are dropped. Until then, undoing an edit costs
/// nothing.
const MAX_SPARE: usize = 256;

/// The number of new analyses after which an export is worthwhile; fewer are computed again by the next process.
const MAX_UNEXPORTED: usize = 64;

/// The digest of a text and of the version of the parser.
pub(crate) type CacheKey = [u8; 16];

/// The cached analyses, by text and parser.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    analyses: BTreeMap<CacheKey, Arc<SqlAnalysis>>,
    /// The keys of the last export or import.
    exported: BTreeSet<CacheKey>,
    /// The number of lasting entries since the last export; none before the first.
    unexported: Option<usize>,
    /// Keys of analyses that must not be exported.
    passing: BTreeSet<CacheKey>,
    /// The number of entries left after the last call of [`retain`](Self::retain).
    retained: usize,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Exported {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<ExportedEntry>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExportedEntry {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    analysis: Option<SqlAnalysis>,
}

impl Cache {
    pub(crate) fn key(parser_version: &str, text: &str) -> CacheKey {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(parser_version.len() as u64).to_le_bytes());
        hasher.update(parser_version.as_bytes()).update(text.as_bytes());
        digest(&hasher)
    }

    pub(crate) fn get(&self, key: CacheKey) -> Option<Arc<SqlAnalysis>> {
        self.analyses.get(&key).map(Arc::clone)
    }

    /// Adds an analysis, which is exported only if `lasting`.
    pub(crate) fn insert(&mut self, key: CacheKey, analysis: SqlAnalysis, lasting: bool) {
        if !lasting {
            self.passing.insert(key);
        } else if let Some(count) = &mut self.unexported {
            *count += 1;
        }
        self.analyses.insert(key, Arc::new(analysis));
    }

    /// Returns true if many analyses were added since the last [`retain`](Self::retain), so that another call is due.
    pub(crate) fn has_many_spares(&self) -> bool {
        self.analyses.len() > self.retained + MAX_SPARE
    }

    /// Drops the analyses whose key is not in `live`.
    pub(crate) fn retain(&mut self, live: &BTreeSet<CacheKey>) {
        self.analyses.retain(|key, _| live.contains(key));
        self.passing.retain(|key| live.contains(key));
        self.retained = self.analyses.len();
    }

    /// Returns true if there was no export yet, or many analyses were added since.
    pub(crate) fn is_worth_an_export(&self) -> bool {
        self.unexported.is_none_or(|count| count >= MAX_UNEXPORTED)
    }

    /// Exports the analyses of the keys in `live`; none if these were just imported or exported.
    pub(crate) fn export(&mut self, live: &BTreeSet<CacheKey>) -> Option<Vec<u8>> {
        self.unexported = Some(0);
        if *live == self.exported {
            return None;
        }
        self.exported.clone_from(live);
        let entries = live.difference(&self.passing).filter_map(|key| {
            let analysis = self.analyses.get(key)?;
            Some(ExportedEntry {
                key: key.to_vec(),
                analysis: Some(SqlAnalysis::clone(analysis)),
            })
        });
        let body = Exported {
            entries: entries.collect(),
        }
        .encode_to_vec();
        let check = blake3::hash(&body);
        Some([MAGIC, check.as_bytes(), &body].concat())
    }

    /// Imports analyses of an earlier process; damaged bytes and other versions are ignored.
    pub(crate) fn import(&mut self, bytes: &[u8]) {
        let Some((check, body)) = bytes
            .strip_prefix(MAGIC)
            .and_then(|rest| rest.split_at_checked(32))
        else {
            return;
        };
        if blake3::hash(body).as_bytes() != check {
            return;
        }
        let Ok(exported) = Exported::decode(body) else {
            return;
        };
        for entry in exported.entries {
            if let (Ok(key), Some(analysis)) = (CacheKey::try_from(entry.key.as_slice()), entry.analysis) {
                self.exported.insert(key);
                self.analyses.entry(key).or_insert_with(|| Arc::new(analysis));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(texts: &[&str]) -> (Cache, BTreeSet<CacheKey>) {
        let mut cache = Cache::default();
        let keys: BTreeSet<_> = texts.iter().map(|text| Cache::key("engine 1", text)).collect();
        for key in &keys {
            cache.insert(
                *key,
                SqlAnalysis {
                    statements: 1,
                    ..SqlAnalysis::default()
                },
                true,
            );
        }
        (cache, keys)
    }

    #[test]
    fn what_was_exported_is_there_after_an_import_and_not_exported_again() {
        let (mut first, keys) = cache(&["a", "b"]);
        let bytes = first.export(&keys).expect("something was learned");
        let mut second = Cache::default();
        second.import(&bytes);
        assert!(
            keys.iter()
                .all(|key| second.get(*key).is_some_and(|found| found.statements == 1))
        );
        assert_eq!(second.export(&keys), None);
        assert!(second.get(Cache::key("engine 2", "a")).is_none());
    }

    #[test]
    fn a_few_new_analyses_are_not_worth_an_export() {
        let (mut cache, mut live) = cache(&["a"]);
        assert!(cache.is_worth_an_export(), "the first");
        cache.export(&live).expect("something was learned");
        for n in 0..MAX_UNEXPORTED {
            assert!(!cache.is_worth_an_export(), "after {n}");
            let key = Cache::key("engine 1", &format!("edit {n}"));
            cache.insert(key, SqlAnalysis::default(), true);
            live.insert(key);
        }
        assert!(cache.is_worth_an_export());
        assert!(cache.export(&live).is_some());
        assert!(!cache.is_worth_an_export());
    }

    #[test]
    fn spare_analyses_are_bounded() {
        let (mut cache, live) = cache(&["a", "b"]);
        for n in 0..10_000 {
            cache.insert(
                Cache::key("engine 1", &n.to_string()),
                SqlAnalysis::default(),
                true,
            );
            if cache.has_many_spares() {
                cache.retain(&live);
            }
            assert!(cache.analyses.len() <= live.len() + MAX_SPARE);
        }
    }

    #[test]
    fn damaged_bytes_are_ignored() {
        let (mut first, keys) = cache(&["a"]);
        let mut bytes = first.export(&keys).expect("something was learned");
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let mut other = Cache::default();
        [bytes.as_slice(), b"", b"something else"]
            .iter()
            .for_each(|bytes| other.import(bytes));
        assert_eq!(other.analyses.len(), 0);
    }

    #[test]
    fn what_is_no_longer_used_is_dropped_by_the_next_export() {
        let (mut first, keys) = cache(&["a", "b"]);
        let mut second = Cache::default();
        second.import(&first.export(&keys).expect("learned"));
        let live = BTreeSet::from([Cache::key("engine 1", "a")]);
        let mut third = Cache::default();
        third.import(&second.export(&live).expect("one entry is no longer used"));
        assert_eq!(third.analyses.len(), 1);
    }
}
