//! The compiled SQL of a model.

use watershed_api::Problem;
use watershed_api::documents::CompileDocument;
use watershed_api::request::CompileRequest;

use crate::instance::compiled;
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;

/// Compiles one model and returns its SQL.
pub(crate) async fn compile(
    place: &impl Place,
    _: &Principal,
    input: CompileRequest,
    _: &Out,
) -> Result<CompileDocument, Problem> {
    let compilation = compiled::compile(place.options(), place.state()).await?;
    compiled::compiled_sql(place.options(), compilation.project(), &input.name)
}
