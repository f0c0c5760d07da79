//! The implementation of [`OwnFile`](crate::olap::OwnFile) for the engine's file.

use std::path::Path;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::engine::Engine;
use super::{closed, memory};
use crate::olap::{Failure, FileJob, OwnFile};

impl OwnFile for Engine {
    fn path(&self) -> &Path {
        &self.options().path
    }

    fn open_now(&self) -> BoxFuture<'_, Result<(), Failure>> {
        async { self.try_to_open(&CancellationToken::new()).await }.boxed()
    }

    fn share_file(&self, rest: Duration) -> BoxFuture<'_, ()> {
        self.share_file(rest).boxed()
    }

    fn watch_changes_by_others(&self) -> watch::Receiver<u64> {
        self.parts.sharing.watch_changes_by_others()
    }

    fn watch_holder(&self) -> watch::Receiver<Option<String>> {
        self.parts.sharing.watch_holder()
    }

    fn give_back_memory(&self) -> BoxFuture<'_, ()> {
        memory::give_back_memory(self).boxed()
    }

    fn while_closed<'a>(
        &'a self,
        job: FileJob,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        closed::while_closed(self, job, cancel).boxed()
    }
}
