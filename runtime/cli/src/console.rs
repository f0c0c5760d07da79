//! The output of commands: results to standard output, everything else to standard error.

use std::io::{self, IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use watershed::Runtime;
use watershed_api::request::Events;

use super::args::{Color, Format, Shared};
use super::failure::Failure;
use crate::render::Colour;
use crate::render::palette::{BAD, HINT};
use crate::render::status::Listing;

/// The form of a result, chosen from `--format`, `--json` and what the command can write.
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

/// Returns true if the result is read by a program as JSON, which gets its mistakes as JSON too. Options may be wrong.
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

/// The verbosity of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verbosity {
    /// Only what is wrong.
    Quiet,
    /// Messages that a person wants to see.
    Normal,
    /// Each resource as it is done.
    Verbose,
}

/// Tells whether a moving progress bar is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// On standard error, which is a terminal.
    Bar,
    /// None.
    Off,
}

/// The two streams of the program.
pub(super) struct Console {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    pub verbosity: Verbosity,
    pub progress: Progress,
    /// The lines of a status.
    pub listing: Listing,
    /// The runtime, which knows what is not shown.
    pub runtime: Runtime,
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

    /// Before options are known.
    pub(super) fn plain(choice: ColorChoice, runtime: Runtime) -> Self {
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err: AutoStream::new(io::stderr(), choice),
            verbosity: Verbosity::Normal,
            progress: Progress::Off,
            listing: Listing::default(),
            runtime,
        }
    }

    /// Writes a part of the result, without secrets.
    pub(super) fn result(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(self.runtime.redact(text).as_bytes())
    }

    /// Writes rows, which are shown as they are.
    pub(super) fn rows(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes one JSON value of the result in a line of its own.
    pub(super) fn json_line(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        // Events are read while they happen.
        self.out.write_all(&line)?;
        Ok(self.out.flush()?)
    }

    /// Writes the document that is the whole result.
    pub(super) fn document(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut writer = io::BufWriter::new(&mut self.out);
        serde_json::to_writer_pretty(&mut writer, value)?;
        writer.write_all(b"\n")?;
        Ok(writer.flush()?)
    }

    /// A raw writer of the result, for rows in bulk.
    pub(super) fn writer(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Says something beside the result; lost when nobody reads it.
    pub(super) fn say(&mut self, text: &str) {
        let _ = self.err.write_all(self.runtime.redact(text).as_bytes());
    }

    /// Says something beside the result, unless asked to be quiet.
    pub(super) fn note(&mut self, text: &str) {
        if self.verbosity > Verbosity::Quiet {
            self.say(text);
        }
    }

    /// Says why the command ended without a result.
    pub(super) fn failure(&mut self, failure: &Failure) {
        if let Some(drawn) = failure.drawn() {
            return self.say(&drawn);
        }
        self.say(&format!("{BAD}error{BAD:#}: {}\n", failure.message()));
        if let Some(hint) = &failure.hint {
            self.say(&format!(" {HINT}hint{HINT:#}: {hint}\n"));
        }
    }

    /// Returns true if a bar moves while the work goes on.
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

    /// Returns true if what is said beside the result has colours.
    pub(super) fn err_colour(&self) -> Colour {
        match self.err.current_choice() {
            ColorChoice::Never => Colour::Off,
            _ => Colour::On,
        }
    }

    /// Returns true if the result is read by a person at a terminal.
    pub(super) fn result_is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Columns of the terminal that reads the result; wide where nobody looks.
    pub(super) fn result_width(&self) -> Option<u16> {
        self.result_is_terminal().then(console_width).flatten()
    }
}

/// Columns of the terminal, if there is one.
pub(super) fn console_width() -> Option<u16> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    asked.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0))
}

/// Colour as `--color`, NO_COLOR and the terminals want it.
pub(super) fn choice(color: Color) -> ColorChoice {
    match color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}

/// `--color` before options are parsed, for mistakes in them.
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
