//! Waking of threads that wait for a named pipe, so that an interrupt reaches the engine.
//!
//! The engine looks at its interrupt between two steps of its work. A thread that opens a pipe, or reads from one, waits in the
//! system until somebody writes, which may be never. A signal ends the call with an error, and the engine its statement.

#[cfg(unix)]
pub(in crate::duckdb) use of_unix::Worker;

#[cfg(unix)]
mod of_unix {
    use std::sync::OnceLock;

    /// Signal that is ignored by default and used for nothing else in this process.
    const SIGNAL: libc::c_int = libc::SIGURG;

    extern "C" fn take_note(_signal: libc::c_int) {}

    /// Installs a handler so that the signal interrupts system calls. Returns false if the process uses the signal
    /// otherwise.
    fn is_prepared() -> bool {
        static PREPARED: OnceLock<bool> = OnceLock::new();
        *PREPARED.get_or_init(|| {
            // SAFETY: both structures are plain data that the calls fill or read; the handler touches nothing. Without
            // `SA_RESTART` calls that the signal ends are not begun again.
            unsafe {
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(SIGNAL, std::ptr::null(), &mut before) != 0 {
                    return false;
                }
                if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN {
                    return false;
                }
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = take_note as extern "C" fn(libc::c_int) as libc::sighandler_t;
                libc::sigemptyset(&mut ours.sa_mask);
                libc::sigaction(SIGNAL, &ours, std::ptr::null_mut()) == 0
            }
        })
    }

    /// A thread that does work.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::duckdb) struct Worker {
        thread: libc::pthread_t,
        #[cfg(target_os = "linux")]
        number: libc::pid_t,
    }

    // SAFETY: the names of a thread are plain data; rule 5 says when they may be used.
    unsafe impl Send for Worker {}

    impl Worker {
        /// Returns the calling thread, which does the work.
        pub(in crate::duckdb) fn current() -> Self {
            // SAFETY: the calls have no conditions.
            unsafe {
                Self {
                    thread: libc::pthread_self(),
                    #[cfg(target_os = "linux")]
                    number: libc::gettid(),
                }
            }
        }

        /// Interrupts the system call of the work if it waits for a pipe. Must be called while the thread works.
        #[cfg(target_os = "linux")]
        pub(in crate::duckdb) fn wake(self) {
            match waits_at_pipe(self.number) {
                true => self.signal(),
                // The engine's own threads may read for it. Opening any other file is over before a signal could end it.
                false => wake_those_at_pipes(),
            }
        }

        /// Interrupts the system call of the work. Must be called while the thread works.
        #[cfg(not(target_os = "linux"))]
        pub(in crate::duckdb) fn wake(self) {
            self.signal();
        }

        fn signal(self) {
            if is_prepared() {
                // SAFETY: rule 5.
                unsafe { libc::pthread_kill(self.thread, SIGNAL) };
            }
        }
    }

    /// Interrupts all threads of the process that are opening a file or reading from a pipe.
    #[cfg(target_os = "linux")]
    fn wake_those_at_pipes() {
        let threads = std::fs::read_dir("/proc/self/task")
            .into_iter()
            .flatten()
            .flatten();
        let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse::<libc::pid_t>().ok());
        for thread in numbers.filter(|thread| waits_at_pipe(*thread)) {
            if is_prepared() {
                // SAFETY: the thread is named within this process; one that has ended meanwhile is an error that harms nobody.
                unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn waits_at_pipe(thread: libc::pid_t) -> bool {
        let call = std::fs::read_to_string(format!("/proc/self/task/{thread}/syscall"));
        let call = call.unwrap_or_default();
        let mut words = call.split_ascii_whitespace();
        let number = words
            .next()
            .and_then(|number| number.parse::<libc::c_long>().ok());
        match number {
            Some(libc::SYS_openat) => true,
            Some(libc::SYS_read) => {
                let file = words.next().and_then(|word| word.strip_prefix("0x"));
                let file = file.and_then(|file| u32::from_str_radix(file, 16).ok());
                file.is_some_and(is_pipe)
            }
            _ => false,
        }
    }

    #[cfg(target_os = "linux")]
    fn is_pipe(file: u32) -> bool {
        use std::os::unix::fs::FileTypeExt as _;
        let path = format!("/proc/self/fd/{file}");
        // A pipe without a name is between parts of the program, or to a child.
        let has_name = std::fs::read_link(&path).is_ok_and(|target| target.is_absolute());
        has_name && std::fs::metadata(&path).is_ok_and(|found| found.file_type().is_fifo())
    }
}

/// A thread that does work, on systems without signals.
#[cfg(not(unix))]
#[derive(Debug, Clone, Copy)]
pub(in crate::duckdb) struct Worker;

#[cfg(not(unix))]
impl Worker {
    pub(in crate::duckdb) fn current() -> Self {
        Self
    }

    pub(in crate::duckdb) fn wake(self) {}
}
