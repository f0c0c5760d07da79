//! Answers requests of this process and of others.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watershed_api::documents::Command;
use watershed_api::request::{RunRequest, TestRequest};
use watershed_api::{Answer, Code, Owner, Problem, Reply, Request};
use watershed_controller::Refresh;
use watershed_controller::history::{HistoryError, HistoryRow};

use super::converge::{Reach, Which, Wish, done};
use super::logs::Last;
use super::read::{Reading, Shown};
use super::stop::{Control, Stop};
use super::{Files, Instance, data_tests, export, metrics, partitions, plan, read, stream_query};
use crate::report::kinds::checks;
use crate::report::{Entry, Hidden, names};
use crate::socket::{Replies, Service};

impl Service for Instance {
    async fn serve(&self, request: Request, replies: Replies) {
        if let Err(refusal) = self.answer(request, &replies).await {
            let _ = replies.send(Reply::Refused(refusal)).await;
        }
    }

    fn owner(&self) -> Option<Owner> {
        Some(Owner {
            command: match self.options.files {
                Files::Watched => Command::Start,
                Files::Once => Command::Run,
            },
            process: std::process::id(),
            sandbox: self.options.sandbox,
        })
    }
}

impl Instance {
    /// Does the work of the command that opened this instance. Stopping it stops the controller.
    pub(crate) async fn own(&self, request: Request, stop: &Stop, replies: &Replies) {
        let answered = self.work(request, &Control::Own(stop.clone()), replies).await;
        if let Err(refusal) = answered {
            let _ = replies.send(Reply::Refused(refusal)).await;
        }
    }

    async fn answer(&self, request: Request, replies: &Replies) -> Result<(), Problem> {
        match request {
            Request::Run(_)
            | Request::Reconcile { .. }
            | Request::Refresh { .. }
            | Request::Approve { .. }
            | Request::Retry { .. } => self.work(request, &Control::Foreign, replies).await,
            Request::Explain { name } => end(replies, self.explain(name.as_deref()).await?).await,
            Request::Operate { operation, names } => {
                end(replies, self.operate(operation, &names).await?).await
            }
            Request::OperateServices { change, names } => {
                end(replies, self.operate_services(change, &names).await?).await
            }
            Request::ChangeByHand(change) => end(replies, self.change_by_hand(change).await?).await,
            Request::Logs {
                name,
                limit,
                follow,
                since,
                program,
            } => {
                let last = Last { limit, since };
                if let Some(part) = program
                    && let Some(answer) = self.tell_output(&name, part, last, follow, replies).await?
                {
                    return end(replies, answer).await;
                }
                let answer = self.tell_logs(&name, last, follow, replies).await?;
                end(replies, answer).await
            }
            Request::Check => end(replies, self.check().await?).await,
            Request::Doctor => end(replies, self.doctor().await?).await,
            Request::Gc => end(replies, self.gc().await?).await,
            Request::Backup { file, force } => end(replies, self.backup(&file, force).await?).await,
            Request::Trash(request) => end(replies, self.trash(&request).await?).await,
            Request::Stats { form } => end(replies, self.stats(form)).await,
            Request::Query {
                sql,
                limit,
                timeout_ms,
            } => {
                let timeout = timeout_ms.map(Duration::from_millis);
                stream_query(&self.engine, self.outputs.secrets(), sql, limit, timeout, replies).await;
                Ok(())
            }
            Request::Metrics(request) => {
                let entries = self.entries();
                let entries = metrics::Entries(&entries);
                let door = metrics::Door {
                    views: &self.views(&entries),
                    engine: &self.engine,
                    entries: &entries,
                };
                end(replies, metrics::answer(&door, *request, replies).await?).await
            }
            Request::Call(request) => {
                let entries = self.entries();
                let entries = metrics::Entries(&entries);
                let answer = self.questions(&entries).call(*request, replies).await?;
                end(replies, answer).await
            }
            Request::TestAlert(request) => {
                let entries = self.entries();
                let entries = metrics::Entries(&entries);
                let answer = self.questions(&entries).test_alert(request).await?;
                end(replies, answer).await
            }
            Request::Export(request) => {
                let entries = self.entries();
                let export = self.reading(&entries).export(request)?;
                let written = export::write(&self.engine, self.outputs.secrets(), &export, replies).await?;
                end(replies, written).await
            }
            Request::Test(request) => self.test(&request, replies).await,
            Request::Show { name, limit } => self.show(&name, limit, replies).await,
            Request::Status {
                names,
                selection,
                all,
            } => {
                let entries = self.entries();
                let reading = self.reading(&entries);
                let mut document = reading.status(&names, &selection, Hidden::unless(all))?;
                if !names.is_empty() {
                    let programs = self.state_path().join(crate::state_folder::PROGRAMS);
                    checks::show_in(&mut document, &entries, &programs);
                }
                end(replies, Answer::Run(Box::new(document))).await
            }
            Request::Plan { exit_code, selection } => {
                let state = self.options.state_folder();
                let state = state.map_err(|error| Problem::new(Code::StateUnreadable, error.to_string()))?;
                let entries = self.entries();
                let asked = plan::Asked {
                    options: &self.options,
                    state: &state,
                    secrets: self.outputs.secrets(),
                    entries: &entries,
                    exit_code,
                    selection: &selection,
                    engine: Some(&self.engine),
                };
                end(replies, Answer::Plan(Box::new(plan::plan(asked).await?))).await
            }
            Request::Graph { name, selection, all } => {
                let entries = self.entries();
                let reading = self.reading(&entries);
                let graph = reading.graph(name.as_deref(), &selection, Hidden::unless(all))?;
                end(replies, graph).await
            }
            Request::Partitions(request) => {
                let entries = self.entries();
                end(
                    replies,
                    partitions::list(&self.engine, &self.project, &entries, &request).await?,
                )
                .await
            }
            Request::History { name, limit } => {
                let entries = self.entries();
                let runs = self.histories(&entries, name.as_deref(), limit).await?;
                end(
                    replies,
                    self.reading(&entries).history(runs, name.as_deref(), limit),
                )
                .await
            }
        }
    }

