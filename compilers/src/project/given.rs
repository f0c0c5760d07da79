//! The check that unit tests give rows for every table of the project.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    diagnostics::{Code, Finding},
    draft::{Draft, Purpose, SqlBlock},
    kinds::no_rows_of,
    sql::{Outcome, SqlAnalysis},
};

/// Returns the finding about a unit test that would read a table of the project.
pub(super) fn not_given(draft: &Draft, block: &SqlBlock, analyses: &[Arc<SqlAnalysis>]) -> Option<Finding> {
    if block.purpose != Purpose::UnitTest {
        return None;
    }
    let run = block
        .statements
        .iter()
        .zip(analyses)
        .filter(|(statement, analysis)| {
            // The incremental variant reads the model's own last rows, which a unit test never has.
            let variant = statement.variant.as_ref();
            variant.is_none_or(|variant| !variant.incremental) && analysis.outcome() == Outcome::Parsed
        });
    let tables = run.flat_map(|(_, analysis)| &analysis.tables);
    let missing = tables.filter(|table| {
        let is_own = table.name.eq_ignore_ascii_case(&draft.name);
        !is_own && !block.text.contains(&no_rows_of(&table.name))
    });
    let missing: BTreeSet<&str> = missing.map(|table| table.name.as_str()).collect();
    let missing: Vec<&str> = missing.into_iter().collect();
    if missing.is_empty() {
        return None;
    }
    Some(Finding {
        at: block.place.whole_text(&block.text),
        code: Code::MissingKey,
        message: format!(
            "the unit test gives no rows of \"{}\", which the model reads",
            missing.join("\", \"")
        ),
        hint: Some(format!(
            "add `{}:` under `given:`, with its rows",
            missing.join(":`, `")
        )),
        related: Vec::new(),
    })
}
