//! Logs of invocations on disk: a file for each resource in the state folder, bounded by size and age.
//!
//! Add [`Runtime::log_layer`](crate::Runtime::log_layer) to the subscriber of a process, as the program does; then every `tracing` event inside an
//! invocation's span goes to the file of its resource, and [`Instance::logs`](crate::Instance::logs) reads it.
//!
//! ```no_run
//! use tracing_subscriber::layer::SubscriberExt as _;
//! use tracing_subscriber::util::SubscriberInitExt as _;
//!
//! let runtime = watershed::Runtime::new();
//! tracing_subscriber::registry().with(runtime.log_layer()).init();
//! ```
//!
//! Invariants:
//! 1. Whoever logs never waits: lines go through a queue of bounded length, and what does not fit is counted and
//!    dropped ([`dropped`]).
//! 2. A file is only ever appended to, renamed whole or removed whole. A line that a crash tore is passed over by
//!    readers and ended by the next writer.
//! 3. A resource has at most two files of [`FILE_BYTES`] each, a state folder at most [`FOLDER_BYTES`] of them, and none
//!    that was not written to for [`AGE`].
//! 4. What a run says in detail is kept only if the run says or does something that matters: a look that finds
//!    nothing to do leaves no line.

mod files;
mod follower;
mod layer;
mod writer;

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::sync::broadcast;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;
use uuid::Uuid;
use watershed_api::documents::LogLine;

pub use self::follower::LogFollower;
pub(crate) use self::follower::span;
pub(crate) use self::layer::INSTANCE_SPAN;
use self::writer::Writer;
pub(crate) use self::writer::Written;
use crate::hiding::Hiding;

/// The size at which a log file is rotated, in bytes: a few thousand lines. The rotated file replaces the previous one.
pub const FILE_BYTES: u64 = 256 * 1024;
/// Largest total size of the log files of a state folder, in bytes; the oldest files beyond it are removed.
pub const FOLDER_BYTES: u64 = 128 * 1024 * 1024;
/// The age at which a log file that is no longer written to is removed.
pub const AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The only log writer of this process, which has one subscriber too.
static WRITER: OnceLock<Writer> = OnceLock::new();

/// Keeps what invocations of the instances of a runtime say.
pub(crate) fn layer<S>(hiding: Hiding) -> impl Layer<S> + Send + Sync
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    layer::layer(WRITER.get_or_init(Writer::start), hiding)
}

/// Returns the number of log lines of this process that were dropped because the disk was too slow or refused them.
pub fn dropped() -> u64 {
    WRITER.get().map_or(0, Writer::dropped)
}

/// Waits until all earlier log lines are written. Blocks the thread.
pub fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush();
    }
}

/// Reads the newest log lines of a resource, at most `limit`, oldest first.
pub(crate) async fn read(folder: &Path, uid: Uuid, limit: usize) -> std::io::Result<Vec<LogLine>> {
    let folder = folder.to_path_buf();
    let reading = tokio::task::spawn_blocking(move || {
        flush();
        files::read(&folder, uid, limit)
    });
    reading
        .await
        .unwrap_or_else(|panic| Err(std::io::Error::other(panic)))
}

/// Subscribes to the log lines of all resources of this process as they are written.
pub(crate) fn follow() -> Option<broadcast::Receiver<Written>> {
    WRITER.get().map(Writer::follow)
}
