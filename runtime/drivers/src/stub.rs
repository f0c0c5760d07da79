//! An engine that can do nothing, for testing projects on an engine without some part.

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::olap::{
    Build, BuildError, Built, Check, Dropped, Export, ExportError, Exported, Failure, Guarantees, Guard,
    Object, Olap, Output, Query, QueryError, Rename, RenameError, Renamed, Rows, Session, Stamp, Tag,
    Verdict,
};

/// Guarantees of the stub engine, in which nothing can be built.
pub const GUARANTEES: Guarantees = Guarantees::nothing("stub");

/// An engine whose every call fails as unsupported.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stub;

fn lacks<T: Send, E: From<Failure> + Send>(what: &'static str) -> BoxFuture<'static, Result<T, E>> {
    async move { Err(Failure::lacks(what).into()) }.boxed()
}

impl Olap for Stub {
    fn guarantees(&self) -> Guarantees {
        GUARANTEES
    }

    fn open<'a>(&'a self, _: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        lacks("data")
    }

    fn take<'a>(&'a self, _: u64, _: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        lacks("data")
    }

    fn stamp(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>> {
        lacks("data")
    }

    fn close(&self) -> BoxFuture<'_, Result<Option<Stamp>, Failure>> {
        lacks("data")
    }

    fn begin_with(&self, _: Vec<Session>) {}

    fn allow_installs(&self, _: bool) {}

    fn changes_by_others(&self) -> u64 {
        0
    }

    fn build_set<'a>(
        &'a self,
        builds: &'a [Build],
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Vec<Result<Built, BuildError>>> {
        let refused = |_| Err(Failure::lacks("builds").into());
        async move { builds.iter().map(refused).collect() }.boxed()
    }

    fn check<'a>(
        &'a self,
        _: &'a [Check],
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Verdict>, Failure>> {
        lacks("checks")
    }

    fn rename<'a>(
        &'a self,
        _: &'a Rename,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>> {
        lacks("outputs")
    }

    fn drop_output<'a>(
        &'a self,
        _: Uuid,
        _: Guard,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>> {
        lacks("outputs")
    }

    fn retag<'a>(
        &'a self,
        _: Tag,
        _: Tag,
        _: &'a [u8],
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        lacks("outputs")
    }

    fn outputs<'a>(&'a self, _: &'a CancellationToken) -> BoxFuture<'a, Result<Vec<Output>, Failure>> {
        lacks("outputs")
    }

    fn object<'a>(
        &'a self,
        _: &'a str,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>> {
        lacks("objects")
    }

    fn query<'a>(&'a self, _: Query, _: &'a CancellationToken) -> BoxFuture<'a, Result<Rows, QueryError>> {
        lacks("queries")
    }

    fn export<'a>(
        &'a self,
        _: &'a Export,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Exported, ExportError>> {
        lacks("queries")
    }
}
