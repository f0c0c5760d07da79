//! Conformance suite for engines: the behaviour on which the runtime relies, tested on an engine that a [`Factory`]
//! opens.
//!
//! | start at | for |
//! |---|---|
//! | [`conform`] | running all of it; its [`Report`] names each case and how it ended |
//! | [`Factory`], [`Scratch`], [`Person`] | what whoever brings an engine writes: opening it on fresh data, and what others do there |
//! | [`Layer`] | an engine in front of another one, for tests of whoever calls engines |
//! | `cases` | the cases, a noun each |
//!
//! A case names the cells of the [`Guarantees`](watershed_drivers::olap::Guarantees) that it leans on. Where an engine says that it keeps one of them less
//! than whole, the case is left out, and the report says so by the names of both.

mod bench;
mod cases;
mod factory;
mod layer;
mod report;

pub use factory::{Factory, Image, Images, NotTried, Person, Rival, Scratch};
pub use layer::{Layer, Layered};
pub use report::{CaseEnd, CaseReport, Report};

use bench::{Bench, Wrong};
use cases::Case;

/// Runs all cases against an engine, each on fresh data. Skips only cases about guarantees that the engine does not
/// give in full.
pub async fn conform(factory: &dyn Factory) -> Report {
    conform_in(factory, |_| true).await
}

/// Runs the cases whose names `is_wanted` accepts, as [`conform`] does.
pub async fn conform_in(factory: &dyn Factory, is_wanted: impl Fn(&str) -> bool) -> Report {
    let guarantees = factory.guarantees();
    let mut cases = Vec::new();
    for case in cases::all().filter(|case| is_wanted(case.name)) {
        let missing: Vec<_> = case
            .leans_on
            .iter()
            .filter(|cell| !guarantees.keeps(**cell))
            .copied()
            .collect();
        let end = match missing.is_empty() {
            true => run(factory, &case).await,
            false => CaseEnd::LeftOut(missing),
        };
        cases.push(CaseReport {
            name: case.name,
            leans_on: case.leans_on,
            end,
        });
    }
    Report {
        driver: guarantees.driver,
        cases,
    }
}

async fn run(factory: &dyn Factory, case: &Case) -> CaseEnd {
    let bench = match Bench::new(factory).await {
        Ok(bench) => bench,
        Err(wrong) => return end(wrong),
    };
    let done = (case.run)(bench).await;
    done.map_or_else(end, |()| CaseEnd::Passed)
}

fn end(wrong: Wrong) -> CaseEnd {
    match wrong {
        Wrong::Found(difference) => CaseEnd::Failed(difference),
        Wrong::NotTried(why) => CaseEnd::NotTried(why),
    }
}
