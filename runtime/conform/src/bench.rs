//! The bench of one case: an engine on fresh data, with short methods for requests and assertions.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{
    Build, BuildError, Built, Check, Dropped, Failure, Gravity, Guard, Object, Olap, Output, OutputKind,
    Query, QueryError, Rename, RenameError, Renamed, Tag, Value,
};

use crate::{Factory, NotTried, Rival, Scratch};

/// Explanation of a case that did not pass.
pub(crate) enum Wrong {
    /// The engine's error, or the difference found, as text.
    Found(String),
    /// The data at hand do not allow to try it.
    NotTried(NotTried),
}

impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self::Found(error.to_string())
    }
}

/// The outcome of a case: passed, or the failure.
pub(crate) type Verdict = Result<(), Wrong>;

/// Fails the case if a found value differs from the expected one.
pub(crate) fn same<T, U>(what: &str, found: T, expected: &U) -> Verdict
where
    T: Debug + PartialEq<U>,
    U: Debug + ?Sized,
{
    match found == *expected {
        true => Ok(()),
        false => Err(Wrong::Found(format!(
            "{what}: {found:?}, where {expected:?} is to be"
        ))),
    }
}

/// Fails the case with this message unless a condition holds.
pub(crate) fn holds(what: &str, holds: bool) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(Wrong::Found(what.to_owned())),
    }
}

/// An engine under test, with its data and a token to cancel its work.
pub(crate) struct Bench<'f> {
    pub(crate) factory: &'f dyn Factory,
    // Dropped before the data that it has open.
    pub(crate) engine: Arc<dyn Olap>,
    pub(crate) scratch: Box<dyn Scratch>,
    pub(crate) cancel: CancellationToken,
}

impl<'f> Bench<'f> {
    pub(crate) async fn new(factory: &'f dyn Factory) -> Result<Self, Wrong> {
        let scratch = factory.scratch().await.map_err(Wrong::Found)?;
        Ok(Self::on(factory, scratch))
    }

    /// Opens the engine on existing data for a test.
    pub(crate) fn on(factory: &'f dyn Factory, scratch: Box<dyn Scratch>) -> Self {
        Self {
            factory,
            engine: scratch.open(),
            scratch,
            cancel: CancellationToken::new(),
        }
    }

    /// Closes all engines, lets a person work on the data, and opens a new engine, which knows only what the data say.
    pub(crate) async fn reopened_after<T>(
        &mut self,
        meanwhile: impl FnOnce(&dyn crate::Person) -> Result<T, String>,
    ) -> Result<T, Wrong> {
        self.scratch.close().await;
        let done = match self.scratch.person() {
            Ok(person) => meanwhile(&*person).map_err(Wrong::Found),
            Err(why) => Err(Wrong::NotTried(why)),
        };
        self.engine = self.scratch.open();
        done
    }

    pub(crate) async fn reopened(&mut self) -> Verdict {
        self.scratch.close().await;
        self.engine = self.scratch.open();
        Ok(())
    }

    /// Lets another process take the data under an epoch and build a table there.
    pub(crate) async fn rival(&self, epoch: u64, table: &str) -> Result<Rival, Wrong> {
        self.scratch.rival(epoch, table).await.map_err(Wrong::NotTried)
    }

    pub(crate) async fn build(&self, build: &Build) -> Result<Built, BuildError> {
        self.engine.build(build, &self.cancel).await
    }

    pub(crate) async fn rename(&self, n: u128, to: &str) -> Result<Renamed, RenameError> {
        let rename = Rename {
            uid: uid(n),
            to: to.to_owned(),
            record: None,
        };
        self.engine.rename(&rename, &self.cancel).await
    }

    pub(crate) async fn drop_output(&self, n: u128) -> Result<Dropped, Failure> {
        self.engine.drop_output(uid(n), Guard::Free, &self.cancel).await
    }

    pub(crate) async fn outputs(&self) -> Result<Vec<Output>, Failure> {
        self.engine.outputs(&self.cancel).await
    }

    pub(crate) async fn object(&self, name: &str) -> Result<Option<Object>, Failure> {
        self.engine.object(name, &self.cancel).await
    }

    /// Returns a line `name kind owner` for each output.
    pub(crate) async fn listed(&self) -> Result<Vec<String>, Failure> {
        let line = |output: Output| {
            format!(
                "{} {} {}",
                output.location.name,
                output.kind,
                output.tag.uid.as_u128()
            )
        };
        Ok(self.outputs().await?.into_iter().map(line).collect())
    }

    /// Returns all rows of a query, one line each, with `|` between the values.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        let query = Query::new(sql);
        let mut rows = self.engine.query(query, &self.cancel).await?;
        let line = |row: Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
        Ok(rows.collect().await?.into_iter().map(line).collect())
    }

    /// Fails the case unless a query's rows equal the expected text.
    pub(crate) async fn says(&self, sql: &str, expected: &str) -> Verdict {
        same(sql, self.rows(sql).await?.join(" "), expected)
    }

    /// Fails the case unless the outputs equal a list of `name kind owner`.
    pub(crate) async fn lists(&self, expected: &[&str]) -> Verdict {
        same("the outputs", self.listed().await?, expected)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.factory.quoting().name(name)
    }
}

pub(crate) fn uid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Returns the tag of build `number` of resource `n`.
pub(crate) fn tag(n: u128, number: u64) -> Tag {
    Tag {
        uid: uid(n),
        build: Uuid::from_u128(n << 64 | u128::from(number)),
    }
}

/// Returns the record of a build, different for each build.
pub(crate) fn record(tag: Tag) -> Vec<u8> {
    format!("record of {tag}").into_bytes()
}

/// Returns build `number` of resource `n` as a request.
pub(crate) fn numbered(n: u128, number: u64, name: &str, kind: OutputKind, sql: &str) -> Build {
    let tag = tag(n, number);
    Build::of_statement(tag, record(tag), kind, name, sql)
}

pub(crate) fn table(n: u128, name: &str, sql: &str) -> Build {
    numbered(n, 1, name, OutputKind::Table, sql)
}

pub(crate) fn view(n: u128, name: &str, sql: &str) -> Build {
    numbered(n, 1, name, OutputKind::View, sql)
}

/// Returns a check whose failure undoes the build.
pub(crate) fn check(sql: &str) -> Check {
    Check {
        sql: sql.to_owned(),
        otherwise: None,
        gravity: Gravity::Undoes,
        keep: 0,
    }
}
