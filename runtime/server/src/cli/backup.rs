//! `backup`, `restore`: everything that an environment keeps, in one file.

use std::path::{Path, PathBuf};

use watershed_api::{Exit, Request};

use super::args::{Backup, Format, RestoreBackup, Shared};
use super::consent;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use super::session::{self, Purpose, Session};
use crate::instance;

/// `backup`
pub(super) fn backup(console: &mut Console, shared: &Shared, args: &Backup) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let (file, force) = (absolute(&args.file)?, args.force);
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let presenter = Presenter::new(console, format, location.root.clone());
        match Session::open(&location, Purpose::Work, wait).await? {
            Session::There(connection) => {
                let request = Request::Backup { file, force };
                presenter.show(session::ask(connection, &request).await).await
            }
            Session::Here(_lock) => {
                let options = super::options(shared, &location);
                let answer = instance::backup_alone(&options, &location.state, &file, force).await;
                presenter.end(answer.map_err(Failure::from)?)
            }
        }
    })
}

/// `restore`
pub(super) fn restore(console: &mut Console, shared: &Shared, args: &RestoreBackup) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let file = absolute(&args.file)?;
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let _lock = match Session::open(&location, Purpose::Work, wait).await? {
            Session::Here(lock) => lock,
            Session::There(connection) => {
                let owner = connection
                    .owner()
                    .map_or_else(|| "another process".to_owned(), ToString::to_string);
                let message = format!("{owner} uses what is to be replaced");
                return Err(Failure::new(Exit::NotNow, message).hint("stop it first"));
            }
        };
        let is_there = location.state.exists() || location.state.engine().exists();
        if is_there && !args.consent.dry_run {
            let folder = location.state.path();
            let what = format!("replace everything in `{}`", folder.display());
            consent::ask(console, args.consent, &what)?;
        }
        let options = super::options(shared, &location);
        let dry_run = args.consent.dry_run;
        let answer = instance::restore_alone(&options, &location.state, &file, dry_run).await;
        Presenter::new(console, format, location.root.clone()).end(answer.map_err(Failure::from)?)
    })
}

/// The whole path of a file: another process may write it, which is in another folder.
fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(file).map_err(|error| Failure {
        exit: Exit::Usage,
        error: anyhow::Error::new(error).context(format!("can't find `{}`", file.display())),
        hint: None,
    })?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => {
            let message = format!("the path `{}` is not in UTF-8", absolute.display());
            Err(Failure::usage(message))
        }
    }
}
