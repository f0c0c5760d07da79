//! Tests of the DuckDB driver with a real engine.

#[cfg(feature = "arrow")]
mod batches;
mod builds;
#[cfg(feature = "crash-points")]
mod crashes;
mod exports;
mod failures;
mod give_back;
mod group;
mod growth;
mod hooks;
mod interrupts;
mod kept_rows;
mod opening;
mod parsing;
mod partitions;
mod queries;
mod quoting;
mod readers;
mod renames;
mod sharing;
mod step_histories;
mod steps;
mod trash;
mod values;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Engine, Options};
use crate::olap::{
    Build, BuildError, Built, Dropped, Failure, Fate, Guard, Hooks, Olap as _, Output, OutputKind, Query,
    QueryError, Rename, RenameError, Renamed, Step, Tag,
};

/// An engine on its own file in a temporary folder.
struct Bench {
    folder: TempDir,
    engine: Engine,
    cancel: CancellationToken,
}

fn bench() -> Bench {
    bench_with(|_| {})
}

fn bench_with(adjust: impl FnOnce(&mut Options)) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    adjust(&mut options);
    Bench {
        folder,
        engine: Engine::new(options),
        cancel: CancellationToken::new(),
    }
}

fn options(folder: &Path) -> Options {
    let mut options = Options::new(folder.join("main.duckdb"), folder);
    options.threads = NonZeroUsize::new(2);
    options.memory_limit = Some(1 << 30);
    options
}

fn uid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Returns the first build of resource `n`.
fn build(n: u128, name: &str, kind: OutputKind, sql: &str) -> Build {
    let tag = Tag {
        uid: uid(n),
        build: Uuid::from_u128(n << 64 | 1),
    };
    Build::of_statement(tag, format!("record of {n}").into_bytes(), kind, name, sql)
}

fn table(n: u128, name: &str, sql: &str) -> Build {
    build(n, name, OutputKind::Table, sql)
}

fn view(n: u128, name: &str, sql: &str) -> Build {
    build(n, name, OutputKind::View, sql)
}

impl Bench {
    fn path(&self) -> PathBuf {
        self.engine.options().path.clone()
    }

    async fn build(&self, build: Build) -> Result<Built, BuildError> {
        self.engine.build(&build, &self.cancel).await
    }

    async fn rename(&self, n: u128, to: &str) -> Result<Renamed, RenameError> {
        let rename = Rename {
            uid: uid(n),
            to: to.to_owned(),
            record: None,
        };
        self.engine.rename(&rename, &self.cancel).await
    }

    /// Drops an output. Returns true if there was any.
    async fn drop_output(&self, n: u128) -> Result<bool, Failure> {
        let dropped = self.engine.drop_output(uid(n), Guard::Free, &self.cancel).await?;
        Ok(dropped != Dropped::Nothing)
    }

    async fn outputs(&self) -> Vec<Output> {
        self.engine.outputs(&self.cancel).await.unwrap()
    }

    /// Returns a line `name kind owner` for each output.
    async fn listed(&self) -> Vec<String> {
        let line = |output: Output| {
            format!(
                "{} {} {}",
                output.location.name,
                output.kind,
                output.tag.uid.as_u128()
            )
        };
        self.outputs().await.into_iter().map(line).collect()
    }

    /// Returns all rows of a query, one line each.
    async fn rows(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        let query = Query::new(sql);
        let mut rows = self.engine.query(query, &self.cancel).await?;
        let line = |row: Vec<crate::olap::Value>| {
            let fields: Vec<_> = row.iter().map(ToString::to_string).collect();
            fields.join("|")
        };
        Ok(rows.collect().await?.into_iter().map(line).collect())
    }

    async fn one(&self, sql: &str) -> String {
        self.rows(sql).await.unwrap().join("\n")
    }

    /// Runs statements that the engine refuses to users, as a person would with the engine's own program.
    async fn by_hand(&self, statements: &'static [&'static str]) {
        self.engine
            .work(&self.cancel, super::gate::Company::Alone, move |work| {
                for sql in statements {
                    work.run(sql, &[])?;
                }
                Ok::<_, Failure>(())
            })
            .await
            .unwrap();
    }

    /// Closes and reopens the file, so that all knowledge comes from the file.
    async fn reopened(self) -> Self {
        self.engine.close().await.unwrap();
        let options = self.engine.options().clone();
        Self {
            engine: Engine::new(options),
            ..self
        }
    }

    /// Returns the bench of a process that starts after a kill of this one.
    fn after_a_kill(&self) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        std::fs::copy(self.path(), &options.path).unwrap();
        let wal = super::proof::wal_path(&self.path());
        if wal.exists() {
            std::fs::copy(wal, super::proof::wal_path(&options.path)).unwrap();
        }
        Bench {
            folder,
            engine: Engine::new(options),
            cancel: CancellationToken::new(),
        }
    }

    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }
}
