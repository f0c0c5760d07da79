//! Names in the file, shared by all work, with the claims on them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_locks::Unpoisoned;

use super::names::{ClaimKey, Edit, Names};
use crate::olap::Failure;

/// The names in the file, and the claims on them.
#[derive(Default)]
pub(super) struct KnownNames {
    names: Mutex<Names>,
    released: Notify,
}

/// Exclusive claims of a unit of work on names and owners. Moved into the job, so that they last as long as the job,
/// even if its caller is gone.
pub(super) struct Claim {
    known: Arc<KnownNames>,
    keys: BTreeSet<ClaimKey>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.known.now().release(&self.keys);
        self.known.released.notify_waiters();
    }
}

impl KnownNames {
    /// Returns the current names. The lock is never held across work.
    pub(super) fn now(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unpoisoned()
    }

    /// Applies the changes of a committed transaction.
    pub(super) fn apply(&self, edits: impl IntoIterator<Item = Edit>) {
        let mut names = self.now();
        edits.into_iter().for_each(|edit| names.apply(edit));
    }

    /// Waits until no other work has claimed an owner, a name with its current owner, or an output in the trash, and
    /// claims all of them.
    ///
    /// # Cancel safety
    /// Dropping the future takes nothing.
    pub(super) async fn claim(
        self: &Arc<Self>,
        uid: Uuid,
        name: Option<&str>,
        back: Option<Uuid>,
        cancel: &CancellationToken,
    ) -> Result<Claim, Failure> {
        loop {
            let released = self.released.notified();
            tokio::pin!(released);
            // Before looking, so that no release is missed in between.
            released.as_mut().enable();
            if let Some(keys) = self.now().try_claim(uid, name, back) {
                let known = Arc::clone(self);
                return Ok(Claim { known, keys });
            }
            tokio::select! {
                () = released => {}
                () = cancel.cancelled() => return Err(Failure::Interrupted),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_claim_is_waited_for_until_it_is_dropped_or_the_wait_is_cancelled() {
        let (known, cancel) = (Arc::new(KnownNames::default()), CancellationToken::new());
        let claim = |n, name| known.claim(Uuid::from_u128(n), Some(name), None, &cancel);
        let first = claim(1, "a").now_or_never().unwrap().unwrap();
        let mut second = Box::pin(claim(2, "A"));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let second = second.now_or_never().unwrap();
        assert!(second.is_ok());
        let mut third = Box::pin(claim(3, "a"));
        assert!(third.as_mut().now_or_never().is_none());
        cancel.cancel();
        assert!(matches!(third.now_or_never(), Some(Err(Failure::Interrupted))));
    }
}
