//! `man`: manual pages, for packages.

use std::fs;

use watershed_api::Exit;

use super::args::Man;
use super::failure::Failure;

/// Writes `watershed.1` and a page for each command into the folder.
pub(super) fn run(args: &Man) -> Result<Exit, Failure> {
    let folder = &args.folder;
    let written =
        fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(super::command(), folder));
    match written {
        Ok(()) => Ok(Exit::Converged),
        Err(error) => Err(Failure {
            exit: Exit::NotNow,
            error: anyhow::Error::new(error)
                .context(format!("can't write manual pages into `{}`", folder.display())),
            hint: None,
        }),
    }
}
