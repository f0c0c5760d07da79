//! `logs`: the output of programs, and the log lines of other resources.

use watershed_api::operations::ops;
use watershed_api::request::{LogsRequest, ProgramOutput};
use watershed_api::{Exit, Operation as _};

use super::args::{Format, Logs, Shared};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;

/// Runs the command `logs`.
pub(super) fn logs(console: &mut Console, shared: &Shared, args: &Logs) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json, Format::Jsonl], Format::Text)?;
    let request = ops::Logs::request(LogsRequest {
        name: args.name.clone(),
        limit: args.limit,
        follow: args.follow,
        since: args.since.map(|since| since.0),
        program: (!args.runs).then_some(ProgramOutput {
            replica: args.replica,
            previous: args.previous,
        }),
    });
    let exit = ask(console, shared, format, request)?;
    if args.follow {
        console.note("the project is not running, so nothing follows\n");
    }
    Ok(exit)
}
