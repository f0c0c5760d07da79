//! Options that every command takes.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};

use super::*;

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Shared {
    /// The project's folder; found from here upwards without it.
    #[arg(
        short = 'C',
        long = "project",
        value_name = "DIR",
        env = "WATERSHED_PROJECT",
        global = true
    )]
    #[arg(hide_env_values = true, value_hint = ValueHint::DirPath, help_heading = "Project")]
    pub dir: Option<PathBuf>,
    /// The environment; each has its own state.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "dev",
        env = "WATERSHED_ENVIRONMENT",
        global = true
    )]
    #[arg(hide_env_values = true, help_heading = "Project")]
    pub environment: String,
    /// Sets a variable of the project; may be repeated.
    #[arg(
        short = 'e',
        long = "env",
        value_name = "KEY=VALUE",
        global = true,
        help_heading = "Project"
    )]
    pub variables: Vec<Variable>,
    /// Folder of the state [default: .watershed in the project].
    #[arg(
        long,
        value_name = "DIR",
        env = "WATERSHED_STATE_DIR",
        global = true,
        hide_short_help = true
    )]
    #[arg(hide_env_values = true, value_hint = ValueHint::DirPath, help_heading = "Project")]
    pub state_dir: Option<PathBuf>,

    /// Number of builds at once, small ones together counted as one [default: number of cores and 2 more].
    #[arg(short = 'j', long, value_name = "N", global = true, help_heading = "Work")]
    pub jobs: Option<Limit>,
    /// Threads of the engine [default: number of cores].
    #[arg(
        long,
        value_name = "N",
        global = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub engine_threads: Option<Limit>,
    /// Memory that the engine may use, such as 4GB [default: 60 % of the machine's].
    #[arg(
        long,
        value_name = "SIZE",
        global = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub memory_limit: Option<Size>,
    /// Stop at the first failure.
    #[arg(long, global = true, hide_short_help = true, help_heading = "Work")]
    pub fail_fast: bool,
    /// Count warnings as errors.
    #[arg(long, global = true, hide_short_help = true, help_heading = "Work")]
    pub warn_error: bool,
    /// Read a part of every source: a number of rows, or the last days such as P3D. It has a state of its own.
    #[arg(
        long,
        value_name = "N|SPAN",
        global = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub sample: Option<Sample>,
    /// Let the project's SQL reach the project's folder and its state alone.
    #[arg(
        long,
        global = true,
        env = "WATERSHED_SANDBOX",
        value_parser = clap::builder::BoolishValueParser::new(),
        hide_short_help = true,
        help_heading = "Work"
    )]
    #[arg(hide_env_values = true)]
    pub sandbox: bool,
    /// A folder of the engine's extensions, looked through first.
    #[arg(
        long,
        value_name = "FOLDER",
        global = true,
        env = "WATERSHED_EXTENSIONS",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub extensions: Option<PathBuf>,
    /// Fetch no extension of the engine, whatever the project needs.
    #[arg(
        long,
        global = true,
        env = "WATERSHED_NO_EXTENSION_INSTALL",
        value_parser = clap::builder::BoolishValueParser::new(),
        hide_env_values = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub no_extension_install: bool,
    /// The time to wait for a folder or tables that another process holds, such as 30s [default: 10s].
    #[arg(
        long,
        value_name = "DURATION",
        global = true,
        hide_short_help = true,
        help_heading = "Work"
    )]
    pub wait: Option<Wait>,

    /// The form of the result.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        global = true,
        help_heading = "Output"
    )]
    pub format: Option<Format>,
    /// Short for `--format json`.
    #[arg(long, global = true, conflicts_with = "format", help_heading = "Output")]
    pub json: bool,
    /// Include hidden resources.
    #[arg(long, global = true, help_heading = "Output")]
    pub all: bool,
    /// Use of colour.
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        global = true,
        help_heading = "Output"
    )]
    #[arg(hide_short_help = true)]
    pub color: Color,
    /// No progress bar.
    #[arg(long, global = true, hide_short_help = true, help_heading = "Output")]
    pub no_progress: bool,
    /// The form of logs.
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value_t,
        global = true,
        help_heading = "Output"
    )]
    #[arg(hide_short_help = true)]
    pub log_format: LogFormat,
    /// Print errors only.
    #[arg(
        short = 'q',
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output"
    )]
    pub quiet: bool,
    /// Print more; twice for everything.
    #[arg(short = 'v', long, action = ArgAction::Count, global = true, help_heading = "Output")]
    pub verbose: u8,
}
