//! Presentation of replies as they come, in the format that was asked for.

mod ends;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use watershed_api::documents::{
    Column, Command, Diagnostic, Event, Line, LogLevel, LogLine, LogsDocument, MetricsDocument, OutputLine,
    QueryDocument, Reason, ResourceDocument, ResourceName, RunDocument, Severity, ShowDocument,
    TestsDocument, Time,
};
use watershed_api::{Answer, Exit, Reply};

use super::args::Format;
use super::console::{Console, Verbosity};
use super::failure::Failure;
use super::rounds::Rounds;
use crate::render::chart::Chart;
use crate::render::diagnostics::{Details, Drawing};
use crate::render::palette::{DIM, WARN};
use crate::render::paragraph::folded;
use crate::render::progress::Bar;
use crate::render::repeats::Repeats;
use crate::render::summary;
use crate::render::told::{self, Begin};
use crate::render::words::Sources;
use crate::render::{data_tests, declared, fields, logs, metrics, rows, status, table, units};
use watershed::forms::{csv, lines::Keys};
use watershed::program::{ReportedProblems, problems};

/// The interval at which the progress bar is redrawn while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// A presenter of one command's replies: shows each as it comes, in the format asked for.
pub(crate) struct Presenter<'a> {
    console: &'a mut Console,
    format: Format,
    root: PathBuf,
    bar: Option<Bar>,
    columns: Vec<Column>,
    rows: Vec<Vec<serde_json::Value>>,
    lines: Vec<LogLine>,
    /// Output lines of programs, collected for formats that show all at once.
    output: Vec<OutputLine>,
    /// The models that files declare as sources, and that are called so.
    pub(crate) sources: Sources,
    /// The resource whose rows are shown.
    about: Option<Box<ResourceDocument>>,
    /// Remarks below a table.
    remarks: Vec<String>,
    /// Advice below the remarks.
    pub(crate) advice: Vec<String>,
    /// The writer of lines for ended runs.
    ends: told::Lines,
    /// The resources whose end was shown in a line.
    told: BTreeSet<ResourceName>,
    /// Findings that were already drawn.
    drawn: ReportedProblems,
    /// Findings that say the same of several places, of which one was drawn.
    repeats: Repeats,
    /// The lines of `start` after it has converged; none before.
    rounds: Option<Rounds>,
}

impl<'a> Presenter<'a> {
    pub(super) fn new(console: &'a mut Console, format: Format, root: PathBuf) -> Self {
        let bar = console
            .shows_progress(format)
            .then(|| Bar::new(console.err_colour()));
        Self {
            console,
            format,
            root,
            bar,
            columns: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            output: Vec::new(),
            sources: Sources::default(),
            about: None,
            remarks: Vec::new(),
            advice: Vec::new(),
            ends: told::Lines::new(Begin::Progress),
            told: BTreeSet::new(),
            drawn: ReportedProblems::default(),
            repeats: Repeats::default(),
            rounds: None,
        }
    }

    /// Shows all replies, and returns the exit code.
    pub(super) async fn show(mut self, mut replies: mpsc::Receiver<Reply>) -> Result<Exit, Failure> {
        loop {
            let reply = match &mut self.bar {
                // Nothing moves, so nothing wakes up.
                None => replies.recv().await,
                Some(bar) => match tokio::time::timeout(TICK, replies.recv()).await {
                    Ok(reply) => reply,
                    Err(_) => {
                        bar.tick();
                        continue;
                    }
                },
            };
            match reply {
                Some(Reply::Done(answer)) => return self.end(*answer),
                Some(Reply::Refused(refusal)) => return Err(refusal.into()),
                Some(reply) => self.part(reply)?,
                None => return Err(Failure::new(Exit::NotNow, "the command ended without an answer")),
            }
        }
    }

