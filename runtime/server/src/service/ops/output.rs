//! The output of jobs and services.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use watershed_api::documents::{OutputLine, Time};
use watershed_api::request::{LogsRequest, ProgramOutput};
use watershed_api::{Code, Problem};
use watershed_controller::{Resource, Timestamp};
use watershed_core::Row;
use watershed_workloads::Job;
use watershed_workloads::backend::docker::{Containers, Part, Reader as ContainerReader};
use watershed_workloads::job::{self, JobRecord};
use watershed_workloads::output::{Follower, file_of};
use watershed_workloads::replica::{self, ReplicaRecord, ReplicaSpec};
use watershed_workloads::service::{self, ServiceRecord};

use crate::instance::workloads;
use crate::out::Out;
use crate::report::explain::Life;
use crate::report::{Entry, names};
use crate::service::place::Place;

/// The pause between two reads of a followed file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The part of earlier output that is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Last {
    /// Most lines.
    limit: u64,
    /// The time before which lines are left out; none for all lines.
    pub(super) since: Option<Time>,
}

impl Last {
    /// The whole earlier output.
    pub(super) const ALL: Self = Self {
        limit: u64::MAX,
        since: None,
    };

    pub(super) fn of(input: &LogsRequest) -> Self {
        Self {
            limit: input.limit,
            since: input.since,
        }
    }

    pub(super) fn lines(self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }
}

/// The start of a program whose output is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    /// The number of the replica, by which sources are sorted.
    number: u64,
    /// The name of the job or replica.
    program: String,
    uid: String,
    counter: u64,
    in_container: bool,
}

/// Finds the starts whose output is asked for; none if the name is not that of a program.
///
/// # Errors
/// When the name is unknown or means several, or there is no such replica.
fn sources(entries: &[Entry], name: &str, part: ProgramOutput) -> Result<Option<Vec<Source>>, Problem> {
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
            in_container: spec.program.docker.is_some(),
        })
    };
    let mut found: Vec<Source> = match row.kind.as_str() {
        job::KIND => {
            let record = Resource::state_of::<JobRecord>(row)
                .ok()
                .flatten()
                .unwrap_or_default();
            let program = Resource::spec_of::<Job>(row).ok().and_then(|spec| spec.0.program);
            vec![Source {
                number: 0,
                program: row.name.to_string(),
                uid: row.uid.to_string(),
                counter: counter(record.counter),
                in_container: program.is_some_and(|program| program.docker.is_some()),
            }]
        }
        service::KIND => {
            let replicas = entries.iter().filter(|entry| entry.row.owner == Some(row.uid));
            let taken_back = taken_back(row).filter(|_| part.replica.is_none());
            replicas.filter_map(of_replica).chain(taken_back).collect()
        }
        replica::KIND => entries
            .iter()
            .filter(|entry| entry.row.uid == row.uid)
            .filter_map(of_replica)
            .collect(),
        _ => return Ok(None),
    };
    if let (Some(number), true) = (part.replica, found.is_empty()) {
        let refusal = Problem::new(Code::UnknownName, format!("`{name}` has no replica {number}"));
        return Err(refusal.hint(format!("`watershed status {name}` lists them")));
    }
    found.sort();
    Ok(Some(found))
}

/// Returns the kept output of a service's release that was taken back; none if there is no such release.
fn taken_back(row: &Row) -> Option<Source> {
    let record = Resource::state_of::<ServiceRecord>(row).ok().flatten()?;
    let release = record.taken_back()?;
    Some(Source {
        number: u64::MAX,
        program: format!("{} (release {release})", row.name),
        uid: row.uid.to_string(),
        counter: release,
        in_container: false,
    })
}

/// The open output of one start of a program.
enum Follow {
    /// The file of a local process.
    File(Follower),
    /// The output that the container engine keeps; none if it keeps none.
    Container(Option<ContainerReader>),
}

/// A reader of the output of several starts.
struct Reader<'a> {
    programs: &'a Path,
    containers: Containers,
    /// True to go on reading later output.
    follow: bool,
    open: BTreeMap<Source, Follow>,
}

impl<'a> Reader<'a> {
    fn new(state: &Path, programs: &'a Path, follow: bool) -> Self {
        Self {
            programs,
            containers: workloads::containers(state),
            follow,
            open: BTreeMap::new(),
        }
    }

