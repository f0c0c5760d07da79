//! `set`, `event`: changes of managed resources by hand.

use std::path::Path;

use watershed_api::operations::ops;
use watershed_api::request::{EventRequest, SetRequest};
use watershed_api::{Exit, Operation as _};
use watershed_managers::BODY_MAX;

use super::args::{Event, Format, Set, Shared};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::input;

/// Runs the command `set`.
pub(super) fn set(console: &mut Console, shared: &Shared, args: &Set) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let request = SetRequest {
        name: args.name.clone(),
        desired: args.change.0.clone(),
    };
    ask(console, shared, format, ops::Set::request(request))
}

/// Runs the command `event`.
pub(super) fn event(console: &mut Console, shared: &Shared, args: &Event) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    let body = read(&args.file)?;
    let told = ask(
        console,
        shared,
        format,
        ops::Event::request(EventRequest { body }),
    );
    told.map_err(|failure| match failure.message().strip_prefix("no event: ") {
        Some(reason) => Failure {
            error: anyhow::anyhow!("`{}` holds no event: {reason}", args.file.display()),
            ..failure
        },
        None => failure,
    })
}

/// Reads a file with one event, or a list of events.
fn read(file: &Path) -> Result<String, Failure> {
    let most = u64::try_from(BODY_MAX).unwrap_or(u64::MAX).saturating_add(1);
    String::from_utf8(input::bytes(file, most)?).map_err(|_| {
        Failure::usage(format!(
            "`{}` holds no event: the text is not in UTF-8",
            file.display()
        ))
    })
}
