//! The kinds of resources.

use std::fmt;

use super::table::kinds;

macro_rules! declare {
    (@has) => { false };
    (@has $spec:ident) => { true };
    ($($(#[doc = $doc:literal])+ $kind:ident = $word:literal $(| $other:literal)* {
        $(keys: $module:ident::$keys:ident, spec: $spec:ident $(, defaults: $($key:literal)|+)?)?
    })+) => {
        /// A kind of resource that project files can declare.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $kind,)+
        }

        impl Kind {
            /// All kinds, in the order of their names.
            pub const ALL: [Kind; [$($word),+].len()] = [$(Kind::$kind),+];

            /// Returns the name of the kind in project files, documents and the catalog.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word,)+
                }
            }

            /// Returns true if resources of the kind have a spec; other kinds are recognised but do nothing.
            pub const fn has_spec(self) -> bool {
                match self {
                    $(Kind::$kind => declare!(@has $($spec)?),)+
                }
            }
        }

        /// The words for kinds in files, for hints.
        pub(crate) const WORDS: [&str; Kind::ALL.len() + 1] = ["source", $($word),+];

        /// Returns the kind for a word in files, in lower case.
        pub(super) fn from_word(word: &str) -> Option<Kind> {
            match word {
                $($word $(| $other)* => Some(Kind::$kind),)+
                _ => None,
            }
        }
    };
}

kinds!(declare);

impl Kind {
    /// Returns the kind of a name in documents and the catalog.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns true if resources of the kind can run.
    pub const fn is_supported(self) -> bool {
        self.has_spec()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_by_their_words() {
        assert!(Kind::ALL.is_sorted());
        assert!(Kind::ALL.map(Kind::as_str).is_sorted());
    }
}
