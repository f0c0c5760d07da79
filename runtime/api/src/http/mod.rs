//! The HTTP API of a project: one line for each path, over the table of operations.
//!
//! | module | holds |
//! |---|---|
//! | [`routes`] | the table of paths: start here |
//! | [`actions`] | hints, as calls that a program can make |
//! | [`forms`] | what a path takes as its query or body, and the input of an operation that becomes of that |
//! | [`rows`] | the same for paths that stream rows |
//! | [`Limit`] | the number of entries of an answer |
//! | [`access`] | paths of the service itself: who asks, tokens, the audit log |
//! | [`own`] | inputs and documents of what HTTP alone has: pages, requests under way, the stream of changes |
//! | [`calls`] | calls of paths by another process of this machine |
//! | [`boards`] | documents of boards: canvases as their viewers may see them |
//! | [`offers`] | documents of what a caller may ask: metrics views and APIs |
//! | [`tools`], [`tool_schema`] | paths that are tools for assistants, and the schemas of these |
//! | [`openapi`] | the OpenAPI document, made from the table and the schemas of documents |
//! | [`page`] | the page of the documentation, made from the table |
//!
//! A path decides nothing: it is another spelling of an operation, whose handler, role and document it has.

pub mod access;
mod actions;
mod at;
pub mod boards;
pub mod calls;
pub mod forms;
mod limit;
pub mod offers;
pub mod openapi;
pub mod own;
pub mod page;
pub mod routes;
pub mod rows;
pub mod tool_schema;
pub mod tools;

pub use access::{Me, SERVICE_PATHS, ServicePath};
pub use actions::actions;
pub use at::{At, encoded};
pub use limit::Limit;
pub use own::{
    Accepted, Checkout, DiagnosticsDocument, EventsTaken, FileChange, FileEntry, FileRename, FileTexts,
    FilesDocument, InstanceEntry, InstancesPage, Page, ProblemDocument, RequestDocument, RequestState,
    Touched, TreeDocument, TreeHealth,
};
pub use routes::{Does, Method, ROUTES, Route};
