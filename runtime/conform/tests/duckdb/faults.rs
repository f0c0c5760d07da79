//! Engines with one fault each: DuckDB with a changed behaviour.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_conform::{Factory, Images, Layer, Layered, NotTried, Person, Rival, Scratch};
use watershed_dialect::{DuckDb, Quoting};
use watershed_drivers::olap::{
    Build, BuildError, Built, Check, Dropped, Failure, Guarantees, Guard, Hooks, Object, Olap, Output,
    OutputKind, Rename, RenameError, Renamed, Step, Tag, Verdict,
};

use super::builds;
use super::factory::DuckDbFactory;

macro_rules! faults {
    ($($fault:ident $case:literal;)+) => {
        /// A fault of an engine, which the suite must find.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Fault {
            $($fault,)+
        }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[$(Self::$fault),+];

            /// Returns the name of the case that finds the fault.
            pub(crate) fn found_by(self) -> &'static str {
                match self {
                    $(Self::$fault => $case,)+
                }
            }
        }
    };
}

faults! {
    RecordOutsideTheTransaction "a_build_that_is_dropped_at_any_await_is_whole_or_absent";
    TagLostByARename "a_rename_keeps_rows_and_tag_and_may_replace_the_record";
    ForeignTableReplaced "what_is_not_ours_survives_and_is_named";
    CheckOfTheOldOutput "checks_look_at_the_new_rows_and_undo_the_build";
    CancelIgnored "a_cancelled_build_ends_soon_and_changes_nothing";
    OldEpochAccepted "while_an_epoch_is_held_no_other_process_builds";
    SwapThroughAThirdThatStays "names_are_swapped_and_nothing_else_stays";
    DropThatLeavesTheRecord "a_record_goes_with_its_output";
    ReadersSeeHalf "readers_see_all_rows_of_one_build_and_no_error";
    RetagThatLosesTheRecord "a_retag_keeps_rows_and_replaces_tag_and_record";
    CaseFoldedWrongly "objects_are_found_without_regard_to_case";
    FailedBuildThatLeavesItsStage "a_failed_build_leaves_the_last_good_output_and_nothing_else";
    StepThatIsNoTransaction "a_step_that_fails_leaves_the_rows_of_before";
    BuildInTwoTransactions "whatever_the_moment_of_death_each_call_is_whole_or_absent";
}

/// Factory of engines with a fault.
pub(crate) struct Faulty(pub(crate) Fault);

impl Factory for Faulty {
    fn guarantees(&self) -> Guarantees {
        DuckDbFactory.guarantees()
    }

    fn scratch(&self) -> BoxFuture<'_, Result<Box<dyn Scratch>, String>> {
        let fault = self.0;
        async move {
            let inner = DuckDbFactory.scratch().await?;
            Ok(Box::new(FaultyScratch { inner, fault }) as Box<dyn Scratch>)
        }
        .boxed()
    }

    fn quoting(&self) -> &dyn Quoting {
        &DuckDb
    }

    fn numbers(&self, rows: u64) -> String {
        DuckDbFactory.numbers(rows)
    }

    fn endless(&self) -> String {
        DuckDbFactory.endless()
    }
}

struct FaultyScratch {
    inner: Box<dyn Scratch>,
    fault: Fault,
}

impl Scratch for FaultyScratch {
    fn open(&self) -> Arc<dyn Olap> {
        let inner = self.inner.open();
        Arc::new(Layered(FaultyEngine {
            inner,
            fault: self.fault,
        }))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }

    fn person(&self) -> Result<Box<dyn Person>, NotTried> {
        self.inner.person()
    }

    fn rival<'a>(&'a self, epoch: u64, table: &'a str) -> BoxFuture<'a, Result<Rival, NotTried>> {
        self.inner.rival(epoch, table)
    }

    fn images(&self) -> Option<Box<dyn Images>> {
        self.inner.images()
    }
}

struct FaultyEngine {
    inner: Arc<dyn Olap>,
    fault: Fault,
}

impl FaultyEngine {
    /// Runs statements that the engine permits to nobody, as hooks of a build that fails.
    async fn meddle(&self, sql: String) {
        let mut build = builds::table(0xfa, "meddling", "select x from nothing_of_this_name");
        build.hooks = Hooks {
            before: vec![sql],
            after: Vec::new(),
        };
        let error = self.inner.build(&build, &CancellationToken::new()).await.err();
        assert!(
            matches!(error, Some(BuildError::Failed(Failure::Sql(_)))),
            "{error:?}"
        );
    }

