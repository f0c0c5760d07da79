//! `debug`: for whoever suspects the program itself.

use watershed_api::{Exit, Request};

use super::args::{Debug, Debugging, Format, Shared};
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::look::look;

/// `debug check`
pub(super) fn debug(console: &mut Console, shared: &Shared, args: &Debug) -> Result<Exit, Failure> {
    match args.what {
        Debugging::Check => {
            let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
            look(console, shared, format, Request::Check)
        }
    }
}
