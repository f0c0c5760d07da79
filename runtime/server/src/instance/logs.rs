//! Logs of a resource's runs: those on disk, and new lines.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use watershed_api::documents::{LogLine, LogsDocument, Time};
use watershed_api::{Answer, Code, Problem, Reply};
use watershed_controller::Uid;
use watershed_controller::history::HistoryRow;

use super::{Instance, read};
use crate::logs;
use crate::report::document::Project;
use crate::report::{Entry, names};
use crate::socket::Replies;

/// The part of what was said before that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    /// Lines at most.
    pub(super) limit: u64,
    /// The time since which they were said.
    pub(super) since: Option<Time>,
}

impl Last {
    pub(super) fn lines(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

impl Instance {
    /// Returns the last log lines of a resource, by `name` or `kind/name`: at most `limit` lines, the oldest first.
    /// Kept only in a process that logs through [`logs::layer`](crate::logs::layer).
    ///
    /// # Errors
    /// When there is and was no such resource or there are several, or the files can't be read.
    pub async fn logs(&self, name: &str, limit: usize) -> Result<Vec<LogLine>, Problem> {
        let uid = self.said_by(name).await?;
        read_lines(&self.logs, uid, limit).await
    }

    /// Follows the log lines of a resource from now on.
    ///
    /// # Errors
    /// As [`logs`](Self::logs).
    pub async fn follow_logs(&self, name: &str) -> Result<LogFollower, Problem> {
        let uid = self.said_by(name).await?;
        Ok(self.follower(uid))
    }

    fn follower(&self, uid: Uid) -> LogFollower {
        LogFollower {
            written: logs::follow(),
            folder: self.logs.clone(),
            uid,
            told: HashSet::new(),
            last: 0,
            leaving: self.leaving.clone(),
        }
    }

    /// Ends what follows logs, for it would never end by itself.
    pub(crate) fn end_followers(&self) {
        self.leaving.cancel();
    }

    /// Answers `logs`.
    pub(super) async fn tell_logs(
        &self,
        name: &str,
        last: Last,
        follow: bool,
        replies: &Replies,
    ) -> Result<Answer, Problem> {
        let uid = self.said_by(name).await?;
        // Before the files are read, so that nothing is said in between.
        let mut follower = self.follower(uid);
        let lines = last_lines(&self.logs, uid, last).await?;
        if !follow {
            return Ok(document(&self.project, lines));
        }
        follower.note_told(&lines);
        let _ = replies.send(Reply::Lines(lines)).await;
        loop {
            // Both arms are cancel-safe: the follower keeps its place.
            let lines = tokio::select! {
                () = replies.closed() => None,
                lines = follower.next() => lines,
            };
            match lines {
                Some(lines) => drop(replies.send(Reply::Lines(lines)).await),
                None => return Ok(document(&self.project, Vec::new())),
            }
        }
    }

    async fn said_by(&self, name: &str) -> Result<Uid, Problem> {
        let entries = self.entries();
        let found = names::resolve_with_deleted(&entries, name).map(|entry| entry.row.uid);
        match found {
            Ok(uid) => Ok(uid),
            Err(refusal) => {
                let all = self.controller.recent_history(read::MOST_SEARCHED).await;
                let all = all.map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))?;
                uid_among(all, name, refusal)
            }
        }
    }
}

/// Lines of one resource as they are said.
#[derive(Debug)]
pub struct LogFollower {
    written: Option<broadcast::Receiver<logs::Written>>,
    folder: PathBuf,
    uid: Uid,
    /// The lines that were read from the files already.
    told: HashSet<u64>,
    last: u64,
    leaving: CancellationToken,
}

impl LogFollower {
    /// The next lines; none when the instance is being closed, or the process keeps no logs.
    ///
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<LogLine>> {
        loop {
            let written = self.written.as_mut()?;
            let received = tokio::select! {
                biased;
                received = written.recv() => received,
                () = self.leaving.cancelled() => return None,
            };
            match received {
                Ok(line) if line.uid != self.uid.0 || *line.folder != *self.folder => {}
                Ok(line) if self.told.contains(&line.line.id) => {}
                Ok(line) => {
                    self.last = self.last.max(line.line.id);
                    return Some(vec![LogLine::clone(&line.line)]);
                }
                // Too much was said meanwhile: the files have it.
                Err(RecvError::Lagged(_)) => {
                    let lines = logs::read(&self.folder, self.uid.0, usize::MAX).await;
                    let last = self.last;
                    let missed = lines.unwrap_or_default().into_iter();
                    let missed: Vec<LogLine> = missed.filter(|line| line.id > last).collect();
                    self.note_told(&missed);
                    if !missed.is_empty() {
                        return Some(missed);
                    }
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn note_told(&mut self, lines: &[LogLine]) {
        self.told = lines.iter().map(|line| line.id).collect();
        self.last = lines.iter().map(|line| line.id).fold(self.last, u64::max);
    }
}

/// Lines of a folder that nobody runs.
///
/// # Errors
/// When there is and was no such resource or there are several, or the files can't be read.
pub(super) async fn logs_at_rest(
    project: &Project,
    folder: &Path,
    entries: &[Entry],
    recent: impl AsyncFnOnce() -> Result<Vec<HistoryRow>, Problem>,
    name: &str,
    last: Last,
) -> Result<Answer, Problem> {
    let uid = match names::resolve_with_deleted(entries, name) {
        Ok(entry) => entry.row.uid,
        Err(refusal) => uid_among(recent().await?, name, refusal)?,
    };
    Ok(document(project, last_lines(folder, uid, last).await?))
}

/// The resource that was last called so.
fn uid_among(runs: Vec<HistoryRow>, name: &str, refusal: Problem) -> Result<Uid, Problem> {
    let unknown = refusal.clone();
    let runs = read::uid_of_removed(runs, Some(name), refusal)?;
    runs.first().map(|run| run.uid).ok_or(unknown)
}

async fn last_lines(folder: &Path, uid: Uid, last: Last) -> Result<Vec<LogLine>, Problem> {
    let mut lines = read_lines(folder, uid, last.lines()).await?;
    if let Some(since) = last.since {
        lines.retain(|line| line.at >= since);
    }
    Ok(lines)
}

async fn read_lines(folder: &Path, uid: Uid, limit: usize) -> Result<Vec<LogLine>, Problem> {
    let lines = logs::read(folder, uid.0, limit).await;
    lines.map_err(|error| {
        Problem::new(
            Code::Unavailable,
            format!("can't read the logs in `{}`: {error}", folder.display()),
        )
    })
}

fn document(project: &Project, lines: Vec<LogLine>) -> Answer {
    Answer::Logs(Box::new(LogsDocument {
        schema: LogsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        lines,
        output: Vec::new(),
    }))
}

/// The instance's place in the logs of the process.
pub(super) fn span(folder: &Path) -> tracing::Span {
    tracing::info_span!("instance", logs = %folder.display())
}

const _: () = {
    // The span's name is what the layer looks for.
    assert!(matches!(logs::INSTANCE_SPAN.as_bytes(), b"instance"));
};
