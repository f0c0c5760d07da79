//! `set`, `event`: managed resources, changed by hand.

use std::path::Path;

use watershed_api::request::ChangeByHand;
use watershed_api::{Exit, Request};
use watershed_managers::BODY_MAX;

use super::args::{Event, Format, Set, Shared};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::input;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance;

/// `set`
pub(super) fn set(console: &mut Console, shared: &Shared, args: &Set) -> Result<Exit, Failure> {
    let change = ChangeByHand::Set {
        name: args.name.clone(),
        desired: args.change.0.clone(),
    };
    operate(console, shared, change)
}

/// `event`
pub(super) fn event(console: &mut Console, shared: &Shared, args: &Event) -> Result<Exit, Failure> {
    let body = read(&args.file)?;
    let told = operate(console, shared, ChangeByHand::Events(body));
    told.map_err(|failure| match failure.message().strip_prefix("no event: ") {
        Some(reason) => Failure {
            error: anyhow::anyhow!("`{}` holds no event: {reason}", args.file.display()),
            ..failure
        },
        None => failure,
    })
}

/// Reads a file of events: one, or a list of them.
fn read(file: &Path) -> Result<String, Failure> {
    let most = u64::try_from(BODY_MAX).unwrap_or(u64::MAX).saturating_add(1);
    String::from_utf8(input::bytes(file, most)?).map_err(|_| {
        Failure::usage(format!(
            "`{}` holds no event: the text is not in UTF-8",
            file.display()
        ))
    })
}

/// Carries a change by hand out: by the process that runs the project, or here.
pub(super) fn operate(console: &mut Console, shared: &Shared, change: ChangeByHand) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    if !location.state.exists() {
        let failure = Failure::new(Exit::NotNow, "nothing was run here yet, so nothing is stored");
        return Err(failure.hint("`watershed run` brings the project up to date"));
    }
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let presenter = Presenter::new(console, format, location.root.clone());
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => {
                let request = Request::ChangeByHand(change);
                presenter.show(session::ask(connection, &request).await).await
            }
            Session::Here(_lock) => {
                let project = super::options(shared, &location).project();
                let done = instance::change_alone(&project, &location.state, change).await;
                let answer = done.map_err(|error| session::open_failure(error, &location.state.path()))?;
                presenter.end(answer.map_err(Failure::from)?)
            }
        }
    })
}
