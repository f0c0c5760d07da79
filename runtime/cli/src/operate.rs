//! `explain`, `pause`, `resume`, `cancel`, `stats`: commands for operators.

use watershed_api::documents::Operation as Change;
use watershed_api::operations::ops;
use watershed_api::request::{ExplainRequest, NamesRequest, NoInput};
use watershed_api::{Exit, Operation as _};

use super::args::{Explain, Format, Operate, Shared, Stats};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;

/// Runs the command `explain`.
pub(super) fn explain(console: &mut Console, shared: &Shared, args: &Explain) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let name = args.name.clone();
    ask(
        console,
        shared,
        format,
        ops::Explain::request(ExplainRequest { name }),
    )
}

/// Runs the command `stats`.
pub(super) fn stats(console: &mut Console, shared: &Shared, _args: &Stats) -> Result<Exit, Failure> {
    let known = [Format::Text, Format::Json, Format::Prometheus];
    let format = choose_format(shared, &known, Format::Text)?;
    let request = match format {
        Format::Prometheus => ops::Prometheus::request(NoInput {}),
        _ => ops::Stats::request(NoInput {}),
    };
    ask(console, shared, format, request)
}

/// Runs the commands `pause`, `resume` and `cancel`.
pub(super) fn operate(
    console: &mut Console,
    shared: &Shared,
    change: Change,
    args: &Operate,
) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let names = NamesRequest {
        names: args.names.clone(),
    };
    let request = match change {
        Change::Pause => ops::Pause::request(names),
        Change::Resume => ops::Resume::request(names),
        _ => ops::Cancel::request(names),
    };
    ask(console, shared, format, request)
}
