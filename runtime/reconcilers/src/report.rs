//! Reports: files of rows that are sent to people (N10).
//!
//! | module | holds |
//! |---|---|
//! | [`making`] | the question of a report, and the file that it becomes |
//! | [`files`] | the folder of files |
//! | [`record`] | the stored state, and the history |
//!
//! A file is whole before anything is said of it. It is stored with its messages in one commit, and they are handed over
//! one by one, so that a crash resumes with those who lack it.

pub mod file;
pub mod files;
pub mod record;

use std::path::Path;
use std::time::Duration;

use watershed_controller::{Context, KindOptions, Reconciler, RetryPolicy, Timestamp};
use watershed_core::{Error, ErrorKind, Outcome, Parents, Work};
use watershed_delivery::{
    Attachment, Fact, Key, Message, Notification, Receiver, Sender, Table, crash, message,
};
use watershed_drivers::olap::{Exported, FileFormat};
use watershed_outputs::failure;
use watershed_proto::ReportSpec;
use watershed_resolvers::{Answer, Until, check_names, status};
use watershed_schedule::Schedule;

use crate::{
    alert::{
        self,
        policy::{self, Changes, Trigger},
    },
    dispatch::{self, receivers},
    excerpt,
    intervals::Cut,
    links::ReportFile,
    messages::Proto,
    model::schedule,
    surroundings::{Seen, Surroundings, failed_ref, instant, keys, watermark},
};
use file::Making;
use files::Files;
use record::{Entry, ReportRecord};

/// The kind by which the controller knows reports.
pub const KIND: &str = "report";

/// The largest number of reports that are made at once.
pub const AT_ONCE: usize = 2;

/// Returns the options with which the kind is registered.
#[must_use]
pub fn options() -> KindOptions {
    KindOptions::new(KIND)
        .parents(Parents::Changed)
        .concurrency(AT_ONCE)
        // A store or a disk that is away for a moment; a question that can't be answered waits for the next time.
        .retry(RetryPolicy::Backoff {
            base: Duration::from_secs(1),
            cap: Duration::from_secs(300),
            attempts: u32::MAX,
            reset_after: Duration::ZERO,
        })
}

/// The reconciler of reports, which makes and sends them.
pub struct ReportReconciler {
    surroundings: Surroundings,
    files: Files,
}

impl ReportReconciler {
    /// Creates the reconciler; its files are kept in a folder of the project's state.
    #[must_use]
    pub(crate) fn new(surroundings: Surroundings, files: Files) -> Self {
        Self { surroundings, files }
    }
}

impl Reconciler for ReportReconciler {
    type Spec = Proto<ReportSpec>;
    type State = ReportRecord;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if !self.surroundings.outputs.chosen().holds(context.uid()) {
            return Ok(Outcome::passed_over());
        }
        let mut pass = Pass {
            reports: self,
            context: &context,
            record: context.state().cloned().unwrap_or_default(),
        };
        pass.hand_over().await?;
        let spec = &context.spec().0;
        if let Some(fault) = &spec.fault {
            return Err(failure::from_fault(fault));
        }
        if let Some(data) = &spec.data {
            check_names(data, context.refs())?;
        }
        pass.run(spec).await
    }

    /// Hands over the stored messages, which were due before the report was deleted.
    async fn delete(&self, context: Context<Self>) -> Result<Outcome, Error> {
        if let Some(record) = context.state() {
            dispatch::hand_over(&context.controller(), &record.outbox).await?;
        }
        Ok(Outcome::default())
    }
}

/// An invocation for a report.
struct Pass<'a> {
    reports: &'a ReportReconciler,
    context: &'a Context<ReportReconciler>,
    record: ReportRecord,
}

