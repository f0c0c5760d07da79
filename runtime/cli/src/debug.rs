//! `debug`: checks of the program itself, and of the engine.

use watershed_api::operations::ops;
use watershed_api::request::NoInput;
use watershed_api::{Exit, Operation as _};

use super::args::{Conform, Debug, Debugging, Format, Shared};
use super::ask::ask;
use super::console::{Console, choose_format};
use super::failure::Failure;
use super::present::Presenter;
use super::project::Location;
use crate::render;

/// Runs the commands `debug check` and `debug conform`.
pub(super) fn debug(console: &mut Console, shared: &Shared, args: &Debug) -> Result<Exit, Failure> {
    let format = choose_format(shared, &[Format::Text, Format::Json], Format::Text)?;
    match &args.what {
        Debugging::Check => ask(console, shared, format, ops::Check::request(NoInput {})),
        Debugging::Conform(args) => conform(console, shared, format, args),
    }
}

fn conform(console: &mut Console, shared: &Shared, format: Format, args: &Conform) -> Result<Exit, Failure> {
    let location = Location::find(shared, None)?;
    let options = super::options(shared, &location);
    let is_wanted = |case: &str| args.cases.is_empty() || args.cases.iter().any(|name| name == case);
    let document = super::block_on(async {
        let tried = watershed::program::conform(&options, &location.state, is_wanted).await;
        tried.map_err(Failure::from)
    })?;
    let is_known = |name: &&String| document.cases.iter().any(|case| case.name == **name);
    if let Some(unknown) = args.cases.iter().find(|name| !is_known(name)) {
        let failure = Failure::new(Exit::Usage, format!("there is no case \"{unknown}\""));
        return Err(failure.hint("without names all are tried, and listed"));
    }
    let presenter = Presenter::new(console, format, location.root.clone());
    presenter.document_with_code(document.exit_code, &document, |width| {
        render::conform::conform(&document, width)
    })
}
