//! Operations on a project: one handler each, whoever asks and wherever the project is.
//!
//! | module | holds |
//! |---|---|
//! | [`ops`] | the handlers, a function for each line of the table in `watershed-api` |
//! | [`place`] | what handlers ask of the place where a project is |
//! | [`live`] | a project that this process runs |
//! | [`at_rest`] | a state folder that no process runs |
//! | [`out`] | the way of answers to whoever asks, where rows become JSON and secrets are taken out |
//! | [`reading`] | documents of one listing |
//! | [`questions`] | what it takes to ask metrics views, APIs, reports and alerts |
//!
//! The socket, the command line and the methods of [`Instance`](crate::Instance) call [`serve`] or a handler, and decide nothing.

pub(crate) mod at_rest;
pub(crate) mod live;
pub(crate) mod ops;
pub(crate) mod out;
pub(crate) mod place;
pub(crate) mod questions;
pub(crate) mod reading;

use watershed_api::{Answer, Problem, Request};

pub(crate) use at_rest::{AtRest, Hold};
pub(crate) use live::Live;
pub(crate) use out::Out;
use place::Place;

/// The one who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Principal {
    /// The user that this process runs for, who may do everything.
    Local,
}

macro_rules! dispatch {
    ($($op:ident, $handler:ident, $name:literal, $role:ident, $manner:ident, $input:ident, $output:ident;)*) => {
        /// Carries out a request.
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

/// Carries out a request, and sends the end of the answer.
pub(crate) async fn serve(place: &impl Place, principal: &Principal, request: Request, out: &Out) {
    let ended = answer(place, principal, request, out).await;
    out.end(ended, &place.known_secrets()).await;
}