    async fn work(&self, request: Request, control: &Control, replies: &Replies) -> Result<(), Problem> {
        let (command, wish, run) = match request {
            Request::Run(run) if matches!(control, Control::Own(_)) => (Command::Run, Wish::Start, run),
            Request::Run(run) if run.selection.is_empty() => (Command::Run, Wish::Everything, run),
            Request::Run(run) => (Command::Run, Wish::Selected(run.selection.clone()), run),
            Request::Reconcile { names, run } => (Command::Reconcile, Wish::Reconcile(names), run),
            Request::Refresh {
                names,
                full,
                downstream,
                partitions,
                run,
            } => {
                let how = if full { Refresh::Full } else { Refresh::Plain };
                let reach = if downstream {
                    Reach::Downstream
                } else {
                    Reach::Named
                };
                let wish = match partitions {
                    Some(choice) => Wish::Partitions(names, choice),
                    None if run.selection.is_empty() => Wish::Refresh(Which::Named(names), how, reach),
                    None => Wish::Refresh(Which::Selected(run.selection.clone()), how, reach),
                };
                (Command::Refresh, wish, run)
            }
            Request::Approve { names, run } => (Command::Approve, Wish::Approve(names), run),
            Request::Retry { names, run } => (Command::Retry, Wish::Retry(names), run),
            other => return Err(Problem::new(Code::Defect, format!("{other:?} is no work"))),
        };
        self.same_variables(&run)?;
        let document = self.converge(command, wish, &run, control, replies).await?;
        done(replies, document).await;
        Ok(())
    }

    fn same_variables(&self, run: &RunRequest) -> Result<(), Problem> {
        if run.variables == self.options.variables {
            return Ok(());
        }
        let refusal = Problem::new(
            Code::HeldElsewhere,
            "the process that owns the folder has other variables (`--env`)",
        );
        Err(refusal.hint("wait until it has ended, or stop it"))
    }

    async fn test(&self, request: &TestRequest, replies: &Replies) -> Result<(), Problem> {
        let rows = data_tests::chosen(&self.entries(), request)?;
        let cancel = CancellationToken::new();
        let _interrupt = cancel.clone().drop_guard();
        tokio::select! {
            answer = data_tests::tested(&self.engine, &self.project, self.outputs.secrets(), &rows, request, &cancel) => {
                end(replies, answer).await
            }
            () = replies.closed() => Ok(()),
        }
    }

    async fn show(&self, name: &str, limit: u64, replies: &Replies) -> Result<(), Problem> {
        let entries = self.entries();
        match self.reading(&entries).show(name)? {
            Shown::Rows { sql, about } => {
                let _ = replies.send(Reply::About(about)).await;
                let secrets = self.outputs.secrets();
                stream_query(&self.engine, secrets, sql, Some(limit), None, replies).await;
                Ok(())
            }
            Shown::Document(answer) => end(replies, *answer).await,
        }
    }

    async fn histories(
        &self,
        entries: &[Entry],
        name: Option<&str>,
        limit: u64,
    ) -> Result<Vec<HistoryRow>, Problem> {
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let runs = match name.map(|name| names::resolve(entries, name)).transpose() {
            Ok(None) => self.controller.recent_history(limit).await,
            Ok(Some(entry)) => self.controller.history(entry.row.uid, limit).await,
            Err(refusal) => {
                let all = self.controller.recent_history(read::MOST_SEARCHED).await;
                return read::uid_of_removed(all.map_err(|error| unread(&error))?, name, refusal);
            }
        };
        runs.map_err(|error| unread(&error))
    }

    fn reading<'a>(&'a self, entries: &'a [Entry]) -> Reading<'a> {
        Reading {
            project: &self.project,
            entries,
        }
    }
}

async fn end(replies: &Replies, answer: Answer) -> Result<(), Problem> {
    let _ = replies.send(Reply::Done(Box::new(answer))).await;
    Ok(())
}

fn unread(error: &HistoryError) -> Problem {
    Problem::new(Code::StateUnreadable, error.to_string())
}
