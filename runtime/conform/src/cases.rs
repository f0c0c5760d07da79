//! The cases of the suite.

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

/// A case: behaviour that the runtime leans on.
pub(crate) struct Case {
    /// A sentence about behaviour.
    pub(crate) name: &'static str,
    /// The cells without which it does not hold.
    pub(crate) leans_on: &'static [Cell],
    /// The case itself.
    pub(crate) run: for<'f> fn(Bench<'f>) -> BoxFuture<'f, Verdict>,
}

/// Makes the list of a file's cases: each with the cells that it leans on.
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

/// Returns all cases.
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
