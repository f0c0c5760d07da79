//! Results of checks: the latest ones of each, stored beside the output of programs (rule W10).
//!
//! A replica has one file, a line for each result. Lines are added by a thread of their own and never synced: no check waits
//! for a disk, and a crash of the machine may cost the last of them. What is damaged or too long is left out when the file
//! is written anew, which happens with the first result of a program's life and whenever it has grown to twice its bound.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use watershed_controller::message::{from_json, to_json};
use watershed_core::Timestamp;
use watershed_locks::Unpoisoned;

use crate::policy::health::Probed;
use crate::settings::CheckSpec;

/// The most results that are kept of one check of one replica.
pub const RESULTS_MAX: usize = 50;
/// Time for which results are kept.
pub const RESULTS_FOR: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The most bytes that are read at the end of a file. A line has about a hundred.
const MOST_READ: u64 = 1 << 20;
/// The most results that wait for the disk. Further ones are dropped.
const MOST_WAITING: usize = 4_096;
/// Name of the folder below the output folder.
const FOLDER: &str = "checks";

/// The outcome of one probe, as stored on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Digest of the check's probe.
    pub check: String,
    /// Counter of the start that was probed.
    pub start: u64,
    /// Time of the result.
    pub at: Timestamp,
    /// Result of the probe.
    pub result: Probed,
}

/// Returns the kept results of a replica's checks, in the order of `checks`, each with the oldest first. Missing or
/// damaged lines are left out.
pub fn results_of(folder: &Path, uid: &str, checks: &[CheckSpec], now: Timestamp) -> Vec<Vec<CheckResult>> {
    let lines = read(&file_of(folder, uid)).unwrap_or_default();
    let of = |check: &CheckSpec| last_of(&lines, &check.digest(), now).cloned().collect();
    checks.iter().map(of).collect()
}

/// Removes the results of a replica, and the folder if it is empty.
pub(crate) fn remove(folder: &Path, uid: &str) {
    // There are none if nothing was checked.
    if fs::remove_file(file_of(folder, uid)).is_ok() {
        let _ = fs::remove_dir(folder.join(FOLDER));
    }
}

/// Removes the results of replicas that no longer exist, left by a program that ended early.
pub(crate) fn sweep(folder: &Path, is_there: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let uid = name.to_str().and_then(|name| name.split('.').next());
        if !uid.is_some_and(&is_there) {
            // What can't be removed now is removed by the next program.
            let _ = fs::remove_file(entry.path());
        }
    }
    // It stays where there are others.
    let _ = fs::remove_dir(folder.join(FOLDER));
}

fn file_of(folder: &Path, uid: &str) -> PathBuf {
    folder.join(FOLDER).join(format!("{uid}.jsonl"))
}

/// Returns the results in a file, skipping damaged lines.
fn read(path: &Path) -> io::Result<Vec<CheckResult>> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(MOST_READ);
    file.seek(SeekFrom::Start(from))?;
    let mut text = Vec::new();
    file.take(MOST_READ).read_to_end(&mut text)?;
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines.filter_map(|line| from_json(line).ok()).collect())
}

/// Returns the results of one check that are within the limits.
fn last_of<'a>(
    lines: &'a [CheckResult],
    check: &str,
    now: Timestamp,
) -> impl Iterator<Item = &'a CheckResult> {
    let of: Vec<&CheckResult> = lines
        .iter()
        .filter(|line| line.check == check && line.at.after(RESULTS_FOR) > now)
        .collect();
    let surplus = of.len().saturating_sub(RESULTS_MAX);
    of.into_iter().skip(surplus)
}

/// The results file of one replica, open while its checks run.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    /// Digests of the replica's checks. Compaction drops results of others.
    checks: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of lines in the file; none before the first read or after a failed write.
    lines: Option<usize>,
    is_closed: bool,
}

impl ResultFile {
    pub(crate) fn new(folder: &Path, uid: &str, checks: &[CheckSpec]) -> Self {
        Self {
            path: file_of(folder, uid),
            checks: checks.iter().map(CheckSpec::digest).collect(),
            state: Mutex::default(),
        }
    }