impl Pass<'_> {
    async fn run(mut self, spec: &ReportSpec) -> Result<Outcome, Error> {
        let context = self.context;
        let now = context.now();
        let said = spec.refresh_schedule.as_ref();
        let (schedule, times) = (schedule::read(said), schedule::fingerprint(said));
        let reported = self.reported(spec);
        let versions = match &reported {
            Some(reported) => alert::hash(reported.as_bytes()),
            None => alert::versions(context.refs()),
        };
        let asked = context.refreshes();
        let refreshes = asked.plain.saturating_add(asked.full);
        let Some(mark) = self.record.mark else {
            // One that is new is first sent at its next time, unless somebody wants it.
            self.record.mark = Some(now);
            self.record.schedule = times;
            self.record.refs = versions;
            self.store().await?;
            return match refreshes == self.record.refreshes {
                true => self.outcome(schedule.as_ref(), now, Work::Checked),
                false => Ok(Outcome::changed().requeue_after(Duration::ZERO)),
            };
        };
        let mark = self.count_anew(mark, times, now).await?;
        let follows = said.is_some_and(|said| said.ref_update);
        let changes = Changes {
            requested: refreshes != self.record.refreshes,
            refs: follows && versions != self.record.refs,
            ..Changes::default()
        };
        let Some(trigger) = policy::trigger(schedule.as_ref(), mark, changes, now) else {
            return self.outcome(schedule.as_ref(), mark, Work::None);
        };
        // It is made as soon as what it reads is there; the failures of what it reports are what it is about.
        if let Some(error) = failed_ref(context.refs()).filter(|_| reported.is_none()) {
            return Err(error);
        }
        let triggered = trigger.moment(now);
        let moment = self.moment(spec, triggered).await?;
        let is_wanted = trigger == Trigger::Request;
        let is_new = !spec.watermark_inherit || self.record.watermark != moment;
        // Stored with the first file, so that after a crash no request makes it twice.
        self.record.refs = versions;
        self.record.refreshes = refreshes;
        let mut work = Work::Checked;
        if let Some(moment) = moment.filter(|_| is_wanted || is_new) {
            self.make(spec, moment, is_wanted).await?;
            work = Work::Built;
        }
        self.record.watermark = moment.filter(|_| spec.watermark_inherit);
        let mark = triggered.max(now);
        self.record.mark = Some(mark);
        self.store().await?;
        self.hand_over().await?;
        self.outcome(schedule.as_ref(), mark, work)
    }

    /// Returns a report about other resources, if the query is about their status.
    fn reported(&self, spec: &ReportSpec) -> Option<String> {
        let (data, seen) = (spec.data.as_ref()?, self.seen());
        let views = self.reports.surroundings.resolvers(&seen).views;
        status::reported(data, &views, &self.context.row().key(), self.context.now())
    }

    /// Restarts the schedule from now if it was edited or ran by a clock that was ahead. Returns the time from which
    /// ticks count.
    async fn count_anew(
        &mut self,
        mark: Timestamp,
        times: String,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        let is_edited = !self.record.schedule.is_empty() && self.record.schedule != times;
        let counted = match is_edited {
            true => now,
            false => schedule::trusted(mark, now),
        };
        if counted != mark || self.record.schedule != times {
            (self.record.mark, self.record.schedule) = (Some(counted), times);
            self.store().await?;
        }
        Ok(counted)
    }

    /// Returns the moment that the report is about (N2); none while the refs have no watermark.
    async fn moment(&self, spec: &ReportSpec, triggered: Timestamp) -> Result<Option<Timestamp>, Error> {
        if !spec.watermark_inherit {
            return Ok(Some(triggered));
        }
        let seen = self.seen();
        let resolvers = self.reports.surroundings.resolvers(&seen);
        tokio::select! {
            found = watermark(&resolvers, keys(self.context.refs()), self.context.now()) => found,
            () = self.context.cancellation().cancelled() => Err(failure::cancelled()),
        }
    }

    /// Makes the report for a moment, or for each interval closed by then; each file is stored with its messages.
    async fn make(&mut self, spec: &ReportSpec, moment: Timestamp, is_wanted: bool) -> Result<(), Error> {
        let Some(intervals) = &spec.intervals else {
            let until = spec.watermark_inherit.then(|| Until::moment(instant(moment)));
            return self.make_one(spec, moment, until).await.map(drop);
        };
        let seen = self.seen();
        let resolvers = self.reports.surroundings.resolvers(&seen);
        let (said, data) = (spec.refresh_schedule.as_ref(), spec.data.as_ref());
        let cut = Cut::of(intervals, said, data, &resolvers)?;
        // One that lies ahead of both is of a clock or of rows that were wrong.
        let until = self.context.now().max(moment);
        let last = self.record.interval;
        let last = last.filter(|last| schedule::trusted(*last, until) == *last);
        for end in cut.due(last, moment, is_wanted).ends {
            let is_made = self.make_one(spec, end.at, Some(end.until())).await?;
            // One that could not be made is made at the next time, and those after it.
            if !is_made {
                break;
            }
            if end.is_closed {
                self.record.interval = Some(end.at);
            }
            self.store().await?;
            self.hand_over().await?;
        }
        Ok(())
    }

    /// Makes one file and its messages. A failure becomes an entry of the history; returns false in that case.
    async fn make_one(
        &mut self,
        spec: &ReportSpec,
        moment: Timestamp,
        until: Option<Until>,
    ) -> Result<bool, Error> {
        let mut entry = Entry {
            at: self.context.now(),
            moment,
            file: String::new(),
            rows: None,
            bytes: 0,
            error: String::new(),
            sent: Vec::new(),
        };
        match self.write(spec, moment, until).await {
            Ok((attachment, exported, rows)) => {
                let messages = self.messages(spec, moment, &attachment, (exported, rows.as_ref()));
                entry.file = attachment.name;
                (entry.rows, entry.bytes) = (exported.rows, exported.bytes);
                entry.sent = messages.iter().map(|one| one.message.key.clone()).collect();
                self.record.order += 1;
                self.record.outbox.extend(messages);
            }
            Err(error) if error.kind == ErrorKind::Permanent => {
                entry.error = error.message.to_string();
            }
            Err(error) => return Err(error),
        }
        let is_made = entry.error.is_empty();
        self.record.note(entry);
        Ok(is_made)
    }

    fn seen(&self) -> Seen<'_> {
        Seen {
            handle: self.context.controller(),
            refs: self.context.refs(),
        }
    }

    async fn write(
        &self,
        spec: &ReportSpec,
        moment: Timestamp,
        until: Option<Until>,
    ) -> Result<(Attachment, Exported, Option<Answer>), Error> {
        let (context, cancel) = (self.context, self.context.cancellation());
        let seen = self.seen();
        let making = Making {
            resolvers: self.reports.surroundings.resolvers(&seen),
            spec,
            own: context.row().key(),
            now: context.now(),
            until,
        };
        let format = making.format()?;
        let unwritable = |error: std::io::Error| Error::transient("export-failed", error.to_string());
        let name = file_name(context.name().as_str(), moment, format);
        // Reports of one name in different cases, and of one that was there before, have files of their own.
        let unique = format!("{}-{name}", context.uid());
        let path = self.reports.files.place(&unique).map_err(unwritable)?;
        let export = tokio::select! {
            export = making.export(&path, format) => export?,
            () = cancel.cancelled() => return Err(failure::cancelled()),
        };
        let exported = making.write(&export, cancel).await?;
        crash::point(crash::EVALUATED);
        let (files, written) = (self.reports.files.clone(), path.clone());
        let hashed = tokio::task::spawn_blocking(move || {
            files.make_room(&written);
            files::hash(&written)
        });
        let hash = hashed
            .await
            .map_err(|error| Error::transient("export-failed", error.to_string()))?
            .map_err(unwritable)?;
        let mut attachment = Attachment {
            name,
            media_type: file::media_type(format).to_owned(),
            bytes: exported.bytes,
            hash,
            link: path.display().to_string(),
            path: path.display().to_string(),
        };
        if let Some(link) = self.link(&path, &attachment).await? {
            attachment.link = link;
        }
        // Only messages show rows: a report that nobody is told of asks its question once.
        let rows = match receivers(&spec.notifiers, &spec.variables).is_empty() {
            true => None,
            false => tokio::select! {
                rows = making.first_rows() => rows,
                () = cancel.cancelled() => return Err(failure::cancelled()),
            },
        };
        Ok((attachment, exported, rows))
    }

    /// Returns the URL at which the embedder serves a file, if it does.
    async fn link(&self, path: &Path, file: &Attachment) -> Result<Option<String>, Error> {
        let Some(links) = &self.reports.surroundings.links else {
            return Ok(None);
        };
        let asked = links.link(ReportFile {
            uid: self.context.uid(),
            report: self.context.name().as_str(),
            name: &file.name,
            path,
            media_type: &file.media_type,
            bytes: file.bytes,
            hash: &file.hash,
        });
        tokio::select! {
            link = asked => Ok(link),
            () = self.context.cancellation().cancelled() => Err(failure::cancelled()),
        }
    }

    fn messages(
        &self,
        spec: &ReportSpec,
        moment: Timestamp,
        file: &Attachment,
        (exported, rows): (Exported, Option<&Answer>),
    ) -> Vec<Notification> {
        let context = self.context;
        // The same moment may be sent again on request; the number tells those apart, and is stored with the messages.
        let order = self.record.order + 1;
        let table = rows.filter(|answer| !answer.rows.is_empty()).map(excerpt::table);
        let series = rows.and_then(excerpt::series);
        let of = |receiver: Receiver| Notification {
            message: Message {
                schema: message::SCHEMA.to_owned(),
                key: Key::new(context.uid(), moment, KIND, &format!("{order} {}", receiver.id())),
                project: self.reports.surroundings.project.clone(),
                sender: Sender {
                    kind: KIND.to_owned(),
                    name: context.name().to_string(),
                },
                verdict: KIND.to_owned(),
                moment: message::instant(moment),
                title: title(spec, context.name().as_str()),
                text: spec.description.clone(),
                facts: facts(spec, moment, exported, table.as_ref()),
                table: table.clone(),
                attachment: Some(file.clone()),
                series: series.clone(),
                is_test: false,
            },
            receiver,
            sender: context.uid(),
            order,
        };
        let receivers = receivers(&spec.notifiers, &spec.variables);
        receivers.into_iter().map(of).collect()
    }

    /// Creates the notifications that are missing, then removes their messages from the outbox (N6).
    async fn hand_over(&mut self) -> Result<(), Error> {
        if self.record.outbox.is_empty() {
            return Ok(());
        }
        // What is handed over is stored first: a crash in between hands over what is missing.
        self.store().await?;
        crash::point(crash::RECORDED);
        dispatch::hand_over(&self.context.controller(), &self.record.outbox).await?;
        self.record.outbox.clear();
        self.store().await?;
        crash::point(crash::HANDED_OVER);
        Ok(())
    }

    async fn store(&self) -> Result<(), Error> {
        let stored = async {
            self.context.set_state(&self.record).await?;
            self.context.committed().await
        };
        stored
            .await
            .map_err(|error| Error::transient("state", error.to_string()))
    }

    /// Returns the outcome: a report that could not be made stays failed until it is made again.
    fn outcome(&self, schedule: Option<&Schedule>, mark: Timestamp, work: Work) -> Result<Outcome, Error> {
        let next = policy::next(schedule, mark, self.context.now());
        let last = self.record.history.first();
        if let Some(last) = last.filter(|last| !last.error.is_empty()) {
            return Err(Error {
                retrigger: next,
                ..Error::permanent("report-failed", last.error.as_str())
            });
        }
        Ok(Outcome {
            retrigger: next,
            ..Outcome::from_work(work)
        })
    }
}

