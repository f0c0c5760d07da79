//! Installation of extensions that a build needs and the machine lacks, signed and fetched by the engine from its
//! vendor's repository.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::{Engine, Intent};
use super::gate::Company;
use crate::olap::Failure;

/// The most extensions that one unit of work may lack: for a lake, its catalog and its store.
pub(super) const MOST_EXTENSIONS: usize = 3;

/// Installs the extension whose absence made some work fail. Returns true if the work may be retried; otherwise the
/// failure is extended by the reason.
pub(super) async fn install_for(engine: &Engine, failure: &mut Failure, cancel: &CancellationToken) -> bool {
    let Failure::MissingExtension {
        extension, refused, ..
    } = failure
    else {
        return false;
    };
    let options = engine.options();
    let allowed =
        options.installs && options.sandbox.is_none() && engine.parts.installs.load(Ordering::Relaxed);
    if !allowed {
        return false;
    }
    let sql = format!("INSTALL {}", DuckDb.name(extension));
    let installed = engine
        .work_to(Intent::Read, cancel, Company::Others, move |work| {
            work.run(&sql, &[])
        })
        .await;
    match installed {
        Ok(_) => {
            tracing::warn!(
                extension,
                "the engine's extension was fetched from its makers' repository"
            );
            // Connections begin with what it knows from now on, access to stores above all.
            engine.renew();
            true
        }
        Err(error) => {
            tracing::debug!(extension, %error, "an extension could not be fetched");
            *refused = Some(error.to_string());
            false
        }
    }
}
