//! One case at work: an engine on data of its own, and short words for what is asked of it.

use std::fmt::Debug;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_drivers::olap::{
    Build, BuildError, Built, Check, Dropped, Failure, Gravity, Guard, Object, Olap, Output, OutputKind,
    Query, QueryError, Rename, RenameError, Renamed, Tag, Value,
};

use crate::{Factory, Scratch};

/// The thing that an engine did instead, for people.
pub(crate) struct Wrong(pub(crate) String);

impl<E: std::error::Error> From<E> for Wrong {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The end of a case.
pub(crate) type Verdict = Result<(), Wrong>;

/// Compares what is with what is to be.
pub(crate) fn same<T, U>(what: &str, found: T, expected: &U) -> Verdict
where
    T: Debug + PartialEq<U>,
    U: Debug + ?Sized,
{
    match found == *expected {
        true => Ok(()),
        false => Err(Wrong(format!("{what}: {found:?}, where {expected:?} is to be"))),
    }
}

/// Has something hold.
pub(crate) fn holds(what: &str, holds: bool) -> Verdict {
    match holds {
        true => Ok(()),
        false => Err(Wrong(what.to_owned())),
    }
}

/// An engine under test.
pub(crate) struct Bench<'f> {
    pub(crate) factory: &'f dyn Factory,
    pub(crate) scratch: Box<dyn Scratch>,
    pub(crate) engine: Arc<dyn Olap>,
    pub(crate) cancel: CancellationToken,
}

impl<'f> Bench<'f> {
    pub(crate) async fn new(factory: &'f dyn Factory) -> Result<Self, Wrong> {
        let scratch = factory.scratch().await.map_err(Wrong)?;
        Ok(Self::on(factory, scratch))
    }

    /// A bench on data that are there.
    pub(crate) fn on(factory: &'f dyn Factory, scratch: Box<dyn Scratch>) -> Self {
        Self {
            factory,
            engine: scratch.open(),
            scratch,
            cancel: CancellationToken::new(),
        }
    }

    /// Closes in order and opens again, so that what is known comes from the data alone. A person does something between.
    pub(crate) async fn reopened_after<T>(
        &mut self,
        meanwhile: impl FnOnce(&dyn crate::Person) -> Result<T, String>,
    ) -> Result<T, Wrong> {
        self.scratch.close().await;
        let done = meanwhile(&*self.scratch.person()).map_err(Wrong);
        self.engine = self.scratch.open();
        done
    }

    pub(crate) async fn reopened(&mut self) -> Verdict {
        self.reopened_after(|_| Ok(())).await
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

    /// `name kind owner` of each output.
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

    /// All rows, a line each.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Vec<String>, QueryError> {
        let query = Query {
            sql: sql.to_owned(),
            limit: None,
            timeout: None,
            attributes: Default::default(),
        };
        let mut rows = self.engine.query(query, &self.cancel).await?;
        let line = |row: Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
        Ok(rows.collect().await?.into_iter().map(line).collect())
    }

    /// Holds an answer against a text.
    pub(crate) async fn says(&self, sql: &str, expected: &str) -> Verdict {
        same(sql, self.rows(sql).await?.join(" "), expected)
    }

    /// Holds the outputs against a list of `name kind owner`.
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

/// The tag of a resource's build of this number.
pub(crate) fn tag(n: u128, number: u64) -> Tag {
    Tag {
        uid: uid(n),
        build: Uuid::from_u128(n << 64 | u128::from(number)),
    }
}

/// The record of a build: no two builds have the same.
pub(crate) fn record(tag: Tag) -> Vec<u8> {
    format!("record of {tag}").into_bytes()
}

/// The build of this number of the resource `n`.
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

/// A check that undoes a build.
pub(crate) fn check(sql: &str) -> Check {
    Check {
        sql: sql.to_owned(),
        otherwise: None,
        gravity: Gravity::Undoes,
        keep: 0,
    }
}