fn title(spec: &ReportSpec, name: &str) -> String {
    match spec.display_name.as_str() {
        "" => name.to_owned(),
        title => title.to_owned(),
    }
}

fn facts(spec: &ReportSpec, moment: Timestamp, exported: Exported, table: Option<&Table>) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact {
        label: label.to_owned(),
        value,
    };
    let zone = excerpt::zone(spec.refresh_schedule.as_ref(), spec.data.as_ref());
    let mut facts = vec![fact("as of", message::in_words(moment, zone))];
    let shown = table.map_or(0, |table| table.rows.len() as u64);
    let has_limit = spec.export.as_ref().is_some_and(|export| export.limit > 0);
    facts.extend(
        exported
            .rows
            .map(|rows| match rows == file::ROWS_MAX && !has_limit {
                true => fact("rows", format!("the first {rows}")),
                false if shown > 0 && shown < rows => {
                    fact("rows", format!("{rows}, of which the first {shown} follow"))
                }
                false => fact("rows", rows.to_string()),
            }),
    );
    let notes = spec.annotations.iter();
    facts.extend(notes.map(|(label, value)| fact(label, value.clone())));
    facts
}

/// Returns a file name that is readable and valid on every system.
fn file_name(report: &str, moment: Timestamp, format: FileFormat) -> String {
    let safe = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = report.chars().map(safe).take(80).collect();
    let at = instant(moment).strftime("%Y-%m-%dT%H-%M-%SZ");
    format!("{name}-{at}.{}", file::extension(format))
}
