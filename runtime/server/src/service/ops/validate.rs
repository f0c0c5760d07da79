//! The findings in the project's files.

use watershed_api::Problem;
use watershed_api::documents::{Command, RunDocument};
use watershed_api::request::{RunRequest, ValidateRequest};

use crate::instance::compiled::{self, Specs};
use crate::out::Out;
use crate::report::document::Occasion;
use crate::service::Principal;
use crate::service::place::Place;

/// Compiles the project's files and returns the findings.
pub(crate) async fn validate(
    place: &impl Place,
    _: &Principal,
    input: ValidateRequest,
    _: &Out,
) -> Result<RunDocument, Problem> {
    let occasion = Occasion::begin(Command::Validate);
    let compilation = compiled::compile(place.options(), place.state()).await?;
    let run = RunRequest {
        all: input.all,
        warn_error: input.warn_error,
        selection: input.selection,
        ..RunRequest::default()
    };
    let specs = match input.spec {
        true => Specs::Shown,
        false => Specs::Left,
    };
    compiled::validated(place.options(), compilation.project(), &occasion, &run, specs)
}
