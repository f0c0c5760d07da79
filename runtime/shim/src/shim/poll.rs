//! All event sources of a shim: sockets, signals, timers and watched files.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};

use crate::folder::Folder;

/// The most events of one turn; further ones wait for the next.
const MAX_EVENTS: usize = 256;

/// Id of a polled connection or process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

const LISTENER: u64 = 0;
const CHILDREN: u64 = 1;
const TOLD: u64 = 2;
const TIMER: u64 = 3;
const FILES: u64 = 4;
const FIRST_TOKEN: u64 = 16;

/// An event that the shim handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ready {
    /// A client is connecting.
    Listener,
    /// A child has ended.
    Children,
    /// The shim received a signal to end.
    Told,
    /// The time of the next turn has come.
    Timer,
    /// A watched file has grown.
    Grown(i32),
    /// A file in the folder was removed or moved.
    Folder,
    /// A connection is readable or writable, or a process has ended.
    Token(Token),
}

/// The poller of all event sources of a shim.
#[derive(Debug)]
pub(super) struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: Option<u64>,
    inotify: OwnedFd,
    folder_watch: i32,
    children: UnixStream,
    told: UnixStream,
    next: u64,
}

impl Poll {
    /// Starts waiting for connections, children, signals and the loss of the folder.
    ///
    /// # Errors
    /// When the system refuses one of them.
    pub(super) fn new(listener: &UnixListener, folder: &Folder) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let removed =
            WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::MOVED_FROM;
        let folder_watch = inotify::add_watch(&inotify, folder.path(), removed)?;
        let children = on_signals(&[SIGCHLD])?;
        let told = on_signals(&[SIGTERM, SIGINT])?;
        let add = |source: &dyn AsFd, token| {
            epoll::add(&epoll, source.as_fd(), EventData::new_u64(token), EventFlags::IN)
        };
        add(listener, LISTENER)?;
        add(&children, CHILDREN)?;
        add(&told, TOLD)?;
        add(&timer, TIMER)?;
        add(&inotify, FILES)?;
        Ok(Self {
            epoll,
            timer,
            armed: None,
            inotify,
            folder_watch,
            children,
            told,
            next: FIRST_TOKEN,
        })
    }

    /// Returns the inotify descriptor for watching files.
    pub(super) fn inotify(&self) -> &OwnedFd {
        &self.inotify
    }

    /// Starts waiting until a descriptor is readable.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn add(&mut self, source: &impl AsFd) -> io::Result<Token> {
        let token = Token(self.next);
        self.next += 1;
        epoll::add(&self.epoll, source, EventData::new_u64(token.0), EventFlags::IN)?;
        Ok(token)
    }

    /// Starts or stops waiting until a descriptor is writable too.
    pub(super) fn want_room(&self, source: &impl AsFd, token: Token, wants: bool) {
        let flags = if wants {
            EventFlags::IN | EventFlags::OUT
        } else {
            EventFlags::IN
        };
        let _ = epoll::modify(&self.epoll, source, EventData::new_u64(token.0), flags);
    }

    /// Stops waiting for a descriptor.
    pub(super) fn remove(&self, source: &impl AsFd) {
        let _ = epoll::delete(&self.epoll, source);
    }

    /// Sets the time of the next turn, in milliseconds since boot; `None` for none.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn arm(&mut self, due_ms: Option<u64>) -> io::Result<()> {
        if self.armed == due_ms {
            return Ok(());
        }
        // Zero would disarm it.
        let at = due_ms.map_or(0, |due| due.max(1));
        let value = Timespec {
            tv_sec: i64::try_from(at / 1_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000 * 1_000_000).unwrap_or_default(),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed = due_ms;
        Ok(())
    }

    /// Waits for the next events.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn wait(&mut self) -> io::Result<Vec<Ready>> {
        let mut events = Vec::with_capacity(MAX_EVENTS);
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&self.epoll, spare, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = Vec::with_capacity(events.len());
        for event in events {
            match event.data.u64() {
                LISTENER => ready.push(Ready::Listener),
                CHILDREN => {
                    drain(&self.children);
                    ready.push(Ready::Children);
                }
                TOLD => {
                    drain(&self.told);
                    ready.push(Ready::Told);
                }
                TIMER => {
                    let _ = rustix::io::read(&self.timer, &mut [0_u8; 8]);
                    self.armed = None;
                    ready.push(Ready::Timer);
                }
                FILES => self.read_files(&mut ready),
                token => ready.push(Ready::Token(Token(token))),
            }
        }
        Ok(ready)
    }

    fn read_files(&self, ready: &mut Vec<Ready>) {
        let mut buffer = [MaybeUninit::uninit(); 8 << 10];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        loop {
            let Ok(event) = reader.next() else {
                return;
            };
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) || event.wd() == self.folder_watch {
                ready.push(Ready::Folder);
            } else {
                ready.push(Ready::Grown(event.wd()));
            }
            if reader.is_buffer_empty() {
                return;
            }
        }
    }
}

/// Returns a stream that becomes readable after any of the signals.
fn on_signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (reader, writer) = UnixStream::pair()?;
    reader.set_nonblocking(true)?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, writer.try_clone()?)?;
    }
    Ok(reader)
}

fn drain(mut stream: &UnixStream) {
    let mut buffer = [0_u8; 1024];
    while matches!(stream.read(&mut buffer), Ok(count) if count == buffer.len()) {}
}
