//! Starting a process: limits, environment, output and mark.
//!
//! The library's own [`Command`] does it, by `posix_spawn` where it can: no code of ours runs between fork and exec. What
//! a process inherits is therefore set on the shim before, for as long as the call takes (soft limits of files and of file locks, which no
//! call of `posix_spawn` needs), or on the process right after it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Access;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::cgroup::Delegated;
use crate::mark::Mark;
use crate::protocol::{Failure, FailureClass, MemoryGuard, Output, Spawn};
use crate::tag::{TAG_VARIABLE, Tag};

/// A started process.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// Process id, which is also its process group's id.
    pub(crate) pid: Pid,
    /// Enforcement of the memory limit.
    pub(crate) memory: MemoryGuard,
}

/// Starts a program in its own process group, with empty standard input and a mark.
///
/// Without a limit of open files it gets `files`.
///
/// # Errors
/// When it can't be started; then no process is left.
pub(crate) fn spawn(
    order: &Spawn,
    tag: &Tag,
    groups: Option<&Delegated>,
    files: Option<u64>,
) -> Result<Spawned, Failure> {
    let (name, arguments) = order
        .command
        .split_first()
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| failure(FailureClass::BadCommand, "the command is empty".to_owned()))?;
    if !order.cwd.is_dir() || rustix::fs::access(&order.cwd, Access::EXEC_OK).is_err() {
        let message = format!("`{}` is no folder that can be entered", order.cwd.display());
        return Err(failure(FailureClass::BadFolder, message));
    }
    let program = program(name, order)?;
    let mut command = Command::new(&program);
    command.arg0(name).args(arguments).env_clear();
    command.envs(order.environment.iter().map(|(name, value)| (name, value)));
    command.env(TAG_VARIABLE, tag.to_string());
    command.current_dir(&order.cwd).process_group(0);
    let (stdout, stderr) = output(order.output.as_ref())?;
    command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    let group = order.limits.memory.and_then(|bytes| {
        let groups = groups?;
        groups.make(&order.id, bytes).ok().map(|()| groups)
    });
    let mark = Mark::of(&tag.instance, &order.id).limit();
    let spawned = with_soft_limit(Resource::Locks, Some(mark), || {
        with_soft_limit(Resource::Nofile, order.limits.open_files.or(files), || {
            command.spawn()
        })
    });
    let pid = match spawned {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            group.map(|groups| groups.remove(&order.id));
            return Err(classify(&error, &program));
        }
    };
    Ok(Spawned {
        pid,
        memory: limit(order, pid, group),
    })
}

/// Applies the limits that can only be set on an existing process. Returns the enforcement of the memory limit.
fn limit(order: &Spawn, pid: Pid, group: Option<&Delegated>) -> MemoryGuard {
    if let Some(files) = order.limits.open_files {
        let both = limited(Resource::Nofile, files);
        let _ = prlimit(Some(pid), Resource::Nofile, both);
    }
    let Some(bytes) = order.limits.memory else {
        return MemoryGuard::None;
    };
    if group.is_some_and(|group| group.enter(&order.id, pid.as_raw_pid().unsigned_abs()).is_ok()) {
        return MemoryGuard::Cgroup;
    }
    match prlimit(Some(pid), Resource::Data, limited(Resource::Data, bytes)) {
        Ok(_) => MemoryGuard::DataLimit,
        // It has ended already.
        Err(_) => MemoryGuard::None,
    }
}

/// Returns a limit for both soft and hard, capped at the shim's own hard limit.
fn limited(resource: Resource, value: u64) -> Rlimit {
    let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let value = Some(value.min(most));
    Rlimit {
        current: value,
        maximum: value,
    }
}

/// Calls a function under another soft limit, which a process started in it inherits.
fn with_soft_limit<T>(resource: Resource, value: Option<u64>, call: impl FnOnce() -> T) -> T {
    let before = getrlimit(resource);
    let wanted = value.map(|value| value.min(before.maximum.unwrap_or(u64::MAX)));
    if let Some(value) = wanted {
        let soft = Rlimit {
            current: Some(value),
            maximum: before.maximum,
        };
        let _ = setrlimit(resource, soft);
    }
    let result = call();
    if wanted.is_some() {
        let _ = setrlimit(resource, before);
    }
    result
}

/// Finds a program: a path below the working directory, or a file in `PATH`.
fn program(name: &str, order: &Spawn) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        let path = order.cwd.join(name);
        return match check(&path) {
            Ok(()) => Ok(path),
            Err(class) => Err(unusable(class, &path)),
        };
    }
    let path = order.environment.iter().find(|(key, _)| key == "PATH");
    let path = path.map_or("", |(_, value)| value.as_str());
    let mut found = unusable(FailureClass::ProgramMissing, Path::new(name));
    for folder in path.split(':').filter(|folder| !folder.is_empty()) {
        let candidate = order.cwd.join(folder).join(name);
        match check(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(FailureClass::NotExecutable) => {
                found = unusable(FailureClass::NotExecutable, &candidate);
            }
            Err(_) => {}
        }
    }
    Err(found)
}

fn check(path: &Path) -> Result<(), FailureClass> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            rustix::fs::access(path, Access::EXEC_OK).map_err(|_| FailureClass::NotExecutable)
        }
        Ok(_) => Err(FailureClass::NotExecutable),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(FailureClass::NotExecutable),
        Err(_) => Err(FailureClass::ProgramMissing),
    }
}

fn unusable(class: FailureClass, path: &Path) -> Failure {
    let path = path.display();
    let message = match class {
        FailureClass::ProgramMissing => format!("there is no program `{path}`"),
        _ => format!("`{path}` is not executable"),
    };
    failure(class, message)
}

/// Opens the output file for standard output and standard error.
fn output(output: Option<&Output>) -> Result<(Stdio, Stdio), Failure> {
    let Some(output) = output else {
        return Ok((Stdio::null(), Stdio::null()));
    };
    let open = || -> io::Result<(File, File)> {
        if let Some(folder) = output.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Appended to, so that it can be truncated under the process.
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&output.path)?;
        Ok((file.try_clone()?, file))
    };
    match open() {
        Ok((stdout, stderr)) => Ok((stdout.into(), stderr.into())),
        Err(error) => {
            let message = format!("`{}` can't be written: {error}", output.path.display());
            Err(failure(FailureClass::BadOutput, message))
        }
    }
}

fn classify(error: &io::Error, program: &Path) -> Failure {
    let class = match error.raw_os_error().map(Errno::from_raw_os_error) {
        // The interpreter in its first line, as the program itself was there a moment ago.
        Some(Errno::NOENT | Errno::NOTDIR) => FailureClass::ProgramMissing,
        Some(Errno::ACCESS | Errno::PERM | Errno::NOEXEC) => FailureClass::NotExecutable,
        Some(Errno::TOOBIG | Errno::NAMETOOLONG) => FailureClass::BadCommand,
        None if error.kind() == io::ErrorKind::InvalidInput => FailureClass::BadCommand,
        _ => FailureClass::ForkFailed,
    };
    failure(
        class,
        format!("`{}` can't be started: {error}", program.display()),
    )
}

fn failure(class: FailureClass, message: String) -> Failure {
    Failure { class, message }
}
