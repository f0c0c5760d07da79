//! Named points on the way of a message at which a test lets the program die: from the evaluation that finds what is to be
//! said to the mark that it was delivered.
//!
//! They exist only with the feature `crash-points`. A test sets one with the crate `fail` to the action `return`, and
//! the process gets a `kill -9` there, from itself.

/// Every crash point on the way of a message, in the order in which it passes them.
pub const CRASH_POINTS: &[&str] = &[EVALUATED, RECORDED, CREATED, HANDED_OVER, BEGUN, ANSWERED, MARKED];

/// After the sender knows what to say, before any of it is stored.
pub const EVALUATED: &str = "message-evaluated";
/// After the sender has stored its entry with the messages.
pub const RECORDED: &str = "message-recorded";
/// After a notification is created, before the next one.
pub const CREATED: &str = "message-created";
/// After the sender has noted that all are created.
pub const HANDED_OVER: &str = "message-handed-over";
/// After an attempt is stored, before it is made.
pub(crate) const BEGUN: &str = "message-begun";
/// After an attempt has ended, before its end is stored.
pub(crate) const ANSWERED: &str = "message-answered";
/// After the end of an attempt is stored.
pub(crate) const MARKED: &str = "message-marked";

/// Kills the process here if a test asks for it.
#[cfg(feature = "crash-points")]
pub fn point(name: &'static str) {
    fail::fail_point!(name, |_| die());
}

/// Does nothing: the points are not compiled in.
#[cfg(not(feature = "crash-points"))]
pub fn point(_name: &'static str) {}

#[cfg(feature = "crash-points")]
fn die() {
    use rustix::process::{Signal, getpid, kill_process};
    // Nobody survives it; whoever may not send it ends all the same.
    let _ = kill_process(getpid(), Signal::KILL);
    std::process::abort()
}
