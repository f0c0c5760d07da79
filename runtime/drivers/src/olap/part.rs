//! Optional parts of an engine.

use std::fmt;

macro_rules! parts {
    ($($part:ident $word:literal $title:literal;)+) => {
        /// A part that an engine may lack.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Part {
            $(#[doc = concat!("Has ", $title, ".")] $part,)+
        }

        impl Part {
            /// All parts, in display order.
            pub const ALL: &[Self] = &[$(Self::$part),+];

            /// Returns the part's name in documents.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$part => $word,)+
                }
            }

            /// Returns the part's name in messages.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$part => $title,)+
                }
            }
        }
    };
}

parts! {
    Partitions "partitions" "stages of partitions";
    Trash "trash" "a trash";
    Migrations "migrations" "migrations";
    Hooks "hooks" "statements around builds";
    Databases "databases" "databases of other systems to read from";
    Elsewhere "elsewhere" "outputs in files and other databases";
    KeptRows "kept-rows" "rows that failed tests, kept";
    Upkeep "upkeep" "upkeep of its space";
    File "file" "a file of its own";
    CatalogCopies "catalog-copies" "copies of its catalog";
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
