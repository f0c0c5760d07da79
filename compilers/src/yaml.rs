//! YAML as nodes with their places in the file.
//!
//! A file becomes one [`Node`]: its first document, aliases and merge keys resolved, every node with its span.
//! Nesting, and what aliases may stand for, are bounded.

pub(crate) mod bounds;
mod fields;
mod joined;
pub(crate) mod keys;
mod load;
mod node;
mod scalar;
mod template;

pub(crate) use fields::{Fields, item, misspelled, unknown_key, word};
pub(crate) use keys::{Block, Key, Rest, Takes};
pub(crate) use load::load;
pub(crate) use node::{Data, Entry, Map, Node, Style, overlay};
