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
            /// Every kind, in the order of their names.
            pub const ALL: [Kind; [$($word),+].len()] = [$(Kind::$kind),+];

            /// The kind as project files, documents and the catalog write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word,)+
                }
            }

            /// Returns whether resources of the kind have a spec; the others are recognised and do nothing here.
            pub const fn has_spec(self) -> bool {
                match self {
                    $(Kind::$kind => declare!(@has $($spec)?),)+
                }
            }
        }

        /// Words that files write for kinds, for hints.
        pub(crate) const WORDS: [&str; Kind::ALL.len() + 1] = ["source", $($word),+];

        /// Returns the kind of a word that files write, in lower case.
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
    /// The kind that documents and the catalog write so.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether resources of the kind are run here.
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
