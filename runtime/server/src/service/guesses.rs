//! The options that the engine guesses for the files of a source, asked when the source is shown.

use tokio_util::sync::CancellationToken;
use watershed_api::documents::{GuessedDocument, ResourceDocument};
use watershed_drivers::olap::{Olap, Query};
use watershed_outputs::secrets::Secrets;
use watershed_proto::{ModelSpec, ModelState};
use watershed_reconcilers::model::Guesses;

use crate::instance::Options;

/// The spec of a source, with the state of its last build.
pub(crate) type Source = Box<(ModelSpec, ModelState)>;

/// Adds to a source's document the options that the engine guesses from its files, if the engine can be asked.
pub(crate) async fn with_guesses(
    mut about: Box<ResourceDocument>,
    source: Option<Source>,
    (engine, secrets, options): (&dyn Olap, &Secrets, &Options),
) -> Box<ResourceDocument> {
    let Some(source) = source else { return about };
    let (name, secrets) = (about.name.clone(), secrets.clone());
    let (root, environment) = (options.root.clone(), options.environment.clone());
    let looking = move || {
        let (spec, state) = &*source;
        let question = Guesses::about(&root, (&name, &environment), (spec, state), &secrets);
        question.ok().flatten()
    };
    let Ok(Some(guesses)) = tokio::task::spawn_blocking(looking).await else {
        return about;
    };
    let query = Query {
        sql: guesses.sql.clone(),
        limit: Some(1),
        timeout: None,
        ..Query::default()
    };
    let cancel = CancellationToken::new();
    let answered = async { engine.query(query, &cancel).await?.collect().await };
    if let Some(answer) = answered.await.ok().and_then(|rows| rows.into_iter().next()) {
        about.guessed = Some(GuessedDocument {
            file: guesses.file.clone(),
            options: guesses.read(&answer),
        });
    }
    about
}