    fn part(&mut self, reply: Reply) -> Result<(), Failure> {
        match reply {
            Reply::Event(event) if self.format == Format::Jsonl => self.console.json_line(&event),
            Reply::Event(event) => match &mut self.rounds {
                Some(rounds) if self.format == Format::Text => rounds.event(self.console, &event),
                _ => self.event(&event),
            },
            Reply::Converged(document, trouble) => self.converged(&document, trouble),
            Reply::Activity(activity) => {
                if let Some(bar) = &mut self.bar {
                    bar.update(&activity);
                }
                Ok(())
            }
            Reply::Waiting(holder) => {
                self.waiting(&holder);
                Ok(())
            }
            Reply::Sources(names) => {
                self.sources = Sources::new(names);
                Ok(())
            }
            Reply::About(resource) => {
                self.about = Some(resource);
                Ok(())
            }
            Reply::Columns(columns) => self.begin_rows(columns),
            Reply::Rows(rows) => self.more_rows(rows),
            Reply::Lines(lines) => self.lines(lines),
            Reply::Output(lines) => self.output(lines),
            Reply::Done(_) | Reply::Refused(_) => Ok(()),
        }
    }

    /// Reports the process that has the engine's file open, which the work waits for.
    fn waiting(&mut self, holder: &str) {
        let text = format!("{DIM}waiting until {holder} closes the engine's file{DIM:#}\n");
        let console = &mut self.console;
        match &self.bar {
            Some(bar) => bar.suspend(|| console.note(&text)),
            None => console.note(&text),
        }
    }

