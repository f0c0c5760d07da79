//! Operations on a project, with one handler each for all callers and places.
//!
//! | module | holds |
//! |---|---|
//! | [`ops`] | the handlers, a function for each line of the table in `watershed-api` |
//! | [`place`] | the place of a project, as handlers see it |
//! | [`live`] | a project that this process runs |
//! | [`at_rest`] | a state folder that no process runs |
//! | [`methods`] | the operations as methods of an instance |
//! | [`problems`] | conversion of errors of questions to problems |
//! | [`answers`], [`fence`] | rows for callers from elsewhere, and the check of what their statements read |
//! | [`reading`] | documents made from one listing: status, graph, history |
//! | [`questions`] | the engine and the settings for metrics views, APIs, reports and alerts |
//!
//! The socket, the command line and the methods of [`Instance`](crate::Instance) call [`serve`] or a handler, and decide nothing.

mod answer_file;
#[cfg(feature = "http")]
pub(crate) mod answers;
pub(crate) mod at_rest;
#[cfg(feature = "http")]
mod fence;
mod guesses;
pub(crate) mod live;
mod methods;
pub(crate) mod opened;
pub(crate) mod ops;
pub(crate) mod parameters;
pub(crate) mod place;
pub(crate) mod problems;
pub(crate) mod questions;
pub(crate) mod reading;
mod span;

use watershed_api::{Answer, Problem, Request};

use crate::out::Out;

pub use answer_file::{AnswerFile, Source};
pub use at_rest::{AtRest, Hold};
pub(crate) use live::Live;
use place::Place;

/// The caller of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The user of this process, who may do everything.
    Local,
}

macro_rules! dispatch {
    ($($op:ident, $handler:ident, $name:literal, $role:ident, $manner:ident, $input:ident, $output:ident;)*) => {
        /// Carries out a request and returns its final answer.
        ///
        /// # Errors
        /// The problem for which there is no answer.
        pub(crate) async fn answer(
            place: &impl Place,
            principal: &Principal,
            request: Request,
            out: &Out,
        ) -> Result<Answer, Problem> {
            Ok(match request {
                $(Request::$op(input) => {
                    Answer::$op(Box::new(ops::$handler(place, principal, *input, out).await?))
                })*
            })
        }
    };
}

watershed_api::for_each_operation!(dispatch);

/// Carries out a request and sends its final answer.
pub(crate) async fn serve(place: &impl Place, principal: &Principal, request: Request, out: &Out) {
    let ended = answer(place, principal, request, out).await;
    let secrets = match &ended {
        Ok(_) => place.known_secrets(),
        // It may quote what was typed, which nobody has looked at.
        Err(_) => place.secrets().await,
    };
    out.end(ended, &secrets).await;
}
