//! `shim`: the parent of a project's local processes, which outlives the command that started it.

use watershed_api::Exit;

use super::args::Shim;
use super::failure::Failure;

/// Runs the shim until no process runs and nobody is connected.
#[cfg(target_os = "linux")]
pub(super) fn run(args: &Shim) -> Result<Exit, Failure> {
    let settings = watershed_shim::Settings {
        state_folder: args.folder.clone(),
        idle: watershed_shim::IDLE,
    };
    match watershed_shim::run(&settings) {
        Ok(_) => Ok(Exit::Converged),
        Err(error) => Err(Failure {
            exit: Exit::StateFolder,
            error: error.into(),
            hint: None,
        }),
    }
}

/// Refuses to run: other systems have no local processes.
#[cfg(not(target_os = "linux"))]
pub(super) fn run(_args: &Shim) -> Result<Exit, Failure> {
    Err(Failure::usage("local processes are supported on Linux alone"))
}
