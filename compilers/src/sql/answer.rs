//! The analysis of a statement from the engine's answer.

use super::{
    SqlError, SqlPlace, Tree,
    analysis::{Outcome, SqlAnalysis},
    scan, walk,
};

impl SqlAnalysis {
    /// Returns true if a value, or a line of it, occurs in the cached texts of the analysis. Lines shorter than four
    /// bytes are ignored, as they occur everywhere.
    pub(crate) fn quotes(&self, value: &str) -> bool {
        let files = self.files.iter().map(String::as_str);
        let tables = self.tables.iter().map(|table| table.name.as_str());
        let mut kept = std::iter::once(self.message.as_str()).chain(files).chain(tables);
        let lines = || value.lines().filter(|line| line.len() >= 4);
        kept.any(|kept| lines().any(|line| kept.contains(line)))
    }

    /// Analyses a statement by the engine's answer about it.
    pub fn read(statement: &str, answer: &Result<Tree, SqlError>) -> Self {
        match answer {
            Ok(tree) => walk::analyse(tree).unwrap_or_else(|| scan::analyse(statement)),
            Err(SqlError::NotSerialisable { .. } | SqlError::Failed { .. }) => scan::analyse(statement),
            Err(SqlError::Syntax { message, place }) => Self {
                outcome: Outcome::Invalid.into(),
                message: message.clone(),
                error_at: char_offset(statement, *place),
                ..Self::default()
            },
        }
    }
}

fn char_offset(statement: &str, place: SqlPlace) -> Option<u64> {
    match place {
        SqlPlace::Char(offset) => Some(offset as u64),
        SqlPlace::Line { line, column } => {
            let before: usize = statement
                .split_inclusive('\n')
                .take((line as usize).saturating_sub(1))
                .map(|line| line.chars().count())
                .sum();
            Some((before + (column as usize).saturating_sub(1)) as u64)
        }
        SqlPlace::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_by_line_and_column_becomes_an_offset() {
        let place = SqlPlace::Line { line: 2, column: 3 };
        assert_eq!(char_offset("sé\nabc", place), Some(5));
        let refused = Err(SqlError::Syntax {
            message: "no".into(),
            place,
        });
        let analysis = SqlAnalysis::read("sé\nabc", &refused);
        assert_eq!(
            (analysis.outcome(), analysis.error_at),
            (Outcome::Invalid, Some(5))
        );
    }
}
