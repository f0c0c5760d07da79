//! The API over HTTP: instances of this process, for scripts, browsers and other programs.
//!
//! | module | holds |
//! |---|---|
//! | [`service`] | the instances that a process serves: start at [`Service`] |
//! | [`router`] | all routes, and what is checked before each |
//! | [`routes`] | the routes of instances, made from the table in [`watershed_api::http`] |
//! | [`service_routes`] | the routes of the service itself |
//! | [`context`] | what the handlers of routes share |
//! | [`call`] | an HTTP call of an instance |
//! | [`caller`] | the authenticated caller |
//! | [`bearer`] | authentication by tokens of the service |
//! | [`access`] | tokens, the audit log, and who asks |
//! | [`trail`] | the audit of a call |
//! | [`repeats`], [`keys`] | calls with an idempotency key, and the keys under work |
//! | [`streams`] | streams that end with their caller's access |
//! | [`rows`] | rows as streamed responses |
//! | [`files`] | files of the project |
//! | [`lsp`] | the language server, over a WebSocket |
//! | [`source`], [`checkout`] | files that are fetched from elsewhere |
//! | [`body`] | bodies of requests, within limits |
//! | [`texts`] | unsaved texts, compiled over the project's files |
//! | [`exports`] | files of reports, and their signed addresses |
//! | [`guard`] | protection against other sites in a browser |
//! | [`visibility`], [`scope`] | what a role sees of documents, and what a narrowed token may name |
//! | [`meters`], [`scrape`] | numbers of the API and of the instances, for Prometheus |
//! | `mcp` | tools for assistants, with the feature of that name |
//! | [`boards`] | canvases as a caller may see them |
//! | [`offers`] | metrics views and APIs that a caller may ask |
//! | [`offered`] | parts of specs for those who may ask |
//! | [`mock_user`] | users of the manifest, as whom admins look |
//! | [`words`] | parameters from queries and bodies |
//! | [`answers`] | documents, problems and files as responses |
//! | [`form`], [`rows`], [`made_file`] | rows in the form that the caller accepts |
//! | [`table`] | answers of metrics views and APIs in these forms |
//! | [`compression`] | compressed bodies |
//! | [`list`], [`watch`] | lists of resources, and streams of their changes |
//! | [`token`] | positions in lists and streams |
//! | [`requests`] | stored requests, whose work continues after the response |
//! | [`link`] | authentication by a link for one use |
//! | `entrance`, `sessions` | callers by another protocol, with the feature `pgwire`, and their number |
//! | [`held`] | instances that are attended while a connection is open |
//! | [`listen`] | the listener: addresses, limits and users of connections |
//! | [`proxies`] | the client behind a proxy |
//! | [`tls`] | encrypted connections |
//! | [`pages`] | pages of the service itself |
//! | `console` | the console, with the feature of that name |
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

mod access;
mod answers;
mod bearer;
mod boards;
mod body;
mod call;
mod caller;
mod checkout;
mod compression;
#[cfg(feature = "console")]
mod console;
mod context;
#[cfg(feature = "pgwire")]
mod entrance;
mod exports;
mod files;
mod form;
mod guard;
mod held;
mod keys;
mod limits;
mod link;
mod list;
mod listen;
mod lsp;
mod made_file;
#[cfg(feature = "mcp")]
pub mod mcp;
mod meters;
mod mock_user;
mod offered;
mod offers;
mod operations;
mod pages;
mod proxies;
mod repeats;
mod requests;
mod router;
mod routes;
mod rows;
mod scope;
mod scrape;
mod sent_file;
mod service;
mod service_routes;
#[cfg(feature = "pgwire")]
mod sessions;
mod source;
mod spans;
mod streams;
mod table;
mod texts;
mod tls;
mod token;
mod trail;
mod visibility;
mod watch;
mod words;

pub use bearer::{Bearers, bearer, unauthenticated};
pub use caller::{Caller, Identify, Narrowing};
#[cfg(feature = "pgwire")]
pub(crate) use entrance::{Entered, Offered};
pub use exports::ExportLinks;
pub use guard::guarded;
pub use limits::{Counts, Limits};
pub use link::{Linked, router_by_link};
#[cfg(feature = "pgwire")]
pub(crate) use listen::Connections;
pub use listen::{Door, Listener, Peer, Peers, bind, local_user, serve};
pub use proxies::{Client, Proxies};
pub use router::{router, router_with};
pub use service::Service;
pub use source::{Fetched, Source};
pub use tls::{Tls, TlsError};
pub use watershed_api::http::access::Authentication;
pub use watershed_callers::state::State;
pub use watershed_callers::token::{Minted, Wanted};
pub use watershed_callers::{Grant, Grants, Level, Tokens};
