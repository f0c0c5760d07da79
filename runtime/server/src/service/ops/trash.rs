//! The trash: tables listed, restored, deleted for good.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::documents::{ResourceName, Time, TrashAction, TrashDocument, TrashedTable, WhyTrashed};
use watershed_api::request::{NoInput, TrashEmptyRequest, TrashRestoreRequest};
use watershed_api::{Code, Problem, hint};
use watershed_drivers::olap::{self, Access, RetrieveError, Thrown, TrashLimits, Trashed};
use watershed_proto::{Message, ModelSpec};
use watershed_reconcilers::model;

use crate::instance::engine_problem;
use crate::out::Out;
use crate::report::Entry;
use crate::report::document::Project;
use crate::report::explain::Life;
use crate::report::hints::nearest;
use crate::service::Principal;
use crate::service::place::{Place, built_engine};

/// The prefix of reserved table names.
const RESERVED: &str = "_watershed";
/// The fewest characters of a table's id that find the table.
const SHORTEST_ID: usize = 6;

/// Lists the tables in the trash.
pub(crate) async fn trash_list(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<TrashDocument, Problem> {
    with_trash(place, Access::ReadOnly, async |trash| {
        let all = trash.all().await?;
        Ok(trash.document(TrashAction::List, &all, None, false))
    })
    .await
}

/// Restores a table from the trash.
pub(crate) async fn trash_restore(
    place: &impl Place,
    _: &Principal,
    input: TrashRestoreRequest,
    _: &Out,
) -> Result<TrashDocument, Problem> {
    with_trash(place, Access::ReadWrite, async |trash| {
        let all = trash.all().await?;
        let table = find(&all, &input.name)?;
        let to = input.to.as_deref().unwrap_or(&table.name);
        trash.refuse_name(to, table)?;
        if !input.dry_run {
            let given = trash.tables.retrieve(table.tag.build, to, &trash.cancel).await;
            given.map_err(|error| refused(&error, table))?;
        }
        let tables = std::slice::from_ref(table);
        Ok(trash.document(TrashAction::Restore, tables, Some(to), input.dry_run))
    })
    .await
}

/// Deletes tables in the trash for good.
pub(crate) async fn trash_empty(
    place: &impl Place,
    _: &Principal,
    input: TrashEmptyRequest,
    _: &Out,
) -> Result<TrashDocument, Problem> {
    with_trash(place, Access::ReadWrite, async |trash| {
        let all = trash.all().await?;
        let tables = match input.names.as_slice() {
            [] => all,
            names => {
                let found: Result<Vec<_>, _> = names.iter().map(|name| find_all(&all, name)).collect();
                found?.into_iter().flatten().collect()
            }
        };
        if !input.dry_run {
            let builds: Vec<Uuid> = tables.iter().map(|it| it.tag.build).collect();
            let gone = trash.tables.empty(builds, &trash.cancel).await;
            gone.map_err(|failure| engine_problem(&failure))?;
        }
        Ok(trash.document(TrashAction::Empty, &tables, None, input.dry_run))
    })
    .await
}

async fn with_trash<P: Place>(
    place: &P,
    access: Access,
    work: impl AsyncFnOnce(&Trash<'_>) -> Result<TrashDocument, Problem>,
) -> Result<TrashDocument, Problem> {
    let opened = built_engine(place, access).await?;
    let entries = place.listing().await?.entries;
    let limits = place.trash_limits().await;
    let tables = opened.engine.trash();
    let tables = tables.map_err(|failure| engine_problem(&failure))?;
    if place.life() == Life::AtRest {
        tables.limit(limits);
    }
    let trash = Trash {
        tables,
        project: place.project(),
        entries: &entries,
        limits,
        cancel: CancellationToken::new(),
    };
    let done = work(&trash).await;
    opened.give_back().await;
    done
}

/// The trash of an engine, with its limits and the resources of the project.
struct Trash<'a> {
    tables: &'a dyn olap::Trash,
    project: &'a Project,
    entries: &'a [Entry],
    limits: TrashLimits,
    cancel: CancellationToken,
}

impl Trash<'_> {
    /// Lists all tables in the trash, latest first.
    async fn all(&self) -> Result<Vec<Trashed>, Problem> {
        let all = self.tables.weigh(&self.cancel).await;
        let mut all = all.map_err(|failure| engine_problem(&failure))?;
        all.reverse();
        Ok(all)
    }

    /// Refuses a table name that is reserved, or that a model of the project has.
    fn refuse_name(&self, to: &str, table: &Trashed) -> Result<(), Problem> {
        let hint = restore_as(table);
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

    fn document(
        &self,
        action: TrashAction,
        tables: &[Trashed],
        to: Option<&str>,
        dry_run: bool,
    ) -> TrashDocument {
        TrashDocument {
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
        }
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

/// Returns the id of a table: the second half of its build's id, for the first half begins with the time.
fn id(it: &Trashed) -> String {
    let build = it.tag.build.simple().to_string();
    build.chars().skip(build.len() / 2).collect()
}

/// Finds the tables with a name, or with a prefix of an id, latest first.
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

/// Finds the table that a person means: the latest one with the name.
fn find<'a>(all: &'a [Trashed], typed: &str) -> Result<&'a Trashed, Problem> {
    let found = find_all(all, typed)?;
    let first = found.first().map(|it| it.tag.build);
    let gone = || Problem::new(Code::UnknownName, format!("the trash holds no table `{typed}`"));
    all.iter().find(|it| Some(it.tag.build) == first).ok_or_else(gone)
}

fn refused(error: &RetrieveError, table: &Trashed) -> Problem {
    match error {
        RetrieveError::Failed(failure) => engine_problem(failure),
        RetrieveError::Absent => Problem::new(Code::Unavailable, error.to_string()),
        RetrieveError::NameTaken { .. } => {
            Problem::new(Code::AlreadyExists, error.to_string()).hint(restore_as(table))
        }
    }
}

/// Returns a hint for restoring a table under another name.
fn restore_as(table: &Trashed) -> String {
    let restore = hint::operation_with("trash", ["restore", table.name.as_str()], &[("as", "NAME")]);
    format!("{restore} gives it another name")
}
