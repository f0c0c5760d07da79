//! The thread that writes log lines, and the queue to it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;

use tokio::sync::broadcast;
use uuid::Uuid;
use watershed_api::documents::LogLine;

use super::{AGE, FOLDER_BYTES, files};

/// Most lines that wait to be written; when the disk is too slow for long, further lines are dropped.
const QUEUE: usize = 8_192;
/// Most lines that are written together.
const BATCH: usize = 512;
/// Most lines that a follower may lag behind; beyond that it reads the file again.
const FOLLOWED: usize = 1_024;

/// A line that was written, with its folder and resource.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) folder: Arc<Path>,
    pub(crate) uid: Uuid,
    pub(crate) line: Arc<LogLine>,
}

enum Message {
    Line(Written),
    Flush(SyncSender<()>),
}

/// The thread that writes log lines, and the queue to it, which never blocks.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Message>,
    counts: Arc<Counts>,
    written: broadcast::Sender<Written>,
}

#[derive(Debug, Default)]
struct Counts {
    dropped: AtomicU64,
    last_id: AtomicU64,
}

impl Writer {
    /// Starts the thread, which ends with the process. Call [`flush`](Self::flush) before the end to lose nothing.
    pub(super) fn start() -> Self {
        let (queue, lines) = mpsc::sync_channel(QUEUE);
        let (written, _) = broadcast::channel(FOLLOWED);
        let counts = Arc::new(Counts::default());
        let (counting, telling) = (Arc::clone(&counts), written.clone());
        let started = thread::Builder::new()
            .name("watershed-logs".to_owned())
            .spawn(move || write(&lines, &counting, &telling));
        // Without a thread the queue has no reader, and every line is counted as dropped.
        drop(started);
        Self {
            queue,
            counts,
            written,
        }
    }

    pub(super) fn dropped(&self) -> u64 {
        self.counts.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn follow(&self) -> broadcast::Receiver<Written> {
        self.written.subscribe()
    }

    /// Returns the id of the next line: the microseconds since 1970, increased where needed so that no id repeats.
    pub(super) fn next_id(&self, now_us: u64) -> u64 {
        let last = &self.counts.last_id;
        let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
            Some(now_us.max(last + 1))
        });
        before.map_or(now_us, |last| now_us.max(last + 1))
    }

    /// Queues a line, or drops it if the queue is full.
    pub(super) fn take(&self, folder: &Arc<Path>, uid: Uuid, line: LogLine) {
        let written = Written {
            folder: Arc::clone(folder),
            uid,
            line: Arc::new(line),
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.queue.try_send(Message::Line(written))
        {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines queued before are written.
    pub(super) fn flush(&self) {
        let (done, is_done) = mpsc::sync_channel(1);
        if self.queue.send(Message::Flush(done)).is_ok() {
            let _ = is_done.recv();
        }
    }
}

/// Writes queued lines until nobody can log any more.
fn write(lines: &Receiver<Message>, counts: &Counts, written: &broadcast::Sender<Written>) {
    let mut folders = HashMap::new();
    while let Ok(first) = lines.recv() {
        let mut batch = Vec::new();
        let mut flushes = Vec::new();
        for message in std::iter::once(first).chain(lines.try_iter().take(BATCH)) {
            match message {
                Message::Line(line) => batch.push(line),
                Message::Flush(done) => flushes.push(done),
            }
        }
        let lost = write_batch(&batch, &mut folders);
        counts.dropped.fetch_add(lost, Ordering::Relaxed);
        for line in batch {
            let _ = written.send(line);
        }
        for done in flushes {
            let _ = done.try_send(());
        }
    }
}

/// The lines of a batch for one file.
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    count: u64,
}

/// Writes a batch, with one append for each file. Returns the number of lines lost.
fn write_batch(batch: &[Written], folders: &mut HashMap<Arc<Path>, u64>) -> u64 {
    let mut by_file: BTreeMap<(&Arc<Path>, Uuid), Lines> = BTreeMap::new();
    let mut lost = 0;
    for line in batch {
        let Lines { bytes, count } = by_file.entry((&line.folder, line.uid)).or_default();
        let before = bytes.len();
        if serde_json::to_writer(&mut *bytes, line.line.as_ref()).is_err() {
            bytes.truncate(before);
            lost += 1;
            continue;
        }
        bytes.push(b'\n');
        *count += 1;
    }
    for ((folder, uid), Lines { bytes, count }) in by_file {
        match files::append(folder, uid, &bytes) {
            Ok(grown) => keep_bounds(folder, grown, folders),
            Err(_) => lost += count,
        }
    }
    lost
}

/// Adds the growth to the known size of a folder, and removes old files if it is too large.
fn keep_bounds(folder: &Arc<Path>, grown: i64, folders: &mut HashMap<Arc<Path>, u64>) {
    let total = match folders.get(folder) {
        Some(total) => total.saturating_add_signed(grown),
        None => files::sweep(folder, AGE, FOLDER_BYTES),
    };
    let total = match total > FOLDER_BYTES {
        // More room than is needed at once, so that the next sweep is far away.
        true => files::sweep(folder, AGE, FOLDER_BYTES / 10 * 9),
        false => total,
    };
    folders.insert(Arc::clone(folder), total);
}

#[cfg(test)]
mod tests {
    use super::*;
    use watershed_api::documents::{LogLevel, ResourceName, Time};

    fn line(id: u64) -> LogLine {
        LogLine {
            id,
            at: Time::from_millis(1),
            level: LogLevel::Info,
            resource: ResourceName {
                kind: "model".into(),
                name: "a".into(),
            },
            run: "1-1".into(),
            message: "said".into(),
            fields: BTreeMap::new(),
            target: "t".into(),
        }
    }

    #[test]
    fn what_is_flushed_is_written_in_order_and_followed() {
        let temp = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = temp.path().join("logs").into();
        let writer = Writer::start();
        let mut following = writer.follow();
        for id in 0..1_000 {
            writer.take(&folder, Uuid::nil(), line(id));
        }
        writer.flush();
        let read = files::read(&folder, Uuid::nil(), usize::MAX).unwrap();
        assert_eq!(
            read.iter().map(|line| line.id).collect::<Vec<_>>(),
            (0..1_000).collect::<Vec<_>>()
        );
        assert_eq!(writer.dropped(), 0);
        assert_eq!(following.blocking_recv().unwrap().line.id, 0);
    }

    #[test]
    fn what_the_disk_refuses_is_counted_and_nobody_waits() {
        let temp = tempfile::tempdir().unwrap();
        let folder: Arc<Path> = temp.path().join("gone/logs").into();
        let writer = Writer::start();
        for id in 0..3 * QUEUE as u64 {
            writer.take(&folder, Uuid::nil(), line(id));
        }
        writer.flush();
        assert_eq!(writer.dropped(), 3 * QUEUE as u64);
    }

    #[test]
    fn numbers_of_lines_rise_although_the_clock_stands_or_goes_back() {
        let writer = Writer::start();
        assert_eq!([10, 10, 5, 20].map(|now| writer.next_id(now)), [10, 11, 12, 20]);
    }
}
