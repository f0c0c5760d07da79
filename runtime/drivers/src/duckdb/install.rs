//! Extensions that a build needs and this machine does not have: fetched by the engine from its makers' repository, signed.

use std::sync::atomic::Ordering;

use tokio_util::sync::CancellationToken;

use watershed_dialect::{DuckDb, Quoting as _};

use super::engine::Engine;
use super::gate::Company;
use crate::olap::Failure;

/// The most extensions that some work lacks, one after the other: that of a lake, of its catalog, and of its store.
pub(super) const MOST_EXTENSIONS: usize = 3;

/// Fetches the extension for want of which some work has failed. Returns true if it is there now, so that the work may
/// be done again; the failure says why it is not.
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
        .work(cancel, Company::Others, move |work| work.run(&sql, &[]))
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
