//! Crash points: named places, from the evaluation of a sender to the stored end of a delivery, at which a test can
//! kill the program.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`, and
//! the process gets a `kill -9` there, from itself.

/// Names of all crash points, in the order in which a message passes them.
pub const CRASH_POINTS: &[&str] = &[EVALUATED, RECORDED, CREATED, HANDED_OVER, BEGUN, ANSWERED, MARKED];

/// After the sender has computed its messages, before any is stored.
pub const EVALUATED: &str = "message-evaluated";
/// After the sender has stored its entry with the messages.
pub const RECORDED: &str = "message-recorded";
/// After a notification is created, before the next one.
pub const CREATED: &str = "message-created";
/// After the sender has recorded that all notifications are created.
pub const HANDED_OVER: &str = "message-handed-over";
/// After the beginning of an attempt is stored, before the message is sent.
pub(crate) const BEGUN: &str = "message-begun";
/// After an attempt has ended, before its outcome is stored.
pub(crate) const ANSWERED: &str = "message-answered";
/// After the outcome of an attempt is stored.
pub(crate) const MARKED: &str = "message-marked";

/// Kills the process at this point if a test requests it.
#[cfg(feature = "crash-points")]
pub fn point(name: &'static str) {
    fail::fail_point!(name, |_| die());
}

/// Does nothing: crash points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub fn point(_name: &'static str) {}

#[cfg(feature = "crash-points")]
fn die() {
    use rustix::process::{Signal, getpid, kill_process};
    // Nobody survives it; whoever may not send it ends all the same.
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
