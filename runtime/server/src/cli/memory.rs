//! How the program's memory goes back to the system.
//!
//! A process that stays for weeks and builds something every few seconds takes much memory for a moment, on whichever
//! thread has the work. Left alone, the C library keeps an arena for each of those threads and, once it has seen a
//! buffer of the engine's CSV reader (32 MB), gives nothing below that size back. A program that embeds the runtime
//! chooses its own allocator; this is for ours.

/// Has large buffers given back when they are freed, and the others share few arenas. To be called before there are
/// threads. Does nothing where the C library is another one, or a person has set its variables.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if VARIABLES.iter().all(|name| std::env::var_os(name).is_none()) {
        set(libc::M_MMAP_THRESHOLD, LARGE);
        set(libc::M_TRIM_THRESHOLD, LARGE);
        set(libc::M_ARENA_MAX, arenas());
    }
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
