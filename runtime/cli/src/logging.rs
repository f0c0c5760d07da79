//! Logs of the program on standard error, and the stored log lines of each resource.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::args::{LogFormat, Shared};
use watershed::Runtime;
use watershed::telemetry::Traces;

/// The variable with a filter of log lines, in the syntax of `tracing`.
const FILTER: &str = "WATERSHED_LOG";

/// Starts logging to standard error: errors, more with `-vv`, or what `WATERSHED_LOG` says.
///
/// Log lines of invocations are stored in any case, and spans go to a collector if there is one.
pub(super) fn begin(shared: &Shared, runtime: &Runtime, traces: Option<&Traces>) {
    let default = match (shared.quiet, shared.verbose) {
        (true, _) => "off",
        // A full disk is told by the command, with the room that is missing. What belongs to nothing, a guess that is
        // another, and what fails in a service is told by nobody else.
        (false, 0) => {
            "error,watershed_controller::room=off,watershed::orphans=warn,watershed::guesses=warn,watershed::runs=warn"
        }
        (false, 1) => {
            "error,watershed_controller::room=off,watershed::orphans=warn,watershed::guesses=warn,watershed::runs=info"
        }
        (false, 2) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_env(FILTER).unwrap_or_else(|_| EnvFilter::new(default));
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty());
    let hiding = runtime.clone();
    let shown = tracing_subscriber::fmt::layer()
        .with_writer(move || Hiding(std::io::stderr(), hiding.clone()))
        .with_ansi(colour);
    let shown = match shared.log_format {
        LogFormat::Text => shown.with_target(false).with_filter(filter).boxed(),
        LogFormat::Json => shown.json().with_filter(filter).boxed(),
    };
    // Somebody who embeds the program may log already.
    let _ = tracing_subscriber::registry()
        .with(shown)
        .with(runtime.log_layer())
        .with(traces.map(Traces::layer))
        .try_init();
}

/// Standard error with secrets redacted. An event is written in one piece.
struct Hiding(io::Stderr, Runtime);

impl Write for Hiding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(self.1.redact(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
