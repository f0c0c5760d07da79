//! The guarantees of the engine.

use watershed_api::Problem;
use watershed_api::documents::{EngineDocument, EnginePart, EnginePromise};
use watershed_api::request::NoInput;
use watershed_drivers::engines::{ENGINE, LAKE};
use watershed_drivers::olap::{Cell, Home, Part};

use crate::instance::home;
use crate::out::Out;
use crate::service::Principal;
use crate::service::place::Place;

/// Returns the guarantees of the project's engine, without opening a file.
pub(crate) async fn engine(
    place: &impl Place,
    _: &Principal,
    _: NoInput,
    _: &Out,
) -> Result<EngineDocument, Problem> {
    let home = home::find(place.options(), place.state()).await?.home;
    let guarantees = match home {
        Home::File => ENGINE,
        Home::Lake(_) => LAKE,
    };
    let promises = Cell::ALL.iter().map(|cell| {
        let promise = guarantees.promise(*cell);
        EnginePromise {
            name: cell.as_str().to_owned(),
            title: cell.title().to_owned(),
            how: promise.how.to_owned(),
            weaker: promise.is_weaker,
        }
    });
    // A file is copied whole.
    let is_needed = |part: &&Part| **part != Part::CatalogCopies || !guarantees.has(Part::File);
    let parts = Part::ALL.iter().filter(is_needed).map(|part| EnginePart {
        name: part.as_str().to_owned(),
        title: part.title().to_owned(),
        present: guarantees.has(*part),
    });
    Ok(EngineDocument {
        schema: EngineDocument::SCHEMA.to_owned(),
        project: place.project().name.clone(),
        driver: guarantees.driver.to_owned(),
        promises: promises.collect(),
        parts: parts.collect(),
    })
}
