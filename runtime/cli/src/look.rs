//! `plan`, `status`, `graph`, `history`, `show`, `query`: commands that change nothing.

use std::path::{Path, PathBuf};

use watershed_api::operations::ops;
use watershed_api::request::{
    ExportRequest, GraphRequest, HistoryRequest, NoInput, PartitionsRequest, PlanRequest, QueryRequest, Rows,
    ShowRequest, StatusRequest, TestRequest,
};
use watershed_api::{Exit, Operation as _};
use watershed_drivers::olap::FileFormat;

use super::args::{Form, Format, Graph, History, Out, Partitions, Plan, Query, Shared, Show, Status, Test};
use super::ask::ask;
use super::backup::absolute;
use super::console::{Console, Picture, choose_format};
use super::failure::Failure;
use super::input;
use super::mistake::TYPED;
use crate::render::status::Listing;

/// Most rows of a table unless `--limit` says otherwise: more than anybody reads.
pub(super) const TABLE_LIMIT: u64 = 1_000;
/// Most rows on a terminal of unknown height unless `--limit` says otherwise.
const SCREEN_LIMIT: u64 = 40;
/// Fewest rows on a terminal, however low it is.
const FEWEST_ROWS: u64 = 5;
/// Lines around the rows of a table on a terminal: names, types, three rules, and the prompt.
const AROUND_ROWS: u64 = 6;
/// Length of the notes below a table, in columns.
const NOTES: u64 = 120;
/// Rows of a resource that `show` reads unless `--limit` says otherwise.
const FIRST_ROWS: u64 = 10;
/// The formats in which rows can be written.
const ROWS: [Format; 7] = [
    Format::Text,
    Format::Table,
    Format::Vertical,
    Format::Chart,
    Format::Csv,
    Format::Json,
    Format::Jsonl,
];

/// Runs the command `status`.
pub(super) fn status(console: &mut Console, shared: &Shared, args: &Status) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    if args.engine {
        return ask(console, shared, format, ops::Engine::request(NoInput {}));
    }
    if shared.all || !args.names.is_empty() {
        console.listing = Listing::Whole;
    }
    ask(
        console,
        shared,
        format,
        ops::Status::request(StatusRequest {
            names: args.names.clone(),
            selection: args.choice.selection(),
            all: shared.all,
        }),
    )
}

/// Runs the command `plan`.
pub(super) fn plan(console: &mut Console, shared: &Shared, args: &Plan) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let mut shared = shared.clone();
    if args.folder.is_some() {
        shared.dir.clone_from(&args.folder);
    }
    let exit_code = args.exit_code;
    let selection = args.choice.selection();
    ask(
        console,
        &shared,
        format,
        ops::Plan::request(PlanRequest { exit_code, selection }),
    )
}

/// Runs the command `graph`.
pub(super) fn graph(console: &mut Console, shared: &Shared, args: &Graph) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Dot, Format::Json], Format::Text)?;
    ask(
        console,
        shared,
        format,
        ops::Graph::request(GraphRequest {
            name: args.name.clone(),
            selection: args.choice.selection(),
            all: shared.all,
        }),
    )
}

/// Runs the command `history`.
pub(super) fn history(console: &mut Console, shared: &Shared, args: &History) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json, Format::Jsonl], Format::Text)?;
    ask(
        console,
        shared,
        format,
        ops::History::request(HistoryRequest {
            name: args.name.clone(),
            limit: args.limit,
            from: args.from.map(|from| from.0),
            until: args.until.map(|until| until.0),
            outcomes: args.outcome.clone(),
            selection: args.choice.selection(),
            page: args.page.clone(),
        }),
    )
}

/// Runs the command `partitions`.
pub(super) fn partitions(console: &mut Console, shared: &Shared, args: &Partitions) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = PartitionsRequest {
        name: args.name.clone(),
        errored: args.errored,
        limit: args.limit,
        ..PartitionsRequest::default()
    };
    ask(console, shared, format, ops::Partitions::request(request))
}

/// Runs the command `show`.
pub(super) fn show(console: &mut Console, shared: &Shared, args: &Show) -> Result<Exit, Failure> {
    let is_picture = is_picture(console, &args.out)?;
    if let Some(file) = args.out.out.as_ref().filter(|_| !is_picture) {
        let rows = Rows::Of(args.name.clone());
        return export(console, shared, rows, file, args.out.force, args.limit, None);
    }
    let format = match is_picture {
        true => Format::Chart,
        false => form_of_rows(shared, &args.form)?,
    };
    let limit = match (format, console.result_is_terminal() && !is_for_programs(format)) {
        (Format::Chart, _) => TABLE_LIMIT,
        (_, true) => screen_of_rows(console),
        (_, false) => FIRST_ROWS,
    };
    ask(
        console,
        shared,
        format,
        ops::Show::request(ShowRequest {
            name: args.name.clone(),
            limit: args.limit.unwrap_or(limit),
        }),
    )
}

/// Runs the command `test`.
pub(super) fn test(console: &mut Console, shared: &Shared, args: &Test) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = TestRequest {
        names: args.names.clone(),
        selection: args.choice.selection(),
        warn_error: shared.warn_error,
    };
    ask(console, shared, format, ops::Test::request(request))
}

