//! `backup`, `restore`: all state of an environment in one file.

use std::path::{Path, PathBuf};

use watershed_api::operations::ops;
use watershed_api::request::{BackupRequest, RestoreRequest};
use watershed_api::{Exit, Operation as _};

use super::args::{Backup, Format, RestoreBackup, Shared};
use super::ask::{ask, with_lock};
use super::consent;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use super::session::{Purpose, Session};

/// Runs the command `backup`.
pub(super) fn backup(console: &mut Console, shared: &Shared, args: &Backup) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = BackupRequest {
        file: absolute(&args.file)?,
        force: args.force,
    };
    ask(console, shared, format, ops::Backup::request(request))
}

/// Runs the command `restore`.
pub(super) fn restore(console: &mut Console, shared: &Shared, args: &RestoreBackup) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let location = Location::find(shared, None)?;
    let request = ops::Restore::request(RestoreRequest {
        file: absolute(&args.file)?,
        dry_run: args.consent.dry_run,
    });
    super::block_on(async {
        let wait = shared.wait.map(|wait| wait.0);
        let replies = match Session::open(&location, Purpose::Work, wait).await? {
            // It refuses, and says who uses what is to be replaced.
            Session::There(connection) => connection.ask(&request).await,
            Session::Here(lock) => {
                let is_there = location.state.exists() || location.state.engine().exists();
                if is_there && !args.consent.dry_run {
                    let folder = location.state.path();
                    let what = format!("replace everything in `{}`", folder.display());
                    consent::ask(console, args.consent, &what)?;
                }
                with_lock(shared, &location, lock, request)
            }
        };
        Presenter::new(console, format, location.root.clone())
            .show(replies)
            .await
    })
}

/// Returns the absolute path of a file, which a process in another folder may have to write.
pub(super) fn absolute(file: &Path) -> Result<PathBuf, Failure> {
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
