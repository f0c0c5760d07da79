//! Names of signals.

use rustix::process::Signal;

/// Signals with which a stop may begin.
const NAMED: &[(&str, Signal)] = &[
    ("TERM", Signal::TERM),
    ("INT", Signal::INT),
    ("QUIT", Signal::QUIT),
    ("HUP", Signal::HUP),
    ("USR1", Signal::USR1),
    ("USR2", Signal::USR2),
    ("WINCH", Signal::WINCH),
    ("KILL", Signal::KILL),
];

/// Names that [`Stop::signal`](crate::protocol::Stop::signal) accepts.
pub const STOP_SIGNALS: &[&str] = &["TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"];

/// Returns the signal of a name, with or without the prefix `SIG`.
pub(crate) fn named(name: &str) -> Option<Signal> {
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let found = NAMED.iter().find(|(known, _)| *known == name);
    found.map(|(_, signal)| *signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_offered_is_taken() {
        assert!(STOP_SIGNALS.iter().all(|name| named(name).is_some()));
        assert_eq!(STOP_SIGNALS.len(), NAMED.len());
        assert_eq!(named("SIGTERM"), Some(Signal::TERM));
        assert_eq!(named("STOP"), None);
    }
}