/// Runs the command `query`.
pub(super) fn query(console: &mut Console, shared: &Shared, args: &Query) -> Result<Exit, Failure> {
    let sql = statement(args)?;
    let timeout_ms = args
        .timeout
        .map(|wait| u64::try_from(wait.0.as_millis()).unwrap_or(u64::MAX));
    let name = match &args.file {
        Some(file) if file.as_os_str() != "-" => file.display().to_string(),
        _ => TYPED.to_owned(),
    };
    let is_picture = is_picture(console, &args.out)?;
    if let Some(file) = args.out.out.as_ref().filter(|_| !is_picture) {
        let rows = Rows::Query(sql.clone());
        let force = args.out.force;
        let written = export(console, shared, rows, file, force, args.limit, timeout_ms);
        return written.map_err(|failure| failure.about(&name, &sql));
    }
    let format = match is_picture {
        true => Format::Chart,
        false => form_of_rows(shared, &args.form)?,
    };
    let limit = match is_for_programs(format) {
        true => args.limit,
        false => args.limit.or(Some(most_rows(console, format))),
    };
    let request = ops::Query::request(QueryRequest {
        limit,
        timeout_ms,
        ..QueryRequest::new(&sql)
    });
    ask(console, shared, format, request).map_err(|failure| failure.about(&name, &sql))
}

/// Runs `query --out` and `show --out`: writes rows to a file.
fn export(
    console: &mut Console,
    shared: &Shared,
    rows: Rows,
    file: &Path,
    force: bool,
    limit: Option<u64>,
    timeout_ms: Option<u64>,
) -> Result<Exit, Failure> {
    let format = form_of_export(shared, file)?;
    let request = ExportRequest {
        rows,
        limit,
        timeout_ms,
        file: file_of_rows(file)?,
        force,
    };
    ask(console, shared, format, ops::Export::request(request))
}

/// Returns the form in which an export is reported: the rows themselves have the form that the file's name says.
fn form_of_export(shared: &Shared, file: &Path) -> Result<Format, Failure> {
    use clap::ValueEnum as _;
    let Some(form) = shared
        .format
        .filter(|form| !matches!(form, Format::Text | Format::Json))
    else {
        return choose_format(shared, &[Format::Text, Format::Json], Format::Text);
    };
    let form = form.to_possible_value();
    let form = form.as_ref().map_or("", |form| form.get_name());
    let message = format!(
        "`--format {form}` does not fit `--out`: the end of the file's name says the form of the rows"
    );
    let hint = match form {
        "csv" => format!(
            "`--out {}` alone writes CSV",
            file.with_extension("csv").display()
        ),
        "jsonl" => "without `--out`, `--format jsonl > FILE` writes one row a line".to_owned(),
        _ => "`--out` writes a .csv, .xlsx or .parquet file, or a chart into a .svg file".to_owned(),
    };
    Err(Failure::usage(message).hint(hint))
}

/// Returns the absolute path of an output file, which a process in another folder may have to write.
pub(super) fn file_of_rows(file: &Path) -> Result<PathBuf, Failure> {
    if FileFormat::from_path(file).is_none() {
        let message = format!("`{}` is no .csv, .xlsx or .parquet file", file.display());
        return Err(Failure::usage(message).hint("the name of the file says its form; a name that ends with .svg gets a chart where rows are asked for"));
    }
    absolute(file)
}

/// The form of rows; some have an option of their own.
pub(super) fn form_of_rows(shared: &Shared, form: &Form) -> Result<Format, Failure> {
    let format = choose_format(shared, &ROWS, Format::Table)?;
    let (option, short) = match (form.vertical, form.chart) {
        (true, _) => ("--vertical", Format::Vertical),
        (_, true) => ("--chart", Format::Chart),
        (false, false) => return Ok(format),
    };
    match shared.json || shared.format.is_some() {
        true if format != short => {
            Err(Failure::usage(format!("`{option}` and another form were asked for")).hint("leave one out"))
        }
        _ => Ok(short),
    }
}

/// Returns the most rows that people are shown unless `--limit` says otherwise.
pub(super) fn most_rows(console: &Console, format: Format) -> u64 {
    match console.result_is_terminal() && !is_for_programs(format) && format != Format::Chart {
        true => screen_of_rows(console),
        false => TABLE_LIMIT,
    }
}

/// Returns the number of rows that a screen has room for, with the names above them and the notes below.
fn screen_of_rows(console: &Console) -> u64 {
    let Some((width, height)) = console.result_width().zip(console.result_height()) else {
        return SCREEN_LIMIT;
    };
    let notes = NOTES.div_ceil(u64::from(width.max(1)));
    u64::from(height)
        .saturating_sub(AROUND_ROWS + notes)
        .max(FEWEST_ROWS)
}

/// Returns true if the file is a picture; the console then writes a chart into it.
pub(super) fn is_picture(console: &mut Console, out: &Out) -> Result<bool, Failure> {
    let is_svg = |file: &PathBuf| {
        file.extension()
            .is_some_and(|end| end.eq_ignore_ascii_case("svg"))
    };
    let Some(file) = out.out.as_ref().filter(|file| is_svg(file)) else {
        return Ok(false);
    };
    console.picture = Some(Picture::new(file.clone(), out.force)?);
    Ok(true)
}

/// Returns true for formats that programs read, which get all rows.
pub(super) fn is_for_programs(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Json | Format::Jsonl)
}

/// Reads the statement from the argument, a file or standard input.
fn statement(args: &Query) -> Result<String, Failure> {
    match (&args.sql, &args.file) {
        (_, Some(file)) => input::text(file, u64::MAX),
        (Some(sql), None) if sql != "-" => Ok(sql.clone()),
        _ => input::text(Path::new("-"), u64::MAX),
    }
}
