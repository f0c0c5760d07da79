//! `trash`: tables that no resource refers to any more.

use watershed_api::operations::ops;
use watershed_api::request::{NoInput, TrashEmptyRequest, TrashRestoreRequest};
use watershed_api::{Exit, Operation as _};

use super::args::{Empty, Format, Restore, Shared, Trash, TrashAction};
use super::ask::{ask_at, output};
use super::consent;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use crate::render::units::count;

/// Runs the command `trash`.
pub(super) fn trash(console: &mut Console, shared: &Shared, args: &Trash) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let request = match &args.action {
        TrashAction::List => ops::TrashList::request(NoInput {}),
        TrashAction::Restore(Restore { table, to, dry_run }) => {
            ops::TrashRestore::request(TrashRestoreRequest {
                name: table.clone(),
                to: to.clone(),
                dry_run: *dry_run,
            })
        }
        TrashAction::Empty(args) => return empty(console, shared, &location, format, args),
    };
    ask_at(console, shared, &location, format, request)
}

fn empty(
    console: &mut Console,
    shared: &Shared,
    location: &Location,
    format: Format,
    args: &Empty,
) -> Result<Exit, Failure> {
    let request = |dry_run| TrashEmptyRequest {
        names: args.tables.clone(),
        dry_run,
    };
    let would = super::block_on(output::<ops::TrashEmpty>(shared, location, request(true)))?;
    let tables = would.tables.len() as u64;
    if args.consent.dry_run || tables == 0 {
        let presenter = Presenter::new(console, format, location.root.clone());
        return presenter.end(ops::TrashEmpty::answer(would));
    }
    let what = format!("throw {} away for good", count(tables, "table"));
    consent::ask(console, args.consent, &what)?;
    ask_at(
        console,
        shared,
        location,
        format,
        ops::TrashEmpty::request(request(false)),
    )
}
