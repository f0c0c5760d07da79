//! The memory of this process: what the system says of it, and the bytes that are held, counted while somebody wants to know.
//!
//! The system can't tell of small things: what is added fits into what was freed before and not given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// Off, it costs a look at a flag, so that what is timed is not slowed.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// Less than nothing if more is given back than was taken since the count began.
static HELD: AtomicIsize = AtomicIsize::new(0);

/// Begins to count.
pub(super) fn begin() {
    HELD.store(0, Ordering::SeqCst);
    IS_ON.store(true, Ordering::SeqCst);
}

/// Returns the bytes that are held beyond those of the beginning.
pub(super) fn now() -> isize {
    HELD.load(Ordering::SeqCst)
}

/// Ends the count.
pub(super) fn end() {
    IS_ON.store(false, Ordering::SeqCst);
}

/// Returns the memory of this process, as the system has it.
pub(super) fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    let kib: u64 = line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap();
    kib * 1024
}

struct Counting;

fn note(bytes: usize, is_taken: bool) {
    if IS_ON.load(Ordering::Relaxed) {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX);
        HELD.fetch_add(if is_taken { bytes } else { -bytes }, Ordering::Relaxed);
    }
}

#[allow(unsafe_code)]
// SAFETY: every call is handed on unchanged to the system's allocator; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), true);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(layout.size(), false);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(layout.size(), false);
        note(size, true);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
