//! Lookup of the keys and values that may stand at a path of a file.

use crate::{
    kinds::{self, COMMON},
    read::manifest::MANIFEST,
    resource::Kind,
    yaml::{Block, Key, Takes},
};

/// The keys or values that may stand at a path.
#[derive(Debug, Clone)]
pub(super) enum Level {
    /// The blocks of keys of a mapping.
    Blocks(Vec<&'static Block>),
    /// The sorts of values of a key.
    Takes(Vec<&'static Takes>),
    /// The blocks below arbitrary keys, the names of environments.
    Environments(Vec<&'static Block>),
}

/// Returns the blocks at the top of a file of a kind, or of the manifest if there is none.
fn top(kind: Option<Kind>) -> Vec<&'static Block> {
    match kind {
        Some(kind) => kinds::keys(kind).into_iter().chain([&COMMON]).collect(),
        None => vec![&MANIFEST],
    }
}

/// Returns the kind whose defaults a key of the manifest holds.
fn kind_of_defaults(key: &str) -> Option<Kind> {
    match key {
        "models" | "sources" => Some(Kind::Model),
        _ => kinds::kind_of_defaults(key),
    }
}

/// Returns the level at a path of keys from the top of a file.
pub(super) fn follow(kind: Option<Kind>, path: &[&str]) -> Level {
    let top = top(kind);
    let mut level = Level::Blocks(top.clone());
    for key in path {
        level = match level {
            Level::Environments(blocks) => Level::Blocks(blocks),
            Level::Blocks(blocks) => below(&blocks, kind, key, &top),
            Level::Takes(takes) => {
                let found = takes.iter().flat_map(|takes| step(takes, key));
                Level::Takes(found.collect())
            }
        };
    }
    level
}

fn below(blocks: &[&'static Block], kind: Option<Kind>, key: &str, top: &[&'static Block]) -> Level {
    match key {
        "dev" | "prod" => return Level::Blocks(top.to_vec()),
        "environment_overrides" => return Level::Environments(top.to_vec()),
        "env" if kind.is_some() => return Level::Environments(top.to_vec()),
        _ => {}
    }
    if let (None, Some(kind)) = (kind, kind_of_defaults(key)) {
        return Level::Blocks(kinds::keys(kind).into_iter().collect());
    }
    let found = blocks.iter().find_map(|block| block.key(key));
    Level::Takes(found.map(|found| &found.takes).into_iter().collect())
}

/// Returns the sorts of values of the key `key` inside a value.
fn step(takes: &'static Takes, key: &str) -> Vec<&'static Takes> {
    match takes {
        Takes::Block(block) => block.key(key).map(|key| &key.takes).into_iter().collect(),
        Takes::Map(inner) => vec![inner],
        Takes::List(inner) => step(inner, key),
        Takes::Either(ways) => ways.iter().flat_map(|way| step(way, key)).collect(),
        _ => Vec::new(),
    }
}

impl Level {
    /// Returns the keys that may stand at the level.
    pub(super) fn keys(&self) -> Vec<&'static Key> {
        match self {
            Level::Blocks(blocks) => blocks.iter().flat_map(|block| block.keys()).collect(),
            Level::Takes(takes) => takes.iter().flat_map(|takes| keys_of(takes)).collect(),
            Level::Environments(_) => Vec::new(),
        }
    }

    /// Returns the sorts of scalar values that may stand at the level.
    pub(super) fn values(&self) -> Vec<&'static Takes> {
        match self {
            Level::Takes(takes) => takes.iter().flat_map(|takes| values_of(takes)).collect(),
            Level::Blocks(_) | Level::Environments(_) => Vec::new(),
        }
    }
}

fn keys_of(takes: &'static Takes) -> Vec<&'static Key> {
    match takes {
        Takes::Block(block) => block.keys().collect(),
        Takes::List(inner) => keys_of(inner),
        Takes::Either(ways) => ways.iter().flat_map(keys_of).collect(),
        _ => Vec::new(),
    }
}

fn values_of(takes: &'static Takes) -> Vec<&'static Takes> {
    match takes {
        Takes::List(inner) => values_of(inner),
        Takes::Either(ways) => ways.iter().flat_map(values_of).collect(),
        Takes::Block(_) | Takes::Map(_) => Vec::new(),
        single => vec![single],
    }
}
