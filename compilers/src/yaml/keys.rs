//! Tables of the keys that mappings accept.
//!
//! A table says of each key what it takes, what it means and, where it is an old name, the key to use instead. The
//! reader of a kind refuses or reports other keys by it, and JSON Schemas and the completion of editors are made of it.

/// The keys that a mapping accepts.
#[derive(Debug)]
pub(crate) struct Block {
    /// The label of the block, by which schemas refer to it.
    pub(crate) name: &'static str,
    /// The keys listed in the block itself.
    pub(crate) own: &'static [Key],
    /// Lists of keys shared with other blocks.
    pub(crate) added: &'static [&'static [Key]],
    /// The treatment of unlisted keys.
    pub(crate) rest: Rest,
}

/// The treatment of keys that a block does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Unlisted keys are errors.
    Refused,
    /// Unlisted keys are kept and passed on.
    Kept,
}

/// A key that a mapping accepts.
#[derive(Debug)]
pub(crate) struct Key {
    /// The key, as files write it.
    pub(crate) name: &'static str,
    /// The sort of values that the key takes.
    pub(crate) takes: Takes,
    /// The meaning of the key, in a sentence.
    pub(crate) meaning: &'static str,
    /// The key to use instead, if this one is deprecated.
    pub(crate) instead: Option<&'static str>,
}

/// The sort of values that a key takes.
#[derive(Debug)]
pub(crate) enum Takes {
    /// Any value, of any type.
    Any,
    /// A text; other scalars are taken as written.
    Text,
    /// A boolean: `true` or `false`.
    Bool,
    /// An integer of at least 0.
    Count,
    /// A duration: seconds, or a text such as `1h30m` or `PT1H30M`.
    Duration,
    /// A word out of the given words.
    Word(&'static [&'static str]),
    /// A text, or a list of texts.
    Texts,
    /// A text that is parsed as SQL.
    Sql,
    /// The name of a resource of the given kind.
    Name(&'static str),
    /// A mapping with the keys of a block.
    Block(&'static Block),
    /// A mapping from arbitrary names to values.
    Map(&'static Takes),
    /// A list whose elements are all of the given sort.
    List(&'static Takes),
    /// A value of one of several sorts.
    Either(&'static [Takes]),
}

impl Block {
    /// Returns all keys, including shared and deprecated ones.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.own.iter().chain(self.added.iter().copied().flatten())
    }

    /// Returns the names of all keys, including deprecated ones.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys().map(|key| key.name)
    }

    /// Returns the names of keys that are not deprecated.
    pub(crate) fn current(&self) -> impl Iterator<Item = &'static str> + use<> {
        let current = self.keys().filter(|key| key.instead.is_none());
        current.map(|key| key.name)
    }

    /// Returns the key of a name, if the block has it.
    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// Defines blocks of keys: `static NAME = "label" Refused { "key": Text, "meaning"; "old": Text, "meaning" => "key";
/// }`. `Refused + KEYS` adds a list of shared keys, and may be repeated.
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
