//! The output of jobs and services.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use watershed_controller::{Resource, Timestamp};
use watershed_reconcilers::secrets::Secrets;
use watershed_workloads::job::{self, JobRecord};
use watershed_workloads::output::{Follower, file_of};
use watershed_workloads::replica::{self, ReplicaRecord, ReplicaSpec};
use watershed_workloads::service;

use super::Instance;
use super::logs::Last;
use crate::documents::{LogsDocument, OutputLine};
use crate::exit::Exit;
use crate::report::document::Project;
use crate::report::{Entry, names};
use crate::socket::{Answer, ProgramOutput, Refusal, Replies, Reply};

/// The pause between two looks at a file that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The start of a program whose output is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    /// The number of the replica, so that they stand in their order.
    number: u64,
    /// The name of the job or replica.
    program: String,
    uid: String,
    counter: u64,
}

/// Finds the starts that are meant; none if the name is not that of a program.
///
/// # Errors
/// When the name is unknown or means several, or there is no such replica.
fn sources(entries: &[Entry], name: &str, part: ProgramOutput) -> Result<Option<Vec<Source>>, Refusal> {
    let row = match names::resolve_with_deleted(entries, name) {
        Ok(entry) => &entry.row,
        // Maybe it was one that is gone: those have no output.
        Err(_) => return Ok(None),
    };
    let counter = |counter: u64| counter.saturating_sub(u64::from(part.previous));
    let of_replica = |entry: &Entry| {
        let spec = Resource::spec_of::<ReplicaSpec>(&entry.row).ok()?;
        let record = Resource::state_of::<ReplicaRecord>(&entry.row).ok().flatten()?;
        let is_meant = part.replica.is_none_or(|number| number == spec.number);
        is_meant.then(|| Source {
            number: spec.number,
            program: entry.row.name.to_string(),
            uid: entry.row.uid.to_string(),
            counter: counter(record.counter),
        })
    };
    let mut found: Vec<Source> = match row.kind.as_str() {
        job::KIND => {
            let record = Resource::state_of::<JobRecord>(row)
                .ok()
                .flatten()
                .unwrap_or_default();
            vec![Source {
                number: 0,
                program: row.name.to_string(),
                uid: row.uid.to_string(),
                counter: counter(record.counter),
            }]
        }
        service::KIND => entries
            .iter()
            .filter(|entry| entry.row.owner == Some(row.uid))
            .filter_map(of_replica)
            .collect(),
        replica::KIND => entries
            .iter()
            .filter(|entry| entry.row.uid == row.uid)
            .filter_map(of_replica)
            .collect(),
        _ => return Ok(None),
    };
    if let (Some(number), true) = (part.replica, found.is_empty()) {
        let refusal = Refusal::new(Exit::Usage, format!("`{name}` has no replica {number}"));
        return Err(refusal.hint(format!("`watershed status {name}` lists them")));
    }
    found.sort();
    Ok(Some(found))
}

/// The followers of the files of sources.
struct Reader<'a> {
    programs: &'a Path,
    secrets: &'a Secrets,
    open: BTreeMap<Source, Follower>,
}

impl Reader<'_> {
    /// Opens sources that were not open, and drops those that are gone. Returns their lines so far.
    fn open(&mut self, sources: Vec<Source>, last: Last) -> Result<Vec<OutputLine>, Refusal> {
        let mut lines = Vec::new();
        self.open.retain(|source, _| sources.contains(source));
        for source in sources {
            if self.open.contains_key(&source) {
                continue;
            }
            let path = file_of(self.programs, &source.uid, source.counter);
            let since = last.since.map(|since| Timestamp(since.millis()));
            let begun = Follower::begin(path, last.lines(), since);
            let (follower, found) = begun.map_err(|error| unread(&source, &error))?;
            lines.extend(found.into_iter().map(|text| self.line(&source, &text)));
            self.open.insert(source, follower);
        }
        Ok(lines)
    }

    fn more(&mut self) -> Result<Vec<OutputLine>, Refusal> {
        let mut lines = Vec::new();
        let mut open = std::mem::take(&mut self.open);
        for (source, follower) in &mut open {
            let found = follower.more().map_err(|error| unread(source, &error))?;
            lines.extend(found.into_iter().map(|text| self.line(source, &text)));
        }
        self.open = open;
        Ok(lines)
    }

    /// Returns last lines without an end, which a program that lives may still complete.
    fn rest(&mut self) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        for (source, mut follower) in std::mem::take(&mut self.open) {
            lines.extend(follower.rest().map(|text| self.line(&source, &text)));
        }
        lines
    }

    fn line(&self, source: &Source, text: &str) -> OutputLine {
        OutputLine {
            program: source.program.clone(),
            text: self.secrets.redact(text).into_owned(),
        }
    }
}

fn unread(source: &Source, error: &std::io::Error) -> Refusal {
    let message = format!("can't read the output of `{}`: {error}", source.program);
    Refusal::new(Exit::StateFolder, message)
}

/// Returns the output of a program of a folder that nobody runs; none if the name is not that of a program.
///
/// # Errors
/// When there is no such replica, or a file can't be read.
pub(super) fn at_rest(
    project: &Project,
    programs: &Path,
    secrets: &Secrets,
    entries: &[Entry],
    name: &str,
    part: ProgramOutput,
    last: Last,
) -> Result<Option<Answer>, Refusal> {
    let Some(sources) = sources(entries, name, part)? else {
        return Ok(None);
    };
    let mut reader = Reader {
        programs,
        secrets,
        open: BTreeMap::new(),
    };
    let mut lines = reader.open(sources, last)?;
    lines.extend(reader.rest());
    Ok(Some(document(project, lines)))
}

impl Instance {
    /// Answers `logs` of a program; none if the name is not that of one.
    pub(super) async fn tell_output(
        &self,
        name: &str,
        part: ProgramOutput,
        last: Last,
        follow: bool,
        replies: &Replies,
    ) -> Result<Option<Answer>, Refusal> {
        let programs = self.state_path().join(crate::state_folder::PROGRAMS);
        let secrets = self.outputs.secrets();
        let Some(found) = sources(&self.entries(), name, part)? else {
            return Ok(None);
        };
        let mut reader = Reader {
            programs: &programs,
            secrets,
            open: BTreeMap::new(),
        };
        let mut lines = reader.open(found, last)?;
        if !follow {
            lines.extend(reader.rest());
            return Ok(Some(document(&self.project, lines)));
        }
        loop {
            if !lines.is_empty() {
                let _ = replies.send(Reply::Output(std::mem::take(&mut lines))).await;
            }
            tokio::select! {
                () = replies.closed() => break,
                () = self.leaving.cancelled() => break,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            // A start that came meanwhile is shown from its beginning.
            lines = reader.more()?;
            let found = sources(&self.entries(), name, part)?;
            let all = Last {
                limit: u64::MAX,
                since: None,
            };
            lines.extend(reader.open(found.unwrap_or_default(), all)?);
        }
        Ok(Some(document(&self.project, Vec::new())))
    }
}

fn document(project: &Project, output: Vec<OutputLine>) -> Answer {
    Answer::Logs(Box::new(LogsDocument {
        schema: LogsDocument::SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        project: project.name.clone(),
        root: project.root.display().to_string(),
        environment: project.environment.clone(),
        lines: Vec::new(),
        output,
    }))
}