    /// Returns the digest of a check by its index.
    pub(crate) fn digest(&self, number: usize) -> Option<&String> {
        self.checks.get(number)
    }

    /// Closes the file: waiting results are dropped, so that a removed file is not created again.
    pub(crate) fn close(&self) {
        self.state.lock().unpoisoned().is_closed = true;
    }

    fn add(&self, result: &CheckResult) -> io::Result<()> {
        let mut state = self.state.lock().unpoisoned();
        if state.is_closed {
            return Ok(());
        }
        let lines = match state.lines.take() {
            Some(lines) if lines < 2 * RESULTS_MAX * self.checks.len() => lines,
            _ => self.write_anew(result.at)?,
        };
        let mut file = OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(&line(result))?;
        state.lines = Some(lines + 1);
        Ok(())
    }

    /// Rewrites the file with the results to keep, and returns their number.
    fn write_anew(&self, now: Timestamp) -> io::Result<usize> {
        let before = match read(&self.path) {
            Ok(before) => before,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(folder) = self.path.parent() {
                    fs::create_dir_all(folder)?;
                }
                return Ok(0);
            }
            Err(error) => return Err(error),
        };
        let kept = self.checks.iter().flat_map(|check| last_of(&before, check, now));
        let mut kept: Vec<&CheckResult> = kept.collect();
        kept.sort_by_key(|result| result.at);
        let part = self.path.with_extension("part");
        fs::write(
            &part,
            kept.iter().flat_map(|result| line(result)).collect::<Vec<u8>>(),
        )?;
        fs::rename(&part, &self.path)?;
        Ok(kept.len())
    }
}

