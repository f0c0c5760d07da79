//! Analyses by text, for this process and, exported, for the next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use prost::Message;

use super::SqlAnalysis;

/// Begins every exported cache; changes with what an analysis holds.
const MAGIC: &[u8] = b"watershed sql 1\n";

/// Stands for a text and the parser that reads it.
pub(crate) type CacheKey = [u8; 16];

/// Analyses by text.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    analyses: BTreeMap<CacheKey, Arc<SqlAnalysis>>,
    used: BTreeSet<CacheKey>,
    imported: usize,
    learned: bool,
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

    pub(crate) fn get(&mut self, key: CacheKey) -> Option<Arc<SqlAnalysis>> {
        let found = self.analyses.get(&key)?;
        self.used.insert(key);
        Some(Arc::clone(found))
    }

    pub(crate) fn insert(&mut self, key: CacheKey, analysis: SqlAnalysis) {
        self.learned = true;
        self.used.insert(key);
        self.analyses.insert(key, Arc::new(analysis));
    }

    /// What was used since the start, as bytes; `None` when that is just what was imported.
    pub(crate) fn export(&self) -> Option<Vec<u8>> {
        if !self.learned && self.used.len() == self.imported {
            return None;
        }
        let entries = self.used.iter().filter_map(|key| {
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

    /// Adds what an earlier process exported; bytes that are damaged or of another version are ignored.
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
        self.imported = exported.entries.len();
        for entry in exported.entries {
            if let (Ok(key), Some(analysis)) = (CacheKey::try_from(entry.key.as_slice()), entry.analysis) {
                self.analyses.entry(key).or_insert_with(|| Arc::new(analysis));
            }
        }
    }
}

/// The first half of a hash: 128 bits are enough against accident, and texts have no other adversary.
pub(crate) fn digest(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_exported_is_there_after_an_import_and_not_exported_again() {
        let key = Cache::key("engine 1", "SELECT 1");
        let analysis = SqlAnalysis {
            statements: 1,
            ..SqlAnalysis::default()
        };
        let mut first = Cache::default();
        first.insert(key, analysis.clone());
        let bytes = first.export().expect("something was learned");

        let mut second = Cache::default();
        second.import(&bytes);
        assert_eq!(second.get(key).as_deref(), Some(&analysis));
        assert_eq!(second.export(), None);
        assert!(second.get(Cache::key("engine 2", "SELECT 1")).is_none());
    }

    #[test]
    fn damaged_bytes_are_ignored() {
        let mut cache = Cache::default();
        cache.insert(Cache::key("e", "a"), SqlAnalysis::default());
        let mut bytes = cache.export().expect("something was learned");
        if let Some(last) = bytes.last_mut() {
            *last ^= 1;
        }
        let mut other = Cache::default();
        other.import(&bytes);
        other.import(b"");
        other.import(b"something else");
        assert!(other.get(Cache::key("e", "a")).is_none());
    }

    #[test]
    fn what_is_no_longer_used_is_dropped_by_the_next_export() {
        let mut first = Cache::default();
        first.insert(Cache::key("e", "a"), SqlAnalysis::default());
        first.insert(Cache::key("e", "b"), SqlAnalysis::default());
        let mut second = Cache::default();
        second.import(&first.export().expect("learned"));
        second.get(Cache::key("e", "a")).expect("imported");
        let mut third = Cache::default();
        third.import(&second.export().expect("one entry is no longer used"));
        assert!(third.get(Cache::key("e", "b")).is_none());
    }
}
