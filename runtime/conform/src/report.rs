//! The report of a run of the suite.

use std::fmt;

use watershed_drivers::olap::Cell;

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
    /// Outcome of the case.
    pub end: CaseEnd,
}

/// Outcome of a case: passed, left out or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseEnd {
    /// The engine behaves as its guarantees say.
    Passed,
    /// Not run, since the engine gives these guarantees less than in full.
    LeftOut(Vec<Cell>),
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
                CaseEnd::Failed(wrong) => writeln!(f, "failed    {}: {wrong}", case.name)?,
            }
        }
        Ok(())
    }
}