fn line(result: &CheckResult) -> Vec<u8> {
    // Words and numbers have an encoding always.
    let mut line = to_json(result).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The thread that writes results to disk. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct ResultWriter {
    waiting: Option<SyncSender<(Arc<ResultFile>, CheckResult)>>,
}

impl ResultWriter {
    /// Starts the thread, which ends with the last sender. If that fails, no results are kept.
    pub(crate) fn start() -> Self {
        let (waiting, work) = sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new().name("check results".to_owned());
        let started = thread.spawn(move || write_all(&work));
        Self {
            waiting: started.is_ok().then_some(waiting),
        }
    }

    /// Queues a result for writing, without blocking.
    pub(crate) fn add(&self, file: &Arc<ResultFile>, result: CheckResult) {
        if let Some(waiting) = &self.waiting {
            // A disk that is so slow costs results, and no check.
            let _ = waiting.try_send((Arc::clone(file), result));
        }
    }
}

fn write_all(work: &Receiver<(Arc<ResultFile>, CheckResult)>) {
    while let Ok((file, result)) = work.recv() {
        if let Err(error) = file.add(&result) {
            tracing::debug!(%error, path = %file.path.display(), "a result of a check was not kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::health::Check;
    use crate::settings::Question;

    fn check(name: &str) -> CheckSpec {
        CheckSpec {
            question: Question::Command(vec![name.to_owned()]),
            timeout: Duration::from_secs(1),
            check: Check::default(),
        }
    }

    fn result(of: &CheckSpec, at: i64) -> CheckResult {
        CheckResult {
            check: of.digest(),
            start: 1,
            at: Timestamp(at),
            result: Probed::Success,
        }
    }

    fn times(found: &[CheckResult]) -> Vec<i64> {
        found.iter().map(|one| one.at.0).collect()
    }

    /// Covers W10: fifty results of each check, in a bounded file.
    #[test]
    fn the_last_fifty_results_of_each_check_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let checks = [check("a"), check("b")];
        let file = ResultFile::new(folder.path(), "u", &checks);
        for at in 0..1_000 {
            file.add(&result(&checks[usize::from(at % 4 == 0)], at)).unwrap();
        }
        let found = results_of(folder.path(), "u", &checks, Timestamp(1_000));
        assert_eq!((found[0].len(), found[1].len()), (RESULTS_MAX, RESULTS_MAX));
        assert_eq!(found[0].last().map(|one| one.at), Some(Timestamp(999)));
        assert_eq!(found[1].last().map(|one| one.at), Some(Timestamp(996)));
        let lines = fs::read_to_string(file_of(folder.path(), "u")).unwrap();
        assert!(lines.lines().count() <= 2 * RESULTS_MAX * checks.len());
    }

    /// Covers W10: the time for which results are kept.
    #[test]
    fn results_are_kept_for_seven_days() {
        let folder = tempfile::tempdir().unwrap();
        let checks = [check("a")];
        let week = i64::try_from(RESULTS_FOR.as_millis()).unwrap();
        let file = ResultFile::new(folder.path(), "u", &checks);
        for at in [0, 10, week] {
            file.add(&result(&checks[0], at)).unwrap();
        }
        let found = |now: i64| times(&results_of(folder.path(), "u", &checks, Timestamp(now))[0]);
        assert_eq!(found(week - 1), [0, 10, week]);
        assert_eq!(found(week + 5), [10, week]);
        // The next program's first result drops them from the file, too.
        let file = ResultFile::new(folder.path(), "u", &checks);
        file.add(&result(&checks[0], week + 20)).unwrap();
        assert_eq!(read(&file.path).unwrap().len(), 2);
    }

    /// Covers W10: damaged lines.
    #[test]
    fn a_torn_or_damaged_file_costs_the_damaged_lines_alone() {
        let folder = tempfile::tempdir().unwrap();
        let checks = [check("a")];
        let path = file_of(folder.path(), "u");
        for damage in [
            &b"{\"check\":\"a"[..],
            b"\0\0\0\0",
            b"\n\n[]\nnull\n",
            b"\xff\xfe\n{}",
        ] {
            let file = ResultFile::new(folder.path(), "u", &checks);
            file.add(&result(&checks[0], 1)).unwrap();
            let mut damaged = OpenOptions::new().append(true).open(&path).unwrap();
            damaged.write_all(damage).unwrap();
            let found = results_of(folder.path(), "u", &checks, Timestamp(2));
            assert_eq!(times(&found[0]), [1], "{damage:?}");
            let file = ResultFile::new(folder.path(), "u", &checks);
            file.add(&result(&checks[0], 2)).unwrap();
            let found = results_of(folder.path(), "u", &checks, Timestamp(2));
            assert_eq!(times(&found[0]), [1, 2], "{damage:?}");
            fs::remove_file(&path).unwrap();
        }
        assert_eq!(results_of(folder.path(), "u", &checks, Timestamp(2)), [[]]);
        fs::create_dir(&path).unwrap();
        assert_eq!(results_of(folder.path(), "u", &checks, Timestamp(2)), [[]]);
        let file = ResultFile::new(folder.path(), "u", &checks);
        file.add(&result(&checks[0], 2)).unwrap_err();
    }

    #[test]
    fn results_of_questions_that_are_no_longer_asked_go() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(check);
        let file = ResultFile::new(folder.path(), "u", std::slice::from_ref(&a));
        file.add(&result(&a, 1)).unwrap();
        let file = ResultFile::new(folder.path(), "u", std::slice::from_ref(&b));
        file.add(&result(&b, 2)).unwrap();
        let found = results_of(folder.path(), "u", &[a, b], Timestamp(2));
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
    }

    /// Covers W14: results of removed replicas.
    #[test]
    fn a_removed_file_is_not_written_again_and_what_belongs_to_nothing_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let checks = [check("a")];
        let [one, other] = ["u", "v"].map(|uid| ResultFile::new(folder.path(), uid, &checks));
        one.add(&result(&checks[0], 1)).unwrap();
        other.add(&result(&checks[0], 1)).unwrap();
        one.close();
        remove(folder.path(), "u");
        one.add(&result(&checks[0], 2)).unwrap();
        assert!(!one.path.exists());
        sweep(folder.path(), |uid| uid == "v");
        assert!(other.path.exists());
        sweep(folder.path(), |_| false);
        assert!(!other.path.exists() && !folder.path().join(FOLDER).exists());
    }
}
