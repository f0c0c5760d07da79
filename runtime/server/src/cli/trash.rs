//! `trash`: what nothing stands for any more.

use watershed_api::request::TrashRequest;
use watershed_api::{Answer, Exit, Reply, Request};

use super::args::{Empty, Format, Restore, Shared, Trash, TrashAction};
use super::consent;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::look::look_at;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance::{Folder, Hold};
use crate::render::units::count;

/// `trash`
pub(super) fn trash(console: &mut Console, shared: &Shared, args: &Trash) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    match &args.action {
        TrashAction::List => {
            let request = Request::Trash(TrashRequest::List);
            look_at(console, shared, &location, format, request)
        }
        TrashAction::Restore(Restore { table, to, dry_run }) => {
            let request = TrashRequest::Restore {
                name: table.clone(),
                to: to.clone(),
                dry_run: *dry_run,
            };
            super::block_on(async {
                let answer = asked(shared, &location, request).await?;
                Presenter::new(console, format, location.root.clone()).end(answer)
            })
        }
        TrashAction::Empty(args) => super::block_on(empty(console, shared, &location, format, args)),
    }
}

async fn empty(
    console: &mut Console,
    shared: &Shared,
    location: &Location,
    format: Format,
    args: &Empty,
) -> Result<Exit, Failure> {
    let request = |dry_run| TrashRequest::Empty {
        names: args.tables.clone(),
        dry_run,
    };
    let would = asked(shared, location, request(true)).await?;
    let tables = match &would {
        Answer::Trash(document) => document.tables.len() as u64,
        _ => 0,
    };
    if args.consent.dry_run || tables == 0 {
        return Presenter::new(console, format, location.root.clone()).end(would);
    }
    let what = format!("throw {} away for good", count(tables, "table"));
    consent::ask(console, args.consent, &what)?;
    let answer = asked(shared, location, request(false)).await?;
    Presenter::new(console, format, location.root.clone()).end(answer)
}

/// Asks the owner of the folder, or does it here while nobody owns it.
async fn asked(shared: &Shared, location: &Location, request: TrashRequest) -> Result<Answer, Failure> {
    let wait = shared.wait.map(|wait| wait.0);
    match Session::open(location, Purpose::Work, wait).await? {
        Session::There(connection) => {
            let mut replies = session::ask(connection, &Request::Trash(request)).await;
            loop {
                match replies.recv().await {
                    Some(Reply::Done(answer)) => return Ok(*answer),
                    Some(Reply::Refused(refusal)) => return Err(refusal.into()),
                    Some(_) => {}
                    None => {
                        let message = "the process that owns the folder gave no answer";
                        return Err(Failure::new(Exit::NotNow, message).hint("run the command again"));
                    }
                }
            }
        }
        Session::Here(lock) => {
            let options = super::options(shared, location);
            let folder = Folder::new(options, location.state.clone(), Hold::Locked(lock));
            folder.trash(&request).await.map_err(Failure::from)
        }
    }
}
