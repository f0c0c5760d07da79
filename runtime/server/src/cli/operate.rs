//! `explain`, `pause`, `resume`, `cancel`, `stats`: the operator's hands.

use watershed_api::documents::Operation;
use watershed_api::request::StatsForm;
use watershed_api::{Exit, Request};

use super::args::{Explain, Format, Operate, Shared, Stats};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::look::look;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance;
use crate::state_folder::Lock;

/// `explain`
pub(super) fn explain(console: &mut Console, shared: &Shared, args: &Explain) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let name = args.name.clone();
    look(console, shared, format, Request::Explain { name })
}

/// `stats`
pub(super) fn stats(console: &mut Console, shared: &Shared, _args: &Stats) -> Result<Exit, Failure> {
    let known = [Format::Text, Format::Json, Format::Prometheus];
    let format = choose_format(shared, &known, Format::Text)?;
    let form = match format {
        Format::Prometheus => StatsForm::Prometheus,
        _ => StatsForm::Document,
    };
    look(console, shared, format, Request::Stats { form })
}

/// `pause`, `resume`, `cancel`
pub(super) fn operate(
    console: &mut Console,
    shared: &Shared,
    operation: Operation,
    args: &Operate,
) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let names = args.names.clone();
    let request = Request::Operate { operation, names };
    let location = Location::find(shared, None)?;
    // What runs is another process's, and where nothing was ever run there is nothing to write to.
    if operation == Operation::Cancel || !location.state.exists() {
        return look(console, shared, format, request);
    }
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let presenter = Presenter::new(console, format, location.root.clone());
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => presenter.show(session::ask(connection, &request).await).await,
            Session::Here(lock) => {
                let options = super::options(shared, &location);
                presenter.end(alone(&options, &location, lock, operation, &args.names).await?)
            }
        }
    })
}

/// Writes into a folder that nobody runs.
async fn alone(
    options: &crate::Options,
    location: &Location,
    _lock: Lock,
    operation: Operation,
    names: &[String],
) -> Result<watershed_api::Answer, Failure> {
    instance::operate_alone(&options.project(), &location.state, operation, names)
        .await
        .map_err(|error| session::open_failure(error, &location.state.path()))?
        .map_err(Failure::from)
}
