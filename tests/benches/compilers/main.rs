//! The speed of the compiler: `cargo bench -p watershed-tests --bench compilers -- [--json] [--only NAME]`.
//!
//! | figure | what is measured |
//! |---|---|
//! | `parse_10k_cold_s` | 10,000 files, models and YAML mixed, compiled from nothing, the engine's parser included |
//! | `parse_10k_warm_ms` | the same with what an earlier process learned: the engine is not asked |
//! | `edit_one_of_10k_ms` | one model's SQL edited in the compiled project |
//! | `rename_read_by_1k_ms` | a model renamed that 1,000 others read |
//! | `parse_10k_rss_mb` | the memory of a process that compiled them, beyond what it had before |
//! | `validate_1k_cold_ms`, `validate_1k_warm_ms` | `watershed validate` of 1,000 models, the whole process |
//! | `lsp_keystroke_1k_ms` | `watershed lsp` on 1,000 models: from an edit to its diagnostics |

#![allow(clippy::expect_used, clippy::print_stdout, missing_docs)]

mod generated;
mod parse;
mod program;

use watershed_tests::measure::Report;

fn main() {
    // A process of its own, whose memory is measured.
    if std::env::args().any(|argument| argument == parse::CHILD) {
        return parse::child();
    }
    let report = Report::from_args();
    parse::measure(&report);
    program::measure(&report);
}