    /// Builds without the steps that the fault omits.
    async fn build_otherwise(&self, build: &Build, cancel: &CancellationToken) -> Result<Built, BuildError> {
        let is_replace = build.step == Step::Replace && build.kind == OutputKind::Table;
        match self.fault {
            Fault::RecordOutsideTheTransaction => {
                let bare = Build {
                    record: Vec::new(),
                    ..build.clone()
                };
                let built = self.inner.build(&bare, cancel).await?;
                tokio::task::yield_now().await;
                self.inner
                    .retag(build.tag, build.tag, &build.record, cancel)
                    .await?;
                Ok(Built {
                    record: build.record.clone(),
                    ..built
                })
            }
            Fault::ForeignTableReplaced => match self.inner.build(build, cancel).await {
                Err(BuildError::NameTaken { name, kind }) => {
                    self.meddle(format!("drop {kind} {}", DuckDb.name(&name))).await;
                    self.inner.build(build, cancel).await
                }
                other => other,
            },
            Fault::CheckOfTheOldOutput if self.inner.object(&build.name, cancel).await?.is_some() => {
                let verdicts = self.inner.check(&build.checks, cancel).await?;
                let bare = Build {
                    checks: Vec::<Check>::new(),
                    ..build.clone()
                };
                let undone = verdicts
                    .iter()
                    .zip(&build.checks)
                    .any(|(verdict, check)| verdict.undoes(check.gravity));
                match undone {
                    true => Err(BuildError::Undone(verdicts)),
                    false => Ok(Built {
                        verdicts,
                        ..self.inner.build(&bare, cancel).await?
                    }),
                }
            }
            Fault::CancelIgnored => self.inner.build(build, &CancellationToken::new()).await,
            Fault::ReadersSeeHalf if is_replace => {
                let half = Build {
                    sql: format!("select * from ({}) t limit 10", build.sql),
                    ..build.clone()
                };
                self.inner.build(&half, cancel).await?;
                tokio::task::yield_now().await;
                self.inner.build(build, cancel).await
            }
            Fault::FailedBuildThatLeavesItsStage => {
                let built = self.inner.build(build, cancel).await;
                if built.is_err() {
                    self.meddle("create or replace table stage as select 1 as x".to_owned())
                        .await;
                }
                built
            }
            Fault::StepThatIsNoTransaction if build.step != Step::Replace => {
                let bare = Build {
                    checks: Vec::new(),
                    ..build.clone()
                };
                let built = self.inner.build(&bare, cancel).await?;
                let verdicts = self.inner.check(&build.checks, cancel).await?;
                match verdicts.iter().all(|verdict| *verdict == Verdict::Holds) {
                    true => Ok(Built { verdicts, ..built }),
                    false => Err(BuildError::Undone(verdicts)),
                }
            }
            Fault::BuildInTwoTransactions => {
                self.inner.drop_output(build.tag.uid, Guard::Free, cancel).await?;
                self.inner.build(build, cancel).await
            }
            _ => self.inner.build(build, cancel).await,
        }
    }

    async fn rename_otherwise(
        &self,
        rename: &Rename,
        cancel: &CancellationToken,
    ) -> Result<Renamed, RenameError> {
        let renamed = self.inner.rename(rename, cancel).await?;
        let name = DuckDb.name(&rename.to);
        match self.fault {
            Fault::TagLostByARename => self.meddle(format!("comment on table {name} is null")).await,
            Fault::SwapThroughAThirdThatStays => {
                self.meddle(format!("create or replace table third as select * from {name}"))
                    .await;
            }
            _ => {}
        }
        Ok(renamed)
    }

    /// Drops the output, but keeps the records beside it.
    async fn drop_otherwise(&self, uid: Uuid, cancel: &CancellationToken) -> Result<Dropped, Failure> {
        let outputs = self.inner.outputs(cancel).await?;
        let Some(output) = outputs.into_iter().find(|output| output.tag.uid == uid) else {
            return Ok(Dropped::Nothing);
        };
        self.meddle(format!(
            "drop {} {}",
            output.kind,
            DuckDb.name(&output.location.name)
        ))
        .await;
        Ok(Dropped::Done)
    }
}

impl Layer for FaultyEngine {
    fn inner(&self) -> &dyn Olap {
        &*self.inner
    }

    fn take<'a>(&'a self, epoch: u64, cancel: &'a CancellationToken) -> BoxFuture<'a, Result<(), Failure>> {
        match self.fault {
            Fault::OldEpochAccepted => async { Ok(()) }.boxed(),
            _ => self.inner.take(epoch, cancel),
        }
    }

    fn build<'a>(
        &'a self,
        build: &'a Build,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Built, BuildError>> {
        self.build_otherwise(build, cancel).boxed()
    }

    fn rename<'a>(
        &'a self,
        rename: &'a Rename,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Renamed, RenameError>> {
        self.rename_otherwise(rename, cancel).boxed()
    }

    fn drop_output<'a>(
        &'a self,
        uid: Uuid,
        guard: Guard,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Dropped, Failure>> {
        match self.fault {
            Fault::DropThatLeavesTheRecord => self.drop_otherwise(uid, cancel).boxed(),
            _ => self.inner.drop_output(uid, guard, cancel),
        }
    }

    fn retag<'a>(
        &'a self,
        from: Tag,
        to: Tag,
        record: &'a [u8],
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<bool, Failure>> {
        match self.fault {
            Fault::RetagThatLosesTheRecord => self.inner.retag(from, to, &[], cancel),
            _ => self.inner.retag(from, to, record, cancel),
        }
    }

    fn object<'a>(
        &'a self,
        name: &'a str,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Object>, Failure>> {
        match self.fault {
            Fault::CaseFoldedWrongly => async move {
                let outputs: Vec<Output> = self.inner.outputs(cancel).await?;
                match outputs.iter().any(|output| output.location.name == name) {
                    true => self.inner.object(name, cancel).await,
                    false => Ok(None),
                }
            }
            .boxed(),
            _ => self.inner.object(name, cancel),
        }
    }
}