    /// Shows log lines of runs, or collects them for a document.
    fn lines(&mut self, lines: Vec<LogLine>) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.lines.extend(lines),
            Format::Jsonl => lines.iter().try_for_each(|part| {
                let schema = LogsDocument::SCHEMA;
                self.console.json_line(&Line { schema, part })
            })?,
            _ => {
                let all = self.console.verbosity == Verbosity::Verbose;
                let wanted = lines
                    .into_iter()
                    .filter(|line| all || line.level <= LogLevel::Info);
                let text: String = wanted
                    .map(|line| logs::line(&self.sources.in_log_line(line)))
                    .collect();
                self.console.result(&text)?;
            }
        }
        Ok(())
    }

    fn output(&mut self, lines: Vec<OutputLine>) -> Result<(), Failure> {
        match self.format {
            Format::Json => self.output.extend(lines),
            Format::Jsonl => lines.iter().try_for_each(|part| {
                let schema = LogsDocument::SCHEMA;
                self.console.json_line(&Line { schema, part })
            })?,
            _ => {
                let text: String = lines.iter().map(logs::output).collect();
                self.console.result(&text)?;
            }
        }
        Ok(())
    }

    pub(crate) fn end_logs(mut self, mut document: LogsDocument) -> Result<Exit, Failure> {
        self.lines(std::mem::take(&mut document.lines))?;
        self.output(std::mem::take(&mut document.output))?;
        if self.format == Format::Json {
            document.lines = std::mem::take(&mut self.lines);
            document.output = std::mem::take(&mut self.output);
            return self.written(&document);
        }
        Ok(Exit::Converged)
    }

    /// Shows the result of `start` once everything has settled, and goes on with its later events.
    fn converged(&mut self, document: &RunDocument, trouble: Option<String>) -> Result<(), Failure> {
        drop(self.bar.take());
        if let Some(trouble) = trouble {
            let how = "everything is looked at every few seconds instead";
            self.console
                .say(&format!("{WARN}warning{WARN:#}: {trouble}; {how}\n"));
        }
        if self.format == Format::Text {
            self.run(document)?;
            self.console
                .note(&format!("{DIM}watching the files; Ctrl-C ends{DIM:#}\n"));
        }
        self.rounds = Some(Rounds::after(document, &self.root));
        Ok(())
    }

    /// Shows the line of an ended run, or a new finding.
    fn event(&mut self, event: &Event) -> Result<(), Failure> {
        if self.format != Format::Text {
            return Ok(());
        }
        if let Event::Diagnostic { diagnostic } = event {
            // Whether a note is news is known at the end.
            if !self.drawn.holds(diagnostic) && !self.leaves(diagnostic) {
                self.drawn.add(diagnostic);
                self.draw(std::slice::from_ref(diagnostic));
            }
            return Ok(());
        }
        self.repeated();
        let is_wanted = match self.console.verbosity {
            Verbosity::Quiet => false,
            Verbosity::Normal => event.is_news(),
            Verbosity::Verbose => true,
        };
        if !is_wanted {
            return Ok(());
        }
        if let Event::ResourceFinished { resource, .. } = event {
            self.told.insert(resource.clone());
        }
        let Some(line) = self.ends.line(event, self.console.result_width()) else {
            return Ok(());
        };
        let console = &mut self.console;
        match &self.bar {
            Some(bar) => bar.suspend(|| console.result(&line))?,
            None => console.result(&line)?,
        }
        Ok(())
    }

    fn begin_rows(&mut self, columns: Vec<Column>) -> Result<(), Failure> {
        if self.format == Format::Csv {
            let mut head = Vec::new();
            csv::write_header(&mut head, columns.iter().map(|column| column.name.as_str()))?;
            self.console.writer().write_all(&head)?;
        }
        self.columns = columns;
        Ok(())
    }

    /// Writes rows in formats for programs at once, and collects them for a table or a document.
    fn more_rows(&mut self, more: Vec<Vec<serde_json::Value>>) -> Result<(), Failure> {
        let mut lines = Vec::new();
        match self.format {
            Format::Csv => csv::write_rows(&mut lines, &more)?,
            Format::Jsonl => {
                let names = self.columns.iter().map(|column| column.name.as_str());
                Keys::of(names).write(&mut lines, &more);
            }
            _ => self.rows.extend(more),
        }
        self.console.writer().write_all(&lines)?;
        Ok(())
    }

    /// Shows the final answer of the command.
    pub(super) fn end(mut self, answer: Answer) -> Result<Exit, Failure> {
        // The bar goes before anything is written below it.
        drop(self.bar.take());
        ends::present(answer, self)
    }

    /// Returns true if `start` has already shown its result.
    pub(crate) fn has_told(&self) -> bool {
        self.rounds.is_some() && self.format == Format::Text
    }

    /// Returns the format in which the answer is shown.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Returns the width of a line of the result, in columns; none without a terminal.
    pub(crate) fn width(&self) -> Option<u16> {
        self.console.result_width()
    }

    /// Shows a document as JSON, or as the text that `text` makes of it.
    pub(crate) fn document(
        self,
        document: &impl serde::Serialize,
        text: impl FnOnce(Option<u16>) -> String,
    ) -> Result<Exit, Failure> {
        match self.format {
            Format::Json => self.written(document),
            _ => {
                let text = text(self.width());
                self.text(&text)
            }
        }
    }

    /// Shows a document as [`document`](Self::document) does, and ends with the given exit code.
    pub(crate) fn document_with_code(
        self,
        exit_code: u8,
        document: &impl serde::Serialize,
        text: impl FnOnce(Option<u16>) -> String,
    ) -> Result<Exit, Failure> {
        self.document(document, text).map(|_| Exit::from_code(exit_code))
    }

    /// Shows each part of a document as a line of JSON.
    pub(crate) fn parts<T: serde::Serialize>(
        self,
        schema: &'static str,
        parts: &[T],
    ) -> Result<Exit, Failure> {
        parts
            .iter()
            .try_for_each(|part| self.console.json_line(&Line { schema, part }))?;
        Ok(Exit::Converged)
    }

    /// Shows the document of a run or a status: new findings, the result, the exit code.
    pub(crate) fn run(&mut self, document: &RunDocument) -> Result<Exit, Failure> {
        match self.format {
            Format::Json => self.console.document(document)?,
            // The last event holds it.
            Format::Jsonl => {}
            _ => {
                if document.command != Command::Status {
                    let untold = problems(document).into_iter();
                    let is_news = |found: &Diagnostic| {
                        !self.drawn.holds(found) && (!self.leaves(found) || is_new(found, document))
                    };
                    let untold: Vec<Diagnostic> = untold.filter(is_news).collect();
                    self.findings(&untold);
                }
                let width = self.console.result_width();
                let text = match document.command {
                    Command::Status => {
                        let screen = (width, self.console.result_height());
                        status::status(document, self.listing(), Time::now(), screen)
                    }
                    Command::Validate => folded(&summary::validate(document), 2, width),
                    Command::Run
                    | Command::Start
                    | Command::Reconcile
                    | Command::Refresh
                    | Command::Approve
                    | Command::Retry => summary::run(document, &self.told, width),
                };
                if self.console.verbosity > Verbosity::Quiet || document.command == Command::Status {
                    self.console.result(&text)?;
                }
            }
        }
        Ok(Exit::from_code(document.exit_code))
    }

    /// Returns true for notes, which are shown once for each edit unless `-v` is given.
    fn leaves(&self, found: &Diagnostic) -> bool {
        found.severity == Severity::Hint && self.console.verbosity < Verbosity::Verbose
    }

    fn listing(&self) -> status::Listing {
        match self.console.verbosity {
            Verbosity::Verbose => status::Listing::Whole,
            _ => self.console.listing,
        }
    }

    /// Draws findings, then the other places of repeated ones.
    fn findings(&mut self, findings: &[Diagnostic]) {
        self.draw(findings);
        self.repeated();
    }

    /// Draws findings, each in full with `-v`; otherwise draws findings with the same message once.
    fn draw(&mut self, findings: &[Diagnostic]) {
        let details = match self.console.verbosity {
            Verbosity::Verbose => Details::Shown,
            _ => Details::Left,
        };
        let mut drawing = Drawing::new(&self.root, details, self.console.err_width());
        let drawn = findings
            .iter()
            .filter(|found| details == Details::Shown || self.repeats.is_first(found));
        let text: String = drawn.map(|found| drawing.draw(found)).collect();
        self.say(&text);
    }

    /// Lists the other places of findings that were drawn once.
    fn repeated(&mut self) {
        let text = folded(&self.repeats.rest(), 2, self.console.err_width());
        self.say(&text);
    }

    /// Writes a message above the progress bar.
    fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let console = &mut self.console;
        match &self.bar {
            Some(bar) => bar.suspend(|| console.say(text)),
            None => console.say(text),
        }
    }

    pub(crate) fn tests(mut self, document: &TestsDocument) -> Result<Exit, Failure> {
        if self.format == Format::Json {
            self.console.document(document)?;
        } else {
            self.findings(&document.diagnostics);
            self.console.result(&data_tests::tests(document))?;
        }
        Ok(Exit::from_code(document.exit_code))
    }

    /// Shows a resource without rows: a metrics view by its fields, others by their settings.
    pub(crate) fn fields(mut self, document: &ShowDocument) -> Result<Exit, Failure> {
        let Some((columns, rows)) = fields::fields(document) else {
            let width = self.console.result_width();
            return self.text(&declared::declared(document, Time::now(), width));
        };
        (self.columns, self.rows) = (columns, rows);
        self.about = Some(Box::new(document.resource.clone()));
        self.end_rows(false)
    }

    pub(crate) fn metrics(mut self, document: &MetricsDocument) -> Result<Exit, Failure> {
        if let Some(sql) = &document.sql {
            return self.text(&format!("{}\n", sql.trim_end()));
        }
        let more = document.truncated;
        if self.format == Format::Chart {
            // Totals would be a bar among those that they are the sum of.
            let rows = MetricsDocument {
                totals: None,
                ..document.clone()
            };
            let (columns, numbers) = metrics::raw(&rows, metrics::Heads::AsAsked);
            let chart = Chart::new(&columns, &numbers, &metrics::formatted(&rows).1);
            return self.console.chart(chart, more);
        }
        let (columns, rows) = match self.format {
            Format::Csv => metrics::raw(document, metrics::Heads::AsAsked),
            Format::Jsonl => metrics::raw(document, metrics::Heads::Names),
            _ => metrics::formatted(document),
        };
        self.begin_rows(columns)?;
        self.more_rows(rows)?;
        self.remarks = metrics::about(document);
        self.advice.extend(metrics::advice(document));
        self.end_rows(more)
    }

    pub(crate) fn end_rows(self, more: bool) -> Result<Exit, Failure> {
        match self.format {
            Format::Csv | Format::Jsonl => {}
            Format::Chart => {
                let (columns, rows) = (&self.columns, &self.rows);
                let chart = Chart::new(columns, rows, rows);
                return self.console.chart(chart, more);
            }
            Format::Json => {
                let document = QueryDocument {
                    schema: QueryDocument::SCHEMA.to_owned(),
                    columns: self.columns,
                    rows: self.rows,
                    truncated: more,
                    guessed: self.about.and_then(|resource| resource.guessed),
                };
                self.console.document(&document)?;
            }
            _ => {
                let width = self.console.result_width();
                let left_out = match self.format {
                    _ if rows::is_plan(&self.columns) => {
                        self.console.rows(&rows::plan(&self.rows))?;
                        return Ok(Exit::Converged);
                    }
                    Format::Vertical => {
                        let text = table::vertical(&self.columns, &self.rows, width);
                        self.console.rows(&text)?;
                        0
                    }
                    _ => {
                        let table = table::table(&self.columns, &self.rows, width);
                        self.console.rows(&table.text)?;
                        table.left_out
                    }
                };
                let shown = self.rows.len() as u64;
                let number = units::count(shown, "row");
                let all = self.about.as_deref().and_then(summary::rows_of);
                let mut said = vec![match all.filter(|all| *all > shown) {
                    _ if !more => number,
                    Some(all) => {
                        let (shown, all) = (units::grouped(shown), units::count(all, "row"));
                        format!("{shown} of {all}: `--limit N` shows more")
                    }
                    None => format!("{number}, and there are more: `--limit N` shows them"),
                }];
                if left_out > 0 {
                    let all = units::count(self.columns.len() as u64, "column");
                    said.push(format!("{left_out} of {all} left out: `--vertical` shows them"));
                }
                said.extend(self.remarks);
                if let Some(resource) = &self.about {
                    said.extend(data_tests::summary(&data_tests::counts(resource)));
                    said.extend(status::behind(resource));
                }
                self.console.note(&format!("{DIM}{}{DIM:#}\n", said.join("; ")));
                let guessed = self.about.as_ref().and_then(|resource| resource.guessed.as_ref());
                if let Some(guessed) = guessed {
                    self.console
                        .note(&format!("{DIM}{}{DIM:#}\n", rows::guessed(guessed)));
                }
                for advice in &self.advice {
                    self.console.advice(advice);
                }
            }
        }
        if more && matches!(self.format, Format::Csv | Format::Jsonl | Format::Json) {
            self.console.note("there are more rows: `--limit N` shows them\n");
        }
        Ok(Exit::Converged)
    }

    pub(crate) fn written(self, document: &impl serde::Serialize) -> Result<Exit, Failure> {
        self.console.document(document)?;
        Ok(Exit::Converged)
    }

    pub(crate) fn text(self, text: &str) -> Result<Exit, Failure> {
        self.console.result(text)?;
        Ok(Exit::Converged)
    }
}

/// Returns true if a note is about a resource that was created or edited, or about a file of none while any was.
fn is_new(found: &Diagnostic, document: &RunDocument) -> bool {
    let changes = &document.summary.changes;
    let mut its = document
        .resources
        .iter()
        .filter(|one| one.paths.contains(&found.path))
        .peekable();
    document.command == Command::Validate
        || match its.peek() {
            None => changes.created + changes.updated > 0,
            Some(_) => its.any(|one| {
                let ran = one
                    .last_run
                    .as_ref()
                    .filter(|run| run.started_at >= document.started_at);
                ran.is_some_and(|run| {
                    matches!(run.reason, Reason::Created | Reason::Edited | Reason::Renamed)
                })
            }),
        }
}
