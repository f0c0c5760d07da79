//! How the program's memory goes back to the system.
//!
//! A process that stays for weeks and builds something every few seconds takes much memory for a moment, on whichever
//! thread has the work. Left alone, the C library keeps an arena for each of those threads and, once it has seen a
//! buffer of the engine's CSV reader (32 MB), gives nothing below that size back; and what lies between things that stay
//! is never given back at all. A program that embeds the runtime chooses its own allocator; this is for ours. All of it
//! does nothing where the C library is another one, or a person has set its variables.

use std::time::Duration;

use futures::FutureExt as _;
use watershed_controller::{Event, Handle, Hidden, Revision};

/// Between two times that free memory is given back. It takes some milliseconds, and what is needed again soon costs
/// a page fault.
const PAUSE: Duration = Duration::from_secs(10);

/// Work that takes longer than this is not waited for.
const LONG: Duration = Duration::from_secs(60);

/// Has large buffers given back when they are freed, and the others share few arenas. To be called before there are
/// threads.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if is_ours() {
        set(libc::M_MMAP_THRESHOLD, LARGE);
        set(libc::M_TRIM_THRESHOLD, LARGE);
        set(libc::M_ARENA_MAX, arenas());
    }
}

/// Gives free memory back each time that something was done and nothing is left to do, until the controller stops.
/// Costs nothing while nothing happens.
pub(super) async fn give_back_after_work(handle: Handle) {
    let mut seen = handle.list(Hidden::Leave).revision;
    while let Some(revision) = work_done(&handle, seen).await {
        seen = revision;
        let _ = tokio::task::spawn_blocking(trim).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until something happens after `seen` and all is settled again; returns the revision by then.
async fn work_done(handle: &Handle, mut seen: Revision) -> Option<Revision> {
    let mut watch = handle.watch(seen);
    let mut event = Some(watch.next().await?);
    // Whatever the wait ends with, there is something to give back.
    let _ = handle.wait_until_idle(LONG).await;
    while let Some(happened) = event {
        match happened {
            Event::Changed(changes) => seen = changes.revision,
            Event::Lagged => return Some(handle.list(Hidden::Leave).revision),
            Event::Quiet(_) | Event::Status(_) => {}
        }
        event = watch.next().now_or_never().flatten();
    }
    Some(seen)
}

fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if is_ours() {
        #[allow(unsafe_code, reason = "there is no safe way to it")]
        // SAFETY: gives back pages that hold nothing, under the allocator's own locks; may be called at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

/// Whether nobody has said how the C library is to allocate.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_ours() -> bool {
    VARIABLES.iter().all(|name| std::env::var_os(name).is_none())
}

/// By these a person says how the C library is to allocate.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const VARIABLES: [&str; 4] = [
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
];

/// What is mapped on its own, and how much may stay free at the end of an arena, in bytes. Setting either keeps the
/// library from raising both by what it sees.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 1 << 20;

/// Threads that allocate at the same moment are as many as the cores; more than a few arenas only hold more.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn arenas() -> libc::c_int {
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8));
    libc::c_int::try_from(cores).unwrap_or(2)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(
    unsafe_code,
    reason = "the C library's own switch; there is no safe way to it"
)]
fn set(parameter: libc::c_int, value: libc::c_int) {
    // SAFETY: takes two numbers and touches the allocator's parameters only, under its own lock.
    unsafe {
        libc::mallopt(parameter, value);
    }
}
