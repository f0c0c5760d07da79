//! The implementation of [`CatalogCopies`](crate::olap::CatalogCopies) for a lake.

use std::path::Path;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::engine::{Engine, Intent};
use super::gate::Company;
use super::lake::{self, Lake};
use super::sys::{Connection, RawError};
use crate::olap::{CatalogCopies, Failure};

/// Schema of the outputs.
const OUTPUTS: &str = "main";

impl CatalogCopies for Engine {
    fn copy_catalog<'a>(
        &'a self,
        to: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let to = to.to_owned();
        self.with_lake(Company::Others, cancel, move |lake, connection| {
            lake::copy_catalog(lake, connection, &to)
        })
        .boxed()
    }

    fn lost_tables<'a>(
        &'a self,
        copy: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<String>, Failure>> {
        let copy = copy.to_owned();
        async move {
            let lost = self.with_lake(Company::Others, cancel, move |_, connection| {
                lake::lost_tables(connection, &copy)
            });
            let (lost, own): (Vec<_>, Vec<_>) =
                lost.await?.into_iter().partition(|[schema, _]| schema == OUTPUTS);
            match own.first() {
                None => Ok(lost.into_iter().map(|[_, table]| table).collect()),
                Some([schema, table]) => Err(Failure::Fatal {
                    message: format!(
                        "files of `{schema}.{table}` are gone, without which the lake can't be used"
                    ),
                }),
            }
        }
        .boxed()
    }

    fn restore_catalog<'a>(
        &'a self,
        copy: &'a Path,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        let copy = copy.to_owned();
        async move {
            let restored = self.with_lake(Company::Alone, cancel, move |lake, connection| {
                lake::restore_catalog(lake, connection, &copy)
            });
            restored.await?;
            // What is open knows the catalog of before.
            self.renew();
            Ok(())
        }
        .boxed()
    }
}

impl Engine {
    async fn with_lake<T: Send + 'static>(
        &self,
        company: Company,
        cancel: &CancellationToken,
        job: impl FnOnce(&Lake, &Connection) -> Result<T, RawError> + Send + 'static,
    ) -> Result<T, Failure> {
        let this = self.clone();
        self.work_to(Intent::Read, cancel, company, move |work| {
            let lake = this.lake().ok_or_else(|| Failure::lacks("catalog of its own"))?;
            job(lake, work.connection()).map_err(|raw| work.fail(&raw, None))
        })
        .await
    }
}
