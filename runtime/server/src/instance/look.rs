//! Reads of a catalog at rest.

use watershed_api::{Code, Problem};
use watershed_controller::store::StoreError;

use super::problem::damaged;

/// Reads the catalog on a thread of its own, as its futures can't change threads.
pub(crate) async fn look<T: Send + 'static>(
    look: impl FnOnce(tokio::runtime::Handle) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let runtime = tokio::runtime::Handle::current();
    match tokio::task::spawn_blocking(move || look(runtime)).await {
        Ok(looked) => looked.map_err(unreadable),
        Err(panic) => Err(Problem::new(
            Code::Unavailable,
            format!("the look ended by a defect: {panic}"),
        )),
    }
}

/// Returns the problem of a catalog that can't be read.
pub(crate) fn unreadable(error: StoreError) -> Problem {
    let code = match error {
        StoreError::Newer { .. } => Code::StateUnreadable,
        _ if error.is_damage() => Code::StateUnreadable,
        _ => Code::Unavailable,
    };
    let refusal = Problem::new(code, crate::chain(&error));
    match error {
        _ if error.is_damage() => refusal.hint(damaged()),
        StoreError::Older { .. } => refusal.hint("`watershed run` brings it up to date, and keeps a copy"),
        StoreError::Newer { .. } => refusal.hint("use the newer version of watershed; nothing was touched"),
        _ => refusal,
    }
}
