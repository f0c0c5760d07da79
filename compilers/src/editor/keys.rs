//! Tables of keys, followed along the way to a place.

use crate::{
    kinds::{self, COMMON},
    read::manifest::MANIFEST,
    resource::Kind,
    yaml::{Block, Key, Takes},
};

/// The tables that count at a place.
#[derive(Debug, Clone)]
pub(super) enum Level {
    /// The keys of mappings.
    Blocks(Vec<&'static Block>),
    /// The values that a key takes.
    Takes(Vec<&'static Takes>),
    /// Keys of any name, each with the tables of the whole file.
    Environments(Vec<&'static Block>),
}

/// The tables of a file: of a kind, or of the manifest.
fn top(kind: Option<Kind>) -> Vec<&'static Block> {
    match kind {
        Some(kind) => kinds::keys(kind).into_iter().chain([&COMMON]).collect(),
        None => vec![&MANIFEST],
    }
}

/// The kind whose defaults a key of the manifest holds.
fn kind_of_defaults(key: &str) -> Option<Kind> {
    match key {
        "models" | "sources" => Some(Kind::Model),
        _ => kinds::kind_of_defaults(key),
    }
}

/// Follows a way from the top of a file.
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

/// Returns the sorts of values that a key below a value takes.
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
    /// The keys that may stand there.
    pub(super) fn keys(&self) -> Vec<&'static Key> {
        match self {
            Level::Blocks(blocks) => blocks.iter().flat_map(|block| block.keys()).collect(),
            Level::Takes(takes) => takes.iter().flat_map(|takes| keys_of(takes)).collect(),
            Level::Environments(_) => Vec::new(),
        }
    }

    /// The sorts of single values that may stand there.
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
