//! Tables of the keys that mappings take.
//!
//! A table says of each key what it takes, what it means and, where it is an old name, the key to use instead. The
//! reader of a kind refuses or reports other keys by it, and JSON Schemas and the completion of editors are made of it.

/// A mapping and its keys.
#[derive(Debug)]
pub(crate) struct Block {
    /// The name by which schemas refer to it.
    pub(crate) name: &'static str,
    /// The keys of its own.
    pub(crate) own: &'static [Key],
    /// Keys that other tables add.
    pub(crate) added: &'static [&'static [Key]],
    /// The treatment of other keys.
    pub(crate) rest: Rest,
}

/// The treatment of keys that a table does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// They are errors.
    Refused,
    /// They are kept and passed on.
    Kept,
}

/// A key of a mapping.
#[derive(Debug)]
pub(crate) struct Key {
    /// The key.
    pub(crate) name: &'static str,
    /// Its values.
    pub(crate) takes: Takes,
    /// Its meaning, in a sentence.
    pub(crate) meaning: &'static str,
    /// The key to use instead, if this one is an old name.
    pub(crate) instead: Option<&'static str>,
}

/// The values that a key takes.
#[derive(Debug)]
pub(crate) enum Takes {
    /// Anything.
    Any,
    /// Text, or another scalar as it is written.
    Text,
    /// True or false.
    Bool,
    /// A whole number from 0 up.
    Count,
    /// Seconds, or a duration such as `1h30m` or `PT1H30M`.
    Duration,
    /// One of some words.
    Word(&'static [&'static str]),
    /// A text, or a list of texts.
    Texts,
    /// SQL.
    Sql,
    /// The name of a resource of a kind, as project files write it.
    Name(&'static str),
    /// A mapping with known keys.
    Block(&'static Block),
    /// A mapping of names to values.
    Map(&'static Takes),
    /// A list.
    List(&'static Takes),
    /// One of several.
    Either(&'static [Takes]),
}

impl Block {
    /// Returns all keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.own.iter().chain(self.added.iter().copied().flatten())
    }

    /// Returns the names of all keys, old names included.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys().map(|key| key.name)
    }

    /// Returns the names that are in use today: what a misspelled key is compared with.
    pub(crate) fn current(&self) -> impl Iterator<Item = &'static str> + use<> {
        let current = self.keys().filter(|key| key.instead.is_none());
        current.map(|key| key.name)
    }

    /// Returns the key of a name.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// Makes tables of keys: `static NAME = "label" Refused { "key": Text, "meaning"; "old": Text, "meaning" => "key"; }`.
/// `Refused + KEYS` adds those of another table, and so on for more.
macro_rules! blocks {
    ($($(#[doc = $doc:literal])+ $vis:vis static $name:ident = $label:literal $rest:ident $(+ $added:path)* {
        $($key:literal: $takes:expr, $meaning:literal $(=> $instead:literal)?;)*
    })+) => {
        $(
            $(#[doc = $doc])+
            $vis static $name: $crate::yaml::Block = $crate::yaml::Block {
                name: $label,
                rest: $crate::yaml::Rest::$rest,
                own: {
                    #[allow(unused_imports, reason = "a table may need none")]
                    use $crate::yaml::Takes::*;
                    &[$($crate::yaml::Key {
                        name: $key,
                        takes: $takes,
                        meaning: $meaning,
                        instead: $crate::yaml::keys::blocks!(@instead $($instead)?),
                    }),*]
                },
                added: &[$($added),*],
            };
        )+
    };
    (@instead) => { None };
    (@instead $instead:literal) => { Some($instead) };
}

pub(crate) use blocks;
