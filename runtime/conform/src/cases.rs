//! Test cases of the suite, one module per subject.

mod builds;
mod cancels;
mod checks;
mod crashes;
mod drops;
mod fences;
mod foreign;
mod names;
mod readers;
mod records;
mod renames;
mod steps;

use futures::future::BoxFuture;
use watershed_drivers::olap::Cell;

use crate::bench::{Bench, Verdict};

/// One behaviour of an engine on which the runtime relies.
pub(crate) struct Case {
    /// The behaviour as a sentence; also the identifier of the case.
    pub(crate) name: &'static str,
    /// Cells of the guarantees on which the case depends; skipped if the engine keeps less of them.
    pub(crate) leans_on: &'static [Cell],
    /// The test function.
    pub(crate) run: for<'f> fn(Bench<'f>) -> BoxFuture<'f, Verdict>,
}

/// Declares the cases of a file, each with the cells on which it depends.
macro_rules! cases {
    ($($case:ident: $($cell:ident),+;)+) => {
        /// Returns the cases of this file.
        pub(super) fn all() -> Vec<$crate::cases::Case> {
            vec![$($crate::cases::Case {
                name: stringify!($case),
                leans_on: &[$(::watershed_drivers::olap::Cell::$cell),+],
                run: |bench| ::futures::FutureExt::boxed($case(bench)),
            }),+]
        }
    };
}
use cases;

/// Returns the cases of all files, in a fixed order.
pub(crate) fn all() -> impl Iterator<Item = Case> {
    let files = [
        builds::all(),
        checks::all(),
        records::all(),
        steps::all(),
        renames::all(),
        drops::all(),
        foreign::all(),
        names::all(),
        cancels::all(),
        readers::all(),
        crashes::all(),
        fences::all(),
    ];
    files.into_iter().flatten()
}
