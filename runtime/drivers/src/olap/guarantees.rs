//! Guarantees of an engine, one promise per matter, so that callers can check a promise before relying on it.

use super::Part;

/// A promise of an engine about one matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promise {
    /// Description of how the promise is kept.
    pub how: &'static str,
    /// True if the promise is weaker than the title of the cell says.
    pub is_weaker: bool,
}

impl Promise {
    /// Creates a promise that is kept in full.
    #[must_use]
    pub const fn kept(how: &'static str) -> Self {
        Self {
            how,
            is_weaker: false,
        }
    }

    /// Creates a promise that is weaker than the title of the cell says.
    #[must_use]
    pub const fn weaker(how: &'static str) -> Self {
        Self { how, is_weaker: true }
    }
}

macro_rules! cells {
    ($($cell:ident $word:literal $title:literal;)+) => {
        /// A matter about which each engine makes a promise.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Cell {
            $(#[doc = concat!("Whether, or how: ", $title, ".")] $cell,)+
        }

        impl Cell {
            /// All cells, in display order.
            pub const ALL: &[Self] = &[$(Self::$cell),+];

            /// Returns the cell's name in documents.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$cell => $word,)+
                }
            }

            /// Returns the cell's title for people.
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

/// All promises of an engine, and its optional parts.
#[derive(Debug, Clone, Copy)]
pub struct Guarantees {
    /// Driver's name in connectors.
    pub driver: &'static str,
    /// True if models can be built in the engine.
    pub builds: bool,
    promises: fn(Cell) -> Promise,
    parts: &'static [Part],
}

impl Guarantees {
    /// Returns the guarantees of a driver in which nothing can be built.
    #[must_use]
    pub const fn nothing(driver: &'static str) -> Self {
        Self {
            driver,
            builds: false,
            promises: |_| Promise::weaker("not at all"),
            parts: &[],
        }
    }

    /// Creates the guarantees of a driver from a promise for each cell and its optional parts.
    #[must_use]
    pub const fn new(driver: &'static str, promises: fn(Cell) -> Promise, parts: &'static [Part]) -> Self {
        Self {
            driver,
            builds: true,
            promises,
            parts,
        }
    }

    /// Returns the promise about a cell.
    #[must_use]
    pub fn promise(&self, cell: Cell) -> Promise {
        (self.promises)(cell)
    }

    /// Returns true if the promise about a cell is kept in full.
    #[must_use]
    pub fn keeps(&self, cell: Cell) -> bool {
        !self.promise(cell).is_weaker
    }

    /// Returns true if the engine has an optional part.
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
