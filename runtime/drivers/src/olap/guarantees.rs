//! The promises of an engine: cell by cell, so that whoever leans on one can ask for it first.

use super::Part;

/// A promise of an engine, in words, and whether another engine promises more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// The way in which it is kept.
    pub how: &'static str,
    /// True if it is less than what the table of cells asks for.
    pub is_weaker: bool,
}

impl Promise {
    /// A promise that is all that is asked for.
    #[must_use]
    pub const fn kept(how: &'static str) -> Self {
        Self {
            how,
            is_weaker: false,
        }
    }

    /// A promise that is less than that.
    #[must_use]
    pub const fn weaker(how: &'static str) -> Self {
        Self { how, is_weaker: true }
    }
}

macro_rules! cells {
    ($($cell:ident $word:literal $title:literal;)+) => {
        /// A matter in which engines differ.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cell {
            $(#[doc = concat!("Whether, or how: ", $title, ".")] $cell,)+
        }

        impl Cell {
            /// All of them, in the order in which they are shown.
            pub const ALL: &[Self] = &[$(Self::$cell),+];

            /// Returns its name in documents.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$cell => $word,)+
                }
            }

            /// Returns it as people read it.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$cell => $title,)+
                }
            }
        }
    };
}

cells! {
    Appears "appears" "a build appears at once";
    Together "together" "several builds appear together";
    OneBuild "one-build" "one statement sees one build";
    Tag "tag" "a tag says whose an output is";
    Record "record" "the record changes with its output";
    Types "types" "outputs hold what queries yield";
    Step "step" "a step is whole or absent";
    Names "names" "renames and drops are whole";
    Checks "checks" "checks see new rows as the output";
    Durable "durable" "what is done outlives a crash";
    Crash "crash" "a crash leaves nothing half done";
    Readers "readers" "readers are always served";
    Fence "fence" "a former owner changes nothing more";
    Cancel "cancel" "work ends when it is cancelled";
}

/// All that an engine promises, and the parts that it has.
#[derive(Debug, Clone, Copy)]
pub struct Guarantees {
    /// The driver, as connectors name it.
    pub driver: &'static str,
    /// True if models can be built in it.
    pub builds: bool,
    promises: fn(Cell) -> Promise,
    parts: &'static [Part],
}

impl Guarantees {
    /// The guarantees of a driver in which nothing can be built.
    #[must_use]
    pub const fn nothing(driver: &'static str) -> Self {
        Self {
            driver,
            builds: false,
            promises: |_| Promise::weaker("not at all"),
            parts: &[],
        }
    }

    /// The guarantees of a driver: a promise for each cell, and the parts that it has.
    #[must_use]
    pub const fn new(driver: &'static str, promises: fn(Cell) -> Promise, parts: &'static [Part]) -> Self {
        Self {
            driver,
            builds: true,
            promises,
            parts,
        }
    }

    /// Returns the promise of a cell.
    #[must_use]
    pub fn promise(&self, cell: Cell) -> Promise {
        (self.promises)(cell)
    }

    /// Returns true if a cell is kept as it is asked for.
    #[must_use]
    pub fn keeps(&self, cell: Cell) -> bool {
        !self.promise(cell).is_weaker
    }

    /// Returns true if the engine has a part.
    #[must_use]
    pub fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<_> = Cell::ALL.iter().map(|cell| cell.as_str()).collect();
        assert_eq!(names.len(), Cell::ALL.len());
    }

    #[test]
    fn a_cell_that_is_weaker_is_not_kept() {
        let promises = |cell| match cell {
            Cell::Together => Promise::weaker("one by one"),
            _ => Promise::kept("one transaction"),
        };
        let guarantees = Guarantees::new("some", promises, &[Part::Trash]);
        assert!(guarantees.keeps(Cell::Appears) && !guarantees.keeps(Cell::Together));
        assert!(guarantees.has(Part::Trash) && !guarantees.has(Part::Hooks));
    }
}
