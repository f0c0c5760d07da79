//! The implementation of [`Upkeep`](crate::olap::Upkeep): of a file by a copy, of a lake by letting go.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::gate::Company;
use super::trash::now_ms;
use super::{compact, retention, verify};
use crate::olap::{Compacted, Failure, Upkeep};

impl Upkeep for Engine {
    fn compact<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Compacted, Failure>> {
        if self.lake().is_none() {
            return compact::compact(self, cancel).boxed();
        }
        let this = self.clone();
        self.work(cancel, Company::Others, move |work| {
            retention::compact(&this.parts.trash, work, now_ms())
        })
        .boxed()
    }

    fn verify<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<String>, Failure>> {
        verify::verify(self, cancel).boxed()
    }
}
