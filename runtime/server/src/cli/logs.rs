//! Logs of the program, on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::args::{LogFormat, Shared};

/// Sets the filter by hand, in the words of `tracing`.
const FILTER: &str = "WATERSHED_LOG";

/// Begins to log: errors, with `-vv` what the program does, with `WATERSHED_LOG` anything.
pub(super) fn begin(shared: &Shared) {
    let default = match (shared.quiet, shared.verbose) {
        (true, _) => "off",
        (false, 0 | 1) => "error",
        (false, 2) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(default));
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour);
    // Somebody who embeds the program may log already.
    let _ = match shared.log_format {
        LogFormat::Text => logs.with_target(false).try_init(),
        LogFormat::Json => logs.json().try_init(),
    };
}
