//! `scale`, `restart`, `rollback`: services, changed by hand.

use watershed_api::request::ServiceChange;
use watershed_api::{Exit, Request};

use super::args::{Format, Restart, Rollback, Scale, Shared};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance;

/// `scale`
pub(super) fn scale(console: &mut Console, shared: &Shared, args: &Scale) -> Result<Exit, Failure> {
    let change = ServiceChange::Scale(args.replicas.0);
    operate(console, shared, change, vec![args.name.clone()])
}

/// `restart`
pub(super) fn restart(console: &mut Console, shared: &Shared, args: &Restart) -> Result<Exit, Failure> {
    let change = ServiceChange::Restart { now: args.now };
    operate(console, shared, change, args.names.clone())
}

/// `rollback`
pub(super) fn rollback(console: &mut Console, shared: &Shared, args: &Rollback) -> Result<Exit, Failure> {
    let change = ServiceChange::Rollback { to: args.to };
    operate(console, shared, change, vec![args.name.clone()])
}

fn operate(
    console: &mut Console,
    shared: &Shared,
    change: ServiceChange,
    names: Vec<String>,
) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    if !location.state.exists() {
        let failure = Failure::new(Exit::NotNow, "nothing was run here yet, so nothing is stored");
        return Err(failure.hint("`watershed start` runs the project's services"));
    }
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let presenter = Presenter::new(console, format, location.root.clone());
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => {
                let request = Request::OperateServices { change, names };
                presenter.show(session::ask(connection, &request).await).await
            }
            Session::Here(_lock) => {
                let project = super::options(shared, &location).project();
                let done = instance::operate_services_alone(&project, &location.state, change, &names).await;
                let answer = done.map_err(|error| session::open_failure(error, &location.state.path()))?;
                presenter.end(answer.map_err(Failure::from)?)
            }
        }
    })
}
