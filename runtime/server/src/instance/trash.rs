//! The trash, at the hand of a person.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{ResourceName, Time, TrashAction, TrashDocument, TrashedTable, WhyTrashed};
use watershed_api::request::TrashRequest;
use watershed_api::{Answer, Code, Problem};
use watershed_drivers::duckdb::Engine;
use watershed_drivers::olap::{RetrieveError, Thrown, TrashLimits, Trashed};
use watershed_proto::{Message, ModelSpec};
use watershed_reconcilers::model;

use super::{Instance, care};
use crate::report::Entry;
use crate::report::document::Project;
use crate::report::hints::nearest;

/// The beginning of names that are ours.
const RESERVED: &str = "_watershed";
/// The fewest characters of an id that name a table.
const SHORTEST_ID: usize = 6;

impl Instance {
    pub(super) async fn trash(&self, request: &TrashRequest) -> Result<Answer, Problem> {
        let entries = self.entries();
        let hands = Hands {
            engine: &self.engine,
            project: &self.project,
            entries: &entries,
            limits: self.engine.trash_bounds(),
        };
        hands.carry_out(request).await
    }
}

/// Everything that it takes to do something with the trash.
pub(super) struct Hands<'a> {
    pub(super) engine: &'a Engine,
    pub(super) project: &'a Project,
    pub(super) entries: &'a [Entry],
    pub(super) limits: TrashLimits,
}

impl Hands<'_> {
    pub(super) async fn carry_out(&self, request: &TrashRequest) -> Result<Answer, Problem> {
        let cancel = CancellationToken::new();
        let all = self.engine.weighed_trash(&cancel).await;
        let mut all = all.map_err(|failure| care::refusal(&failure))?;
        all.reverse();
        match request {
            TrashRequest::List => Ok(self.answer(TrashAction::List, &all, None, false)),
            TrashRequest::Restore { name, to, dry_run } => {
                let table = find(&all, name)?;
                let to = to.as_deref().unwrap_or(&table.name);
                self.refuse_name(to, table)?;
                if !dry_run {
                    let given = self.engine.retrieve(table.tag.build, to, &cancel).await;
                    given.map_err(|error| refused(&error, table))?;
                }
                let tables = std::slice::from_ref(table);
                Ok(self.answer(TrashAction::Restore, tables, Some(to), *dry_run))
            }
            TrashRequest::Empty { names, dry_run } => {
                let tables = match names.as_slice() {
                    [] => all,
                    names => {
                        let of_name = |name: &String| find_all(&all, name);
                        let found: Result<Vec<Vec<Trashed>>, Problem> = names.iter().map(of_name).collect();
                        found?.into_iter().flatten().collect()
                    }
                };
                if !dry_run {
                    let builds: Vec<Uuid> = tables.iter().map(|it| it.tag.build).collect();
                    let gone = self.engine.empty_trash(builds, &cancel).await;
                    gone.map_err(|failure| care::refusal(&failure))?;
                }
                Ok(self.answer(TrashAction::Empty, &tables, None, *dry_run))
            }
        }
    }

    /// Refuses a name that a model of the project has, for it could not be built any more, and one that is ours.
    fn refuse_name(&self, to: &str, table: &Trashed) -> Result<(), Problem> {
        let hint = format!(
            "`watershed trash restore {} --as NAME` gives it another name",
            table.name
        );
        let is_reserved = to
            .get(..RESERVED.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(RESERVED));
        if to.is_empty() || is_reserved {
            return Err(
                Problem::new(Code::BadArgument, format!("a table can't be called `{to}`")).hint(hint),
            );
        }
        let taken = self.entries.iter().find(|entry| {
            let row = &entry.row;
            if row.kind.as_str() != model::KIND || row.intents.is_deleted() {
                return false;
            }
            let spec = ModelSpec::decode(row.spec.as_ref()).unwrap_or_default();
            model::statement::table(&spec, row.name.as_str()).eq_ignore_ascii_case(to)
        });
        let Some(entry) = taken else { return Ok(()) };
        let name = ResourceName::new(entry.row.kind.as_str(), entry.row.name.as_str());
        let message = format!("`{to}` is the table of {} \"{}\"", name.kind, name.name);
        let hint = format!("{hint}; a model takes its own back when its file is as it was");
        Err(Problem::new(Code::AlreadyExists, message).hint(hint))
    }

    fn answer(&self, action: TrashAction, tables: &[Trashed], to: Option<&str>, dry_run: bool) -> Answer {
        Answer::Trash(Box::new(TrashDocument {
            schema: TrashDocument::SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            project: self.project.name.clone(),
            root: self.project.root.display().to_string(),
            environment: self.project.environment.clone(),
            action,
            dry_run,
            tables: tables.iter().map(|it| table(it, self.limits.keep)).collect(),
            restored_as: to.map(str::to_owned),
            limit_bytes: self.limits.bytes,
            keep_ms: u64::try_from(self.limits.keep.as_millis()).unwrap_or(u64::MAX),
        }))
    }
}

fn table(it: &Trashed, keep: Duration) -> TrashedTable {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    TrashedTable {
        id: id(it),
        name: it.name.clone(),
        why: match it.why {
            Thrown::Deleted => WhyTrashed::Deleted,
            Thrown::Replaced => WhyTrashed::Replaced,
        },
        at: Time::from_millis(it.at_ms),
        until: Time::from_millis(it.at_ms.saturating_add(keep)),
        rows: it.rows,
        bytes: it.bytes,
        protected: it.protected,
    }
}

/// The id of a table: the end of its build's, for that begins with the time.
fn id(it: &Trashed) -> String {
    let build = it.tag.build.simple().to_string();
    build.chars().skip(build.len() / 2).collect()
}

/// The tables of a name, or of the beginning of an id, the latest first.
fn find_all(all: &[Trashed], typed: &str) -> Result<Vec<Trashed>, Problem> {
    let named = |it: &&Trashed| it.name.eq_ignore_ascii_case(typed);
    let mut found: Vec<Trashed> = all.iter().filter(named).cloned().collect();
    if found.is_empty() && typed.len() >= SHORTEST_ID {
        let typed = typed.to_ascii_lowercase();
        found = all
            .iter()
            .filter(|it| id(it).starts_with(&typed))
            .cloned()
            .collect();
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let refusal = Problem::new(Code::UnknownName, format!("the trash holds no table `{typed}`"));
    let names = all.iter().map(|it| it.name.as_str());
    Err(match nearest(typed, names) {
        Some(name) => refusal.hint(format!("did you mean `{name}`?")),
        None => refusal.hint("`watershed trash list` shows what it holds"),
    })
}

/// The table that a person means: of several of a name, the one that came last.
fn find<'a>(all: &'a [Trashed], typed: &str) -> Result<&'a Trashed, Problem> {
    let found = find_all(all, typed)?;
    let first = found.first().map(|it| it.tag.build);
    let gone = || Problem::new(Code::UnknownName, format!("the trash holds no table `{typed}`"));
    all.iter().find(|it| Some(it.tag.build) == first).ok_or_else(gone)
}

fn refused(error: &RetrieveError, table: &Trashed) -> Problem {
    match error {
        RetrieveError::Failed(failure) => care::refusal(failure),
        RetrieveError::Absent => Problem::new(Code::Unavailable, error.to_string()),
        RetrieveError::NameTaken { .. } => {
            Problem::new(Code::AlreadyExists, error.to_string()).hint(format!(
                "`watershed trash restore {} --as NAME` gives it another name",
                table.name
            ))
        }
    }
}
