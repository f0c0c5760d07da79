//! The API over HTTP: instances of this process, for scripts, browsers and other programs.
//!
//! | module | holds |
//! |---|---|
//! | [`service`] | the instances that are served: start at [`Service`] |
//! | [`router`] | the routes, made from the table in [`watershed_api::http`] |
//! | [`call`] | one call of a route |
//! | [`caller`] | who asks |
//! | [`files`] | files of the project |
//! | [`guard`] | what a browser may not be led to do |
//! | [`words`] | queries and bodies, read |
//! | [`answers`] | documents and problems, written |
//! | [`list`], [`watch`] | resources by the page, and what changes of them |
//! | [`token`] | places in lists and streams that readers come back to |
//! | [`requests`] | work that was asked for, until its end |
//! | [`link`] | callers who have opened a link for one use |
//! | [`held`] | the instances that a connection has asked |
//! | [`listen`] | the service on a socket of its own, for the user who started it |
//! | [`pages`] | what stands above the instances |
//! | `console` | the pages for people, with the feature of that name |
//!
//! ```no_run
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! use watershed::Runtime;
//! use watershed::http::{Caller, Service, router};
//!
//! let runtime = Runtime::new();
//! let service = Service::new().with("shop", runtime.open("projects/shop").await?);
//! // Who asks is known by the embedder alone: here everybody may do everything.
//! let app = axum::Router::new().nest("/data", router(service.below("/data"), |_head| Ok(Caller::owner("us"))));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! axum::serve(listener, app).await?;
//! # Ok(()) }
//! ```
//!
//! Routes without a function that says who asks can't be made:
//!
//! ```compile_fail,E0061
//! use watershed::http::{Service, router};
//!
//! let routes = router(Service::new());
//! ```

mod answers;
mod call;
mod caller;
#[cfg(feature = "console")]
mod console;
mod files;
mod guard;
mod held;
mod link;
mod list;
mod listen;
mod operations;
mod pages;
mod requests;
mod router;
mod service;
mod token;
mod watch;
mod words;

pub use caller::{Caller, Identify};
pub use link::{Linked, router_by_link};
pub use listen::{Door, Limits, Peer, Peers, bind, local_user, serve};
pub use router::router;
pub use service::Service;
