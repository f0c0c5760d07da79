//! The report of a run of the suite.

use std::fmt;

use watershed_drivers::olap::Cell;

/// The cases of a run with their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The driver that was asked.
    pub driver: &'static str,
    /// All cases, in their order.
    pub cases: Vec<CaseReport>,
}

/// A case and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseReport {
    /// The case: a sentence about behaviour.
    pub name: &'static str,
    /// Its end.
    pub end: CaseEnd,
}

/// The end of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseEnd {
    /// The engine does as it says.
    Passed,
    /// Not run: the engine says that it keeps these less than whole.
    LeftOut(Vec<Cell>),
    /// The engine does not what the case asks for; the difference, in words.
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
