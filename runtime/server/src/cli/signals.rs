//! Signals: the first one stops in order, a second one ends at once.

use std::io;
use std::sync::mpsc;

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;
use crate::exit::Exit;
use crate::instance::{Stop, Stopping};

/// Listens until the program ends, on a thread of its own: whatever the other threads are held up by, the second signal
/// is heard. Then the process is gone at once; whatever was acknowledged is on disk.
pub(super) fn stop_on_signals(stop: Stop) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure {
        exit: Exit::NotNow,
        error: anyhow::Error::new(error).context("can't listen for signals"),
        hint: None,
    };
    let (ready, is_ready) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("signals".to_owned());
    // Lives as long as the program; it holds nothing.
    thread
        .spawn(move || match listening() {
            Ok((runtime, interrupt, terminate)) => {
                let _ = ready.send(Ok(()));
                runtime.block_on(listen(stop, interrupt, terminate));
            }
            Err(error) => drop(ready.send(Err(error))),
        })
        .map_err(failed)?;
    let ended = || Err(io::Error::other("the thread that listens has ended"));
    is_ready.recv().unwrap_or_else(|_| ended()).map_err(failed)
}

fn listening() -> io::Result<(Runtime, Signal, Signal)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let entered = runtime.enter();
    let interrupt = signal(SignalKind::interrupt())?;
    let terminate = signal(SignalKind::terminate())?;
    drop(entered);
    Ok((runtime, interrupt, terminate))
}

async fn listen(stop: Stop, mut interrupt: Signal, mut terminate: Signal) {
    let mut is_asked = false;
    loop {
        let why = tokio::select! {
            _ = interrupt.recv() => Stopping::Interrupted,
            _ = terminate.recv() => Stopping::Terminated,
        };
        if is_asked {
            end_at_once(stop.exit().unwrap_or(Exit::Interrupted));
        }
        is_asked = true;
        stop.ask(why);
    }
}

/// Ends the process without what it would run at an orderly exit: the engine's library would wait there for threads that
/// may never return.
#[allow(unsafe_code, reason = "there is no safe way to it")]
fn end_at_once(exit: Exit) -> ! {
    // SAFETY: runs nothing of this process any more.
    unsafe { libc::_exit(i32::from(exit.code())) }
}
