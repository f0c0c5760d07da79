//! The shim: the parent process of a project's local processes.
//!
//! A shim is a small process of its own, one for each state folder. It starts programs, reaps them and writes down how
//! they ended, so that they and their exit codes survive the program that ordered them. It decides nothing: it never
//! starts a program again, and it stops one only when it is told to, when nobody holds it any more, or when its state
//! folder is gone.
//!
//! | start at | for |
//! |---|---|
//! | [`Client`] | starting, listing and stopping processes from an asynchronous program; it starts the shim, too |
//! | [`run`] | being the shim: a command of the program calls it |
//! | [`protocol`] | what both say to each other |
//!
//! # What survives what
//!
//! - The program ends or is killed: processes go on ([`Lifetime::Keep`](protocol::Lifetime::Keep)), their exits are kept until
//!   somebody forgets them.
//! - The shim is killed: processes go on. The next shim finds them by pid, start time and boot, or by the tag in their
//!   environment; when they end, the code is [unknown](protocol::End::Unknown).
//! - The machine restarts: everything has ended, by [`End::Reboot`](protocol::End::Reboot).
//!
//! # Rules
//!
//! 1. A start id starts at most one process, whoever dies meanwhile: the intent is on disk before the process is there.
//! 2. Of one uid at most one start lives.
//! 3. An exit is stored before the process is reaped, and told after that. It is stored once.
//! 4. A command of an epoch below the highest seen is refused; so is one of an epoch whose lease has ended.
//! 5. When a process has ended, all that it has left is killed: the rest of its group, what carries its tag or its mark, and
//!    children of the shim that carry neither, once no older process lives.
//!
//! Linux alone: it rests on `/proc`, pidfds and orphans that become children. Elsewhere the crate has its types
//! alone.

#[cfg(all(feature = "client", target_os = "linux"))]
pub mod client;
mod left_out;
pub mod protocol;
mod start_id;

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(target_os = "linux")]
mod folder;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod mark;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod procfs;
#[cfg(target_os = "linux")]
mod shim;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod spawn;
#[cfg(target_os = "linux")]
mod tag;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "there is no shim that writes notes")
)]
mod times;

#[cfg(all(feature = "client", target_os = "linux"))]
pub use client::{Client, Error, Launch, News, Options};
#[cfg(target_os = "linux")]
pub use crash::CRASH_POINTS;
pub use left_out::{LeftOut, left_out};
#[cfg(target_os = "linux")]
pub use shim::{Ended, IDLE, RunError, Settings, run};
#[cfg(target_os = "linux")]
pub use signals::STOP_SIGNALS;
pub use start_id::{BadStartId, MAX_UID, StartId};
#[cfg(target_os = "linux")]
pub use tag::TAG_VARIABLE;
pub use times::written_since;
