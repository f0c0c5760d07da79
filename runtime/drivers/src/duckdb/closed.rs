//! Work on the engine's file while it is closed.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::engine::{Engine, on_blocking_thread};
use super::gate::Company;
use super::proof::{FileProof, wal_path};
use crate::olap::{Failure, FileJob};

/// Runs a job on the closed file, which contains all committed data without a log. No other work runs meanwhile, and
/// the next work reopens the file. A missing file is not created.
///
/// # Errors
/// When the file can't be opened or its log not be written into it, and when another program changed it meanwhile:
/// what the job read may then be of two times.
///
/// # Cancel safety
/// Dropping the future while the job runs lets it go on to its end.
pub(super) async fn while_closed(
    engine: &Engine,
    job: FileJob,
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let path = engine.options().path.clone();
    if path.exists() {
        // Opened before, so that what is wrong with it is found by the usual way, and a log of before is replayed.
        engine.open(cancel).await?;
    }
    let pass = engine.enter(cancel, Company::Alone).await?;
    let this = engine.clone();
    on_blocking_thread(move || {
        let _pass = pass;
        this.forget_file();
        let log = std::fs::metadata(wal_path(&path)).map_or(0, |log| log.len());
        if log > 0 {
            let message = "the log of the engine's file could not be written into it".to_owned();
            return Err(Failure::Fatal { message });
        }
        let before = FileProof::read(&path).map_err(|error| unseen(&path, &error))?;
        job(&path);
        let after = FileProof::read(&path).map_err(|error| unseen(&path, &error))?;
        match before == after {
            true => Ok(()),
            false => Err(Failure::Fatal {
                message: "another program changed the engine's file meanwhile".to_owned(),
            }),
        }
    })
    .await?
}

fn unseen(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Fatal {
        message: format!("`{}` can't be looked at: {error}", path.display()),
    }
}
