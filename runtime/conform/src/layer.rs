//! Wrapper around an engine that changes some of its calls.

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{
    Build, BuildError, Built, CatalogCopies, Check, Databases, Dropped, Elsewhere, Export, ExportError,
    Exported, Failure, Guarantees, Guard, Migrations, Object, Olap, Output, OwnFile, Partitions, Query,
    QueryError, Rename, RenameError, Renamed, Rows, Session, Stamp, Tag, TestedRows, Trash, Upkeep, Verdict,
};

macro_rules! layer {
    ($life:lifetime: $(async fn $name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)+ $(fn $plain:ident($($given:ident: $given_kind:ty),*) -> $answer:ty;)+) => {
        /// A wrapper around an engine. Each call that it doesn't override goes to the engine behind it.
        pub trait Layer: Send + Sync + 'static {
            /// Returns the wrapped engine.
            fn inner(&self) -> &dyn Olap;
            $(
                #[doc = concat!("As [`Olap::", stringify!($name), "`].")]
                fn $name<$life>(&$life self, $($argument: $kind),*) -> BoxFuture<$life, $result> {
                    self.inner().$name($($argument),*)
                }
            )+
            $(
                #[doc = concat!("As [`Olap::", stringify!($plain), "`].")]
                fn $plain(&self, $($given: $given_kind),*) -> $answer {
                    self.inner().$plain($($given),*)
                }
            )+
        }

        impl<L: Layer> Olap for Layered<L> {
            $(
                fn $name<$life>(&$life self, $($argument: $kind),*) -> BoxFuture<$life, $result> {
                    Layer::$name(&self.0, $($argument),*)
                }
            )+
            $(
                fn $plain(&self, $($given: $given_kind),*) -> $answer {
                    Layer::$plain(&self.0, $($given),*)
                }
            )+
        }
    };
}

/// Engine made of a [`Layer`] and the engine that it wraps.
pub struct Layered<L>(pub L);

layer! { 'a:
    async fn open(cancel: &'a CancellationToken) -> Result<(), Failure>;
    async fn take(epoch: u64, cancel: &'a CancellationToken) -> Result<(), Failure>;
    async fn stamp() -> Result<Option<Stamp>, Failure>;
    async fn close() -> Result<Option<Stamp>, Failure>;
    async fn build_set(builds: &'a [Build], cancel: &'a CancellationToken) -> Vec<Result<Built, BuildError>>;
    async fn build(build: &'a Build, cancel: &'a CancellationToken) -> Result<Built, BuildError>;
    async fn check(checks: &'a [Check], cancel: &'a CancellationToken) -> Result<Vec<Verdict>, Failure>;
    async fn rename(rename: &'a Rename, cancel: &'a CancellationToken) -> Result<Renamed, RenameError>;
    async fn drop_output(uid: Uuid, guard: Guard, cancel: &'a CancellationToken) -> Result<Dropped, Failure>;
    async fn retag(from: Tag, to: Tag, record: &'a [u8], cancel: &'a CancellationToken) -> Result<bool, Failure>;
    async fn outputs(cancel: &'a CancellationToken) -> Result<Vec<Output>, Failure>;
    async fn object(name: &'a str, cancel: &'a CancellationToken) -> Result<Option<Object>, Failure>;
    async fn query(query: Query, cancel: &'a CancellationToken) -> Result<Rows, QueryError>;
    async fn export(export: &'a Export, cancel: &'a CancellationToken) -> Result<Exported, ExportError>;
    fn guarantees() -> Guarantees;
    fn lead(epoch: u64) -> ();
    fn newest_epoch() -> Option<u64>;
    fn home() -> String;
    fn begin_with(sessions: Vec<Session>) -> ();
    fn allow_installs(allowed: bool) -> ();
    fn changes_by_others() -> u64;
    fn changes() -> Option<u64>;
    fn hooks() -> Result<(), Failure>;
    fn partitions() -> Result<&dyn Partitions, Failure>;
    fn trash() -> Result<&dyn Trash, Failure>;
    fn migrations() -> Result<&dyn Migrations, Failure>;
    fn databases() -> Result<&dyn Databases, Failure>;
    fn elsewhere() -> Result<&dyn Elsewhere, Failure>;
    fn tested_rows() -> Result<&dyn TestedRows, Failure>;
    fn catalog_copies() -> Result<&dyn CatalogCopies, Failure>;
    fn upkeep() -> Result<&dyn Upkeep, Failure>;
    fn own_file() -> Result<&dyn OwnFile, Failure>;
}
