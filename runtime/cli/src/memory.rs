//! Settings of the program's memory allocator, and the return of free memory to the system.
//!
//! A process that stays for weeks and builds something every few seconds takes much memory for a moment, on whichever
//! thread has the work. Left alone, the C library gives nothing below 32 MB back once it has seen a buffer of the
//! engine's CSV reader, which is as large; and what lies between things that stay is never given back at all. A command
//! that ends in a moment has nothing to give back: it takes memory in large pieces and keeps it, which saves a tenth of
//! the time of a run that finds nothing to do. A program that embeds the runtime chooses its own allocator; this is for
//! ours. It is left alone where the C library is another one, or a person has set its variables. The engine's memory is
//! its own affair, and is given back or kept with the rest.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use watershed_controller::resource::Revision;
use watershed_controller::{Event, Handle, Select};

use super::args::Command;
use watershed::Instance;

/// The pause between two times that free memory is returned to the system.
///
/// It takes some milliseconds, and what is needed again soon costs a page fault.
const PAUSE: Duration = Duration::from_secs(10);

/// The longest wait for work to end before memory is returned anyway.
const LONG: Duration = Duration::from_secs(60);

/// Configures the allocator to return or to keep freed memory, by how long the command stays.
///
/// To be called before there are threads.
pub(super) fn choose(command: &Command) {
    let stays = matches!(
        command,
        Command::Start(_) | Command::Serve(_) | Command::Lsp(_) | Command::Mcp(_) | Command::Shim(_)
    );
    match stays {
        _ if !allocator::is_ours() => {}
        true => allocator::give_back(),
        false => allocator::keep(),
    }
}

/// Returns free memory to the system each time that work was done and nothing is left to do, until the controller
/// stops.
///
/// Costs nothing while nothing happens.
pub(super) async fn give_back_after_work(instance: Arc<Instance>) {
    let handle = instance.controller();
    let mut seen = handle.list(Select::new()).revision;
    while let Some(revision) = work_done(handle, seen).await {
        seen = revision;
        instance.give_back_memory().await;
        if allocator::is_ours() {
            let _ = tokio::task::spawn_blocking(allocator::trim).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits for a change after `seen`, and until everything has settled. Returns the revision then; none if the controller
/// stops.
async fn work_done(handle: &Handle, mut seen: Revision) -> Option<Revision> {
    let mut watch = handle.watch(seen);
    let mut event = Some(watch.next().await?);
    // Whatever the wait ends with, there is something to give back.
    let _ = handle.wait_until_idle(LONG).await;
    while let Some(happened) = event {
        match happened {
            Event::Changed(changes) => seen = changes.revision,
            Event::Lagged => return Some(handle.list(Select::new()).revision),
            Event::Status(_) => {}
        }
        event = watch.next().now_or_never().flatten();
    }
    Some(seen)
}

/// The allocator of the GNU C library.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod allocator {
    use libc::c_int;

    /// Variables by which a person configures the allocator.
    const VARIABLES: [&str; 4] = [
        "GLIBC_TUNABLES",
        "MALLOC_ARENA_MAX",
        "MALLOC_MMAP_THRESHOLD_",
        "MALLOC_TRIM_THRESHOLD_",
    ];

    /// The size from which an allocation is mapped on its own, and the free space kept per arena, in a process that
    /// stays.
    ///
    /// In bytes. Setting either keeps the library from raising both by what it sees.
    const LARGE: c_int = 1 << 20;

    /// The least growth of an arena in a process that ends soon, in bytes.
    ///
    /// The memory that a small project takes comes in a few pieces instead of thousands.
    const PIECE: c_int = 16 << 20;

    /// The size from which an allocation is mapped on its own, in a process that ends soon, in bytes.
    ///
    /// The most that the library would come to by itself.
    const MAPPED: c_int = 32 << 20;

    /// The free space kept at the end of an arena, in a process that ends soon, in bytes.
    const KEPT: c_int = 256 << 20;

    /// Returns true if no variable configures the allocator, so that the program may.
    pub(super) fn is_ours() -> bool {
        VARIABLES.iter().all(|name| std::env::var_os(name).is_none())
    }

    /// Configures the allocator to return large buffers when freed, and to share a few arenas.
    pub(super) fn give_back() {
        set(libc::M_MMAP_THRESHOLD, LARGE);
        set(libc::M_TRIM_THRESHOLD, LARGE);
        set(libc::M_ARENA_MAX, arenas());
    }

    /// Configures the allocator to grow in large steps, and to keep freed memory.
    pub(super) fn keep() {
        set(libc::M_TOP_PAD, PIECE);
        set(libc::M_MMAP_THRESHOLD, MAPPED);
        set(libc::M_TRIM_THRESHOLD, KEPT);
    }

    /// Returns the number of arenas: two for each core.
    ///
    /// Gaps between long-lived things fill every arena in the end, so there are fewer than threads. With one, threads
    /// wait for each other and an edit takes a quarter longer.
    fn arenas() -> c_int {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZeroUsize::get);
        c_int::try_from(2 * cores.clamp(2, 8)).unwrap_or(4)
    }

    #[allow(unsafe_code, reason = "the library's own switch; there is no safe way to it")]
    fn set(parameter: c_int, value: c_int) {
        // SAFETY: takes two numbers and touches the allocator's parameters only, under its own lock.
        unsafe {
            libc::mallopt(parameter, value);
        }
    }

    #[allow(unsafe_code, reason = "there is no safe way to it")]
    pub(super) fn trim() {
        // SAFETY: gives back pages that hold nothing, under the allocator's own locks; may be called at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Any other allocator, which is not configured.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod allocator {
    pub(super) fn is_ours() -> bool {
        false
    }

    pub(super) fn give_back() {}

    pub(super) fn keep() {}

    pub(super) fn trim() {}
}
