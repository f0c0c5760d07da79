//! `doctor`, `gc`: looking after what a project keeps.

use watershed_api::{Exit, Request};

use super::args::{Doctor, Format, Gc, Shared};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::look::look_at;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance::{self, Folder, Hold};

/// `doctor`
pub(super) fn doctor(console: &mut Console, shared: &Shared, args: &Doctor) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    if !args.repair || !location.state.exists() && !location.state.engine().exists() {
        return look_at(console, shared, &location, format, Request::Doctor);
    }
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => {
                let owner = connection
                    .owner()
                    .map_or_else(|| "another process".to_owned(), ToString::to_string);
                let message = format!("{owner} uses what is to be repaired");
                Err(Failure::new(Exit::NotNow, message)
                    .hint("stop it first; `watershed doctor` looks meanwhile"))
            }
            Session::Here(lock) => {
                let options = super::options(shared, &location);
                let folder = Folder::new(options, location.state.clone(), Hold::Locked(lock));
                let answer = folder.repair().await.map_err(Failure::from)?;
                Presenter::new(console, format, location.root.clone()).end(answer)
            }
        }
    })
}

/// `gc`
pub(super) fn gc(console: &mut Console, shared: &Shared, _args: &Gc) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let presenter = Presenter::new(console, format, location.root.clone());
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => presenter.show(session::ask(connection, &Request::Gc).await).await,
            Session::Here(_lock) => {
                let options = super::options(shared, &location);
                let answer = instance::gc_alone(&options, &location.state).await;
                presenter.end(answer.map_err(Failure::from)?)
            }
        }
    })
}
