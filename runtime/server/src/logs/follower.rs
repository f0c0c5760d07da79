//! Log lines of one resource, as they are written.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tokio::sync::broadcast::{self, error::RecvError};
use tokio_util::sync::CancellationToken;
use watershed_api::documents::LogLine;
use watershed_controller::Uid;

use super::Written;

/// A stream of one resource's log lines as they are written.
#[derive(Debug)]
pub struct LogFollower {
    written: Option<broadcast::Receiver<Written>>,
    folder: PathBuf,
    uid: Uid,
    /// Ids of lines that were already read from the files.
    told: HashSet<u64>,
    last: u64,
    leaving: CancellationToken,
}

impl LogFollower {
    /// Begins to follow the log lines of a resource, until `leaving` is cancelled.
    pub(crate) fn begin(folder: PathBuf, uid: Uid, leaving: CancellationToken) -> Self {
        Self {
            written: super::follow(),
            folder,
            uid,
            told: HashSet::new(),
            last: 0,
            leaving,
        }
    }

    /// Returns the next lines; none when the instance is closing, or the process keeps no logs.
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
                    let lines = super::read(&self.folder, self.uid.0, usize::MAX).await;
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

    /// Marks lines as already reported, so that they are skipped.
    pub(crate) fn note_told(&mut self, lines: &[LogLine]) {
        self.told = lines.iter().map(|line| line.id).collect();
        self.last = lines.iter().map(|line| line.id).fold(self.last, u64::max);
    }
}

/// Returns the tracing span of an instance, by which its log lines are found.
pub(crate) fn span(folder: &Path) -> tracing::Span {
    tracing::info_span!("instance", logs = %folder.display())
}

const _: () = {
    // The span's name is what the layer looks for.
    assert!(matches!(super::INSTANCE_SPAN.as_bytes(), b"instance"));
};