    /// Opens new sources, and drops those that are gone. Returns the lines that the new ones have so far.
    async fn open(&mut self, sources: Vec<Source>, last: Last) -> Result<Vec<OutputLine>, Problem> {
        let mut lines = Vec::new();
        self.open.retain(|source, _| sources.contains(source));
        for source in sources {
            if self.open.contains_key(&source) {
                continue;
            }
            let since = last.since.map(|since| Timestamp(since.millis()));
            let (follow, found) = match source.in_container {
                true => {
                    let part = Part {
                        limit: last.lines(),
                        since,
                        follow: self.follow,
                    };
                    self.open_container(&source, part).await?
                }
                false => {
                    let path = file_of(self.programs, &source.uid, source.counter);
                    let begun = Follower::begin(path, last.lines(), since);
                    let (follower, found) = begun.map_err(|error| unread(&source, &error))?;
                    (Follow::File(follower), found)
                }
            };
            lines.extend(found.into_iter().map(|text| line(&source, text)));
            self.open.insert(source, follow);
        }
        Ok(lines)
    }

    async fn open_container(
        &mut self,
        source: &Source,
        part: Part,
    ) -> Result<(Follow, Vec<String>), Problem> {
        let begun = self.containers.output(&source.uid, source.counter, part).await;
        let mut reader = begun.map_err(|error| unread(source, &error))?;
        let found = match reader.as_mut().filter(|_| !self.follow) {
            Some(reader) => reader.all().await.map_err(|error| unread(source, &error))?,
            None => Vec::new(),
        };
        Ok((Follow::Container(reader), found))
    }

    fn more(&mut self) -> Result<Vec<OutputLine>, Problem> {
        let mut lines = Vec::new();
        let mut open = std::mem::take(&mut self.open);
        for (source, follow) in &mut open {
            let found = match follow {
                Follow::File(follower) => follower.more().map_err(|error| unread(source, &error))?,
                Follow::Container(Some(reader)) => reader.more().map_err(|error| unread(source, &error))?,
                Follow::Container(None) => Vec::new(),
            };
            lines.extend(found.into_iter().map(|text| line(source, text)));
        }
        self.open = open;
        Ok(lines)
    }

    /// Returns the last lines without a line end, which a living program may still complete.
    fn rest(&mut self) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        for (source, follow) in std::mem::take(&mut self.open) {
            if let Follow::File(mut follower) = follow {
                lines.extend(follower.rest().map(|text| line(&source, text)));
            }
        }
        lines
    }
}

fn line(source: &Source, text: String) -> OutputLine {
    OutputLine {
        program: source.program.clone(),
        text,
    }
}

fn unread(source: &Source, error: &dyn std::error::Error) -> Problem {
    let message = format!("can't read the output of `{}`: {error}", source.program);
    Problem::new(Code::StateUnreadable, message)
}

/// Sends or returns the output of a program; none if the name is not that of a program.
///
/// # Errors
/// When there is no such replica, or a file can't be read.
pub(super) async fn output(
    place: &impl Place,
    entries: &[Entry],
    input: &LogsRequest,
    part: ProgramOutput,
    out: &Out,
) -> Result<Option<Vec<OutputLine>>, Problem> {
    let Some(found) = sources(entries, &input.name, part)? else {
        return Ok(None);
    };
    let (state, programs) = (place.state().path(), place.state().programs());
    // Where nothing runs, nothing follows.
    let follow = input.follow && place.life() == Life::Live;
    let mut reader = Reader::new(&state, &programs, follow);
    let mut lines = reader.open(found, Last::of(input)).await?;
    if !follow {
        lines.extend(reader.rest());
        return Ok(Some(lines));
    }
    let (secrets, leaving) = (place.known_secrets(), place.leaving());
    loop {
        if !lines.is_empty() {
            out.output(std::mem::take(&mut lines), &secrets).await;
        }
        tokio::select! {
            () = out.closed() => break,
            () = leaving.cancelled() => break,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        // A start that came meanwhile is shown from its beginning.
        lines = reader.more()?;
        let entries = place.listing().await?.entries;
        let found = sources(&entries, &input.name, part)?;
        lines.extend(reader.open(found.unwrap_or_default(), Last::ALL).await?);
    }
    Ok(Some(Vec::new()))
}
