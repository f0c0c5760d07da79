//! The process of a site, found in the process table by its tag.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use watershed_stategraph::{Context, Handler, HandlerError, Observed, Ref};

use crate::point;
use crate::thing::{Process, Thing};

/// The time that a server may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(5);

/// Starts and ends servers.
pub(crate) struct Servers;

impl Handler<Thing> for Servers {
    async fn create(&self, context: &Context, item: &Ref, new: &Thing) -> Result<(), HandlerError> {
        let process = process_of(new)?;
        // A run that was killed may have started one that is not yet ready, or with other settings.
        end_all(&process.tag).await?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .args([&process.folder, &process.settings, &process.address])
            .arg(&process.tag)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .env_remove("SITE_TRACE")
            .env_remove("SITE_ABORT_AT")
            .process_group(0)
            .spawn()?;
        point::pass("within", item);
        let stdout = child
            .stdout
            .take()
            .ok_or_else(|| HandlerError::new("has no output"))?;
        let mut lines = BufReader::new(stdout).lines();
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(_) => Ok(()),
                None => Err(HandlerError::new("ended before it listened")),
            },
            () = context.cancelled().cancelled() => {
                end_all(&process.tag).await?;
                Err(HandlerError::new("was cancelled"))
            }
        }
    }

    async fn modify(&self, _: &Context, _: &Ref, _: &Thing, _: &Thing) -> Result<(), HandlerError> {
        Ok(())
    }

    async fn delete(&self, _: &Context, item: &Ref, old: &Thing) -> Result<(), HandlerError> {
        let process = process_of(old)?;
        end_all(&process.tag).await?;
        point::pass("within", item);
        Ok(remove_address(process).await?)
    }

    async fn needs_recreate(&self, _: &Ref, old: &Thing, new: &Thing) -> Result<bool, HandlerError> {
        Ok(old != new)
    }

    async fn observe(&self, _: &Ref, known: &Thing) -> Observed<Thing> {
        let Ok(process) = process_of(known) else {
            return Observed::Absent;
        };
        let running = running(&process.tag);
        match running.into_iter().next() {
            // One that has no address is not ready: it counts as not there, and is ended before the next starts.
            Some((_, found)) if found.address.exists() => Observed::Present(Thing::Server(found)),
            _ => match end_all(&process.tag).await {
                Ok(()) => gone(process).await,
                Err(_) => Observed::Unclear("does not end".to_owned()),
            },
        }
    }
}

/// Removes everything that a dead server has left.
async fn gone(process: &Process) -> Observed<Thing> {
    match remove_address(process).await {
        Ok(()) => Observed::Absent,
        Err(error) => Observed::Unclear(error.to_string()),
    }
}

/// Removes the address of a server, also one that it had only half written.
async fn remove_address(process: &Process) -> std::io::Result<()> {
    for path in [&crate::serve::part_of(&process.address), &process.address] {
        match tokio::fs::remove_file(path).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn process_of(thing: &Thing) -> Result<&Process, HandlerError> {
    match thing {
        Thing::Server(process) => Ok(process),
        _ => Err(HandlerError::new("expected a server")),
    }
}

/// The servers with this tag, with what they were started with.
fn running(tag: &str) -> Vec<(i32, Process)> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, started_as(pid, tag)?)))
        .collect()
}

/// Returns the command line of a process, if it is a server with this tag. One that has ended has no arguments.
fn started_as(pid: i32, tag: &str) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> = line.split(|&byte| byte == 0).collect();
    let [_, b"serve", folder, settings, address, found, ..] = words.as_slice() else {
        return None;
    };
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    (*found == tag.as_bytes()).then(|| Process {
        folder: path(folder),
        settings: path(settings),
        address: path(address),
        tag: tag.to_owned(),
    })
}

/// Ends the servers with this tag, and waits until they are gone.
async fn end_all(tag: &str) -> Result<(), HandlerError> {
    let tag = tag.to_owned();
    let ended = tokio::task::spawn_blocking(move || -> Result<(), rustix::io::Errno> {
        for (number, _) in running(&tag) {
            let Some(pid) = Pid::from_raw(number) else {
                continue;
            };
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            // The number may have passed to another process before the handle held it.
            if started_as(number, &tag).is_none() {
                continue;
            }
            for signal in [Signal::TERM, Signal::KILL] {
                let _ = pidfd_send_signal(&handle, signal);
                let grace = Timespec {
                    tv_sec: GRACE.as_secs().cast_signed(),
                    tv_nsec: 0,
                };
                let mut ended = [PollFd::new(&handle, PollFlags::IN)];
                if poll(&mut ended, Some(&grace))? > 0 {
                    break;
                }
            }
        }
        Ok(())
    });
    Ok(ended.await??)
}
