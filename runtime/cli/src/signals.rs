//! Handling of signals: the first stops in order, the second ends the process at once.

use std::io;
use std::sync::{Arc, mpsc};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use watershed_api::Exit;

use super::failure::Failure;
use watershed::program::{Stop, Stopping};

/// Makes writes beyond the system's file size limit fail like a full disk, instead of ending the process.
///
/// A handler, as programs that are started would inherit that the signal is ignored.
pub(super) fn survive_file_limits() {
    if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()) {
        tracing::debug!(%error, "a file beyond the limit will end the process");
    }
}

/// Stops the work in order at the first signal, and ends the process at the second, from a thread of its own.
///
/// Whatever the other threads are held up by, the second signal is heard. Then the process is gone at once; whatever
/// was acknowledged is on disk.
pub(super) fn stop_on_signals(stop: Stop) -> Result<(), Failure> {
    stop_on(stop, true)
}

/// Does the same, but for SIGHUP, by which a service reads its configuration again.
pub(super) fn stop_on_signals_but_hangup(stop: Stop) -> Result<(), Failure> {
    stop_on(stop, false)
}

fn stop_on(stop: Stop, hears_hangup: bool) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure {
        exit: Exit::NotNow,
        error: anyhow::Error::new(error).context("can't listen for signals"),
        hint: None,
    };
    let (ready, is_ready) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("signals".to_owned());
    // Lives as long as the program; it holds nothing.
    thread
        .spawn(move || match listening(hears_hangup) {
            Ok((runtime, signals)) => {
                let _ = ready.send(Ok(()));
                runtime.block_on(listen(stop, signals));
            }
            Err(error) => drop(ready.send(Err(error))),
        })
        .map_err(failed)?;
    let ended = || Err(io::Error::other("the thread that listens has ended"));
    is_ready.recv().unwrap_or_else(|_| ended()).map_err(failed)
}

/// The signals that end a command.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// The signal of a closed terminal; none where the program was started to outlive its terminal, or means something else by the signal.
    hangup: Option<Signal>,
}

fn listening(hears_hangup: bool) -> io::Result<(Runtime, Signals)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    let listen = |kind: SignalKind| (!is_ignored(kind)).then(|| signal(kind)).transpose();
    let signals = Signals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hangup: match hears_hangup {
            true => listen(SignalKind::hangup())?,
            false => None,
        },
    };
    drop(entered);
    Ok((runtime, signals))
}

impl Signals {
    /// Resolves at the next signal. Cancel-safe.
    async fn next(&mut self) -> Stopping {
        let hung_up = async {
            match &mut self.hangup {
                Some(hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Stopping::Interrupted,
            _ = self.terminate.recv() => Stopping::Terminated,
            () = hung_up => Stopping::HungUp,
        }
    }
}

async fn listen(stop: Stop, mut signals: Signals) {
    let mut is_asked = false;
    loop {
        let why = signals.next().await;
        if is_asked {
            end_at_once(stop.exit().unwrap_or(Exit::Interrupted));
        }
        is_asked = true;
        stop.ask(why);
    }
}

/// Returns true if the program was started with the signal ignored, as `nohup` does.
#[allow(unsafe_code, reason = "there is no safe way to ask without a change")]
fn is_ignored(kind: SignalKind) -> bool {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one, for which there is room.
    let asked = unsafe { libc::sigaction(kind.as_raw_value(), std::ptr::null(), now.as_mut_ptr()) };
    // SAFETY: all bits zero are a valid value, whether the call wrote another one or not.
    asked == 0 && unsafe { now.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Ends the process without running exit handlers.
///
/// The engine's library would wait there for threads that may never return.
#[allow(unsafe_code, reason = "there is no safe way to it")]
fn end_at_once(exit: Exit) -> ! {
    // SAFETY: runs nothing of this process any more.
    unsafe { libc::_exit(i32::from(exit.code())) }
}
