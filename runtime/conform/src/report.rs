//! The report of a run of the suite.

use std::fmt;

use watershed_drivers::olap::Cell;

use crate::NotTried;

/// The results of all cases of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Name of the driver under test.
    pub driver: &'static str,
    /// Results of the cases, in their order of execution.
    pub cases: Vec<CaseReport>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// The tested behaviour as a sentence.
    pub name: &'static str,
    /// Cells of the guarantees that the behaviour leans on.
    pub leans_on: &'static [Cell],
    /// Outcome of the case.
    pub end: CaseEnd,
}

/// Outcome of a case: passed, left out, not tried or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseEnd {
    /// The engine behaves as its guarantees say.
    Passed,
    /// Not run, since the engine gives these guarantees less than in full.
    LeftOut(Vec<Cell>),
    /// Not run to its end, since the data at hand do not allow to try it. Says nothing of the engine.
    NotTried(NotTried),
    /// The engine's behaviour differs from the expected one; the difference as text.
    Failed(String),
}

impl Report {
    /// Returns the names of the cases that failed.
    #[must_use]
    pub fn failed(&self) -> Vec<&'static str> {
        let failed = self
            .cases
            .iter()
            .filter(|case| matches!(case.end, CaseEnd::Failed(_)));
        failed.map(|case| case.name).collect()
    }

    /// Returns true if no case failed.
    #[must_use]
    pub fn conforms(&self) -> bool {
        self.failed().is_empty()
    }

    /// Returns true if each case was tried, but for those that are left out.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_open = |case: &CaseReport| matches!(case.end, CaseEnd::NotTried(_));
        !self.cases.iter().any(is_open)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            match &case.end {
                CaseEnd::Passed => writeln!(f, "passed    {}", case.name)?,
                CaseEnd::LeftOut(cells) => {
                    let cells: Vec<&str> = cells.iter().map(|cell| cell.as_str()).collect();
                    writeln!(f, "left out  {}: {} is weaker here", case.name, cells.join(", "))?;
                }
                CaseEnd::NotTried(why) => writeln!(f, "not tried {}: {}", case.name, why.0)?,
                CaseEnd::Failed(wrong) => writeln!(f, "failed    {}: {wrong}", case.name)?,
            }
        }
        Ok(())
    }
}
