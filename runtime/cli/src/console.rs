//! The output of commands: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use watershed::Runtime;
use watershed_api::Exit;
use watershed_api::request::Events;

use super::args::{Color, Format, Shared};
use super::failure::Failure;
use crate::render::Colour;
use crate::render::chart::{Chart, ChartError};
use crate::render::diagnostics;
use crate::render::palette::{BAD, HINT};
use crate::render::paragraph::folded;
use crate::render::status::Listing;
use crate::render::units::count;

/// Indent of the further lines of a note, in columns.
const NOTE_INDENT: usize = 2;
/// Indent of the further lines of an error or a hint, in columns: they stand under its text.
const HINT_INDENT: usize = 7;

/// Returns the format of the result: that of `--format` or `--json`, if the command can write it, or the default.
pub(super) fn choose_format(shared: &Shared, known: &[Format], default: Format) -> Result<Format, Failure> {
    use clap::ValueEnum as _;
    let wanted = if shared.json {
        Some(Format::Json)
    } else {
        shared.format
    };
    let Some(format) = wanted else { return Ok(default) };
    if known.contains(&format) {
        return Ok(format);
    }
    let name = |format: &Format| {
        format
            .to_possible_value()
            .map(|v| v.get_name().to_owned())
            .unwrap_or_default()
    };
    let list = known
        .iter()
        .map(|f| format!("`{}`", name(f)))
        .collect::<Vec<_>>()
        .join(", ");
    let typed = if shared.json {
        "--json".to_owned()
    } else {
        format!("--format {}", name(&format))
    };
    Err(Failure::usage(format!("`{typed}` does not fit this command")).hint(format!("it writes {list}")))
}

/// Returns true if the command line asks for JSON, so that its errors are written as JSON too. Options may be invalid.
pub(super) fn wants_json(args: &[std::ffi::OsString]) -> bool {
    let mut words = args
        .iter()
        .filter_map(|arg| arg.to_str())
        .take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let format = match word {
            "--json" => return true,
            "--format" => words.next(),
            word => word.strip_prefix("--format="),
        };
        if format.is_some_and(|format| matches!(format, "json" | "jsonl")) {
            return true;
        }
    }
    false
}

/// The amount of output on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    /// Only errors and warnings.
    Quiet,
    /// Messages for a person too.
    Normal,
    /// A line for each resource too.
    Verbose,
}

/// The form of progress reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// A moving bar on standard error, which is a terminal.
    Bar,
    /// No progress bar.
    Off,
}

/// The output streams of the program: the result, and messages.
pub(super) struct Console {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    pub verbosity: Verbosity,
    pub progress: Progress,
    /// The choice of lines in a status.
    pub listing: Listing,
    /// The runtime, which knows what is not shown.
    pub runtime: Runtime,
    /// The file that a chart goes into; none for the result itself.
    pub picture: Option<Picture>,
}

/// A file for a picture.
#[derive(Debug)]
pub(super) struct Picture {
    file: PathBuf,
}

impl Picture {
    /// Returns the place of a picture.
    ///
    /// # Errors
    /// When a file is there already that may not be replaced.
    pub(super) fn new(file: PathBuf, force: bool) -> Result<Self, Failure> {
        if file.exists() && !force {
            let message = format!("`{}` is there already", file.display());
            return Err(Failure::usage(message).hint("`--force` replaces it"));
        }
        Ok(Self { file })
    }

    /// Writes the file, which appears whole or not at all.
    fn write(&self, svg: &str) -> io::Result<()> {
        let part = self.file.with_extension("svg.part");
        std::fs::write(&part, svg)?;
        std::fs::rename(&part, &self.file).inspect_err(|_| drop(std::fs::remove_file(&part)))
    }
}

