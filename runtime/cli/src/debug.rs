//! `debug`: checks of the program itself.

use watershed_api::operations::ops;
use watershed_api::request::NoInput;
use watershed_api::{Exit, Operation as _};

use super::args::{Debug, Debugging, Format, Shared};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;

/// Runs the command `debug check`.
pub(super) fn debug(console: &mut Console, shared: &Shared, args: &Debug) -> Result<Exit, Failure> {
    match args.what {
        Debugging::Check => {
            let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
            ask(console, shared, format, ops::Check::request(NoInput {}))
        }
    }
}