impl Console {
    pub(super) fn new(shared: &Shared, runtime: Runtime) -> Self {
        let verbosity = match (shared.quiet, shared.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, 0) => Verbosity::Normal,
            (false, _) => Verbosity::Verbose,
        };
        let mut console = Self::plain(choice(shared.color), runtime);
        console.verbosity = verbosity;
        let moves = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        if moves && !shared.no_progress && !shared.quiet {
            console.progress = Progress::Bar;
        }
        console
    }

    /// Returns a console for use before the options are parsed.
    pub(super) fn plain(choice: ColorChoice, runtime: Runtime) -> Self {
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err: AutoStream::new(io::stderr(), choice),
            verbosity: Verbosity::Normal,
            progress: Progress::Off,
            listing: Listing::default(),
            runtime,
            picture: None,
        }
    }

    /// Writes a part of the result, with secrets redacted.
    pub(super) fn result(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(self.runtime.redact(text).as_bytes())
    }

    /// Writes rows unchanged, without looking for secrets.
    pub(super) fn rows(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes a chart: into the picture's file if one was asked for, else as characters.
    pub(super) fn chart(&mut self, chart: Result<Chart, ChartError>, more: bool) -> Result<Exit, Failure> {
        let refused = |error: ChartError| {
            Failure::usage(error.to_string()).hint("without `--chart`, rows are shown as they are")
        };
        let chart = chart.map_err(refused)?;
        match self.picture.take() {
            Some(picture) => {
                picture.write(&chart.svg().map_err(refused)?)?;
                self.result(&format!("chart written to {}\n", picture.file.display()))?;
            }
            None => {
                let width = self.result_width();
                self.rows(&chart.text(width))?;
            }
        }
        match (more, chart.left_out()) {
            (true, _) => self.note("there are more rows: `--limit N` draws them\n"),
            (false, 0) => {}
            (false, left_out) => self.note(&format!(
                "{} left out for want of room\n",
                count(left_out as u64, "row")
            )),
        }
        Ok(Exit::Converged)
    }

    /// Writes a JSON value as a line of the result.
    pub(super) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // Events are read while they happen.
        self.out.write_all(&line)?;
        Ok(self.out.flush()?)
    }

    /// Writes a document as the whole result.
    pub(super) fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut writer = io::BufWriter::new(&mut self.out);
        serde_json::to_writer_pretty(&mut writer, value)?;
        writer.write_all(b"\n")?;
        Ok(writer.flush()?)
    }

    /// Returns a raw writer of the result, for rows in bulk.
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Writes a message to standard error, and ignores errors.
    pub(super) fn say(&mut self, text: &str) {
        let _ = self.err.write_all(self.runtime.redact(text).as_bytes());
    }

    /// Writes a message to standard error in lines that fit the terminal, unless `--quiet` was given.
    pub(super) fn note(&mut self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.say(&folded(text, NOTE_INDENT, self.err_width()));
        }
    }

    /// Writes advice to standard error, unless `--quiet` was given.
    pub(super) fn advice(&mut self, advice: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.hint(advice);
        }
    }

    fn hint(&mut self, hint: &str) {
        let text = format!(" {HINT}hint{HINT:#}: {hint}\n");
        self.say(&folded(&text, HINT_INDENT, self.err_width()));
    }

    /// Reports the failure that ended the command.
    pub(super) fn failure(&mut self, failure: &Failure) {
        let width = self.err_width();
        if let Some(drawn) = failure.drawn() {
            return self.say(&diagnostics::fitted(&drawn, width));
        }
        let text = format!("{BAD}error{BAD:#}: {}\n", failure.message());
        self.say(&folded(&text, HINT_INDENT, width));
        if let Some(hint) = &failure.hint {
            self.hint(hint);
        }
    }

    /// Returns true if a progress bar is drawn for this format.
    pub(super) fn shows_progress(&self, format: Format) -> bool {
        self.progress == Progress::Bar && format == Format::Text
    }

    /// Returns the events of a run that are shown.
    pub(super) fn events(&self, format: Format) -> Events {
        match (format, self.verbosity) {
            (Format::Jsonl, _) | (Format::Text, Verbosity::Verbose) => Events::All,
            _ => Events::News,
        }
    }

    /// Returns the colour setting of standard error.
    pub(super) fn err_colour(&self) -> Colour {
        match self.err.current_choice() {
            ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        }
    }

    /// Returns true if the result goes to a terminal.
    pub(super) fn result_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Returns the width of the terminal that the result goes to, in columns; none if it goes elsewhere.
    pub(super) fn result_width(&self) -> Option<u16> {
        self.result_is_terminal().then(console_width).flatten()
    }

    /// Returns the height of the terminal that the result goes to, in lines; none if it goes elsewhere.
    pub(super) fn result_height(&self) -> Option<u16> {
        self.result_is_terminal().then(console_height).flatten()
    }

    /// Returns the width of the terminal that messages go to, in columns; none if they go elsewhere.
    pub(super) fn err_width(&self) -> Option<u16> {
        io::stderr().is_terminal().then(console_width).flatten()
    }
}

/// Returns the width of the terminal, in columns; none without a terminal.
pub(super) fn console_width() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0))
}

/// Returns the height of the terminal, in lines; none without a terminal.
fn console_height() -> Option<u16> {
    let asked = std::env::var("LINES").ok().and_then(|text| text.parse().ok());
    asked.or_else(|| terminal_size::terminal_size().map(|(_, height)| height.0))
}

/// Converts `--color` to the setting of the output streams.
pub(super) fn choice(color: Color) -> ColorChoice {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}

/// Finds `--color` before the options are parsed, for errors in them.
pub(super) fn choice_in(args: &[std::ffi::OsString]) -> ColorChoice {
    let mut words = args.iter().filter_map(|arg| arg.to_str());
    while let Some(word) = words.next() {
        let value = if word == "--color" {
            words.next()
        } else {
            word.strip_prefix("--color=")
        };
        match value {
            Some("always") => return ColorChoice::Always,
            Some("never") => return ColorChoice::Never,
            _ => {}
        }
    }
    ColorChoice::Auto
}
