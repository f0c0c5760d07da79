//! Documents that HTTP alone has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actions::actions;
use crate::documents::{Action, Diagnostic, Health, ResourceDocument, ResourceError, ResourceName, Time};
use crate::hint::Hint;
use crate::operations::Role;
use crate::problem::{Mistake, Problem};

/// A page of resources, by kind and name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// Name and version of this form: `watershed.page/1`.
    pub schema: String,
    /// The resources.
    pub resources: Vec<ResourceDocument>,
    /// The token of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The token to watch from, so that whoever read all pages learns of what changed meanwhile.
    pub watch: String,
}

impl Page {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.page/1";
}

/// The mistakes in a project's files, as the last look at them found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosticsDocument {
    /// Name and version of this form: `watershed.diagnostics/1`.
    pub schema: String,
    /// The reason why what the files declare was not applied; null when it was.
    pub not_applied: Option<ResourceError>,
    /// All mistakes, by file and place.
    pub diagnostics: Vec<Diagnostic>,
}

impl DiagnosticsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.diagnostics/1";
}

/// The files of a project: those that the format reads, and pages of Markdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesDocument {
    /// Name and version of this form: `watershed.files/1`.
    pub schema: String,
    /// The files, by path.
    pub files: Vec<FileEntry>,
}

impl FilesDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.files/1";
}

/// A file of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// The path below the project, `/` between parts.
    pub path: String,
    /// The size in bytes.
    pub bytes: u64,
    /// The ETag of the content; null where the file can't be read, or is larger than the format reads.
    pub etag: Option<String>,
    /// The resources that the file declares, by kind and name.
    pub declares: Vec<ResourceName>,
}

/// The answer to a request that was taken and is not done yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// The id of the request, under which `requests/{id}` answers.
    pub id: String,
}

/// A request that was taken.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestDocument {
    /// Name and version of this form: `watershed.request/1`.
    pub schema: String,
    /// The id of the request.
    pub id: String,
    /// The operation.
    pub operation: String,
    /// The time at which the request was stored.
    pub accepted_at: Time,
    /// The progress of the work.
    pub state: RequestState,
    /// The document that the command of that name prints; null before the end, and where there is none any more.
    pub document: Option<Value>,
    /// The reason why there is no document; null unless the request was refused.
    pub problem: Option<ProblemDocument>,
}

impl RequestDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.request/1";
}

/// The progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// The work goes on.
    Running,
    /// The work ended with a document.
    Done,
    /// The request was refused, or the work could not be done.
    Refused,
}

/// The resources that an operation over a selection would touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Touched {
    /// Name and version of this form: `watershed.touched/1`.
    pub schema: String,
    /// The number of resources, to be sent back as `confirm`.
    pub confirm: u64,
    /// The resources.
    pub resources: Vec<ResourceName>,
}

impl Touched {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.touched/1";
}

/// Events that were taken in: all of them are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventsTaken {
    /// The number of events.
    pub events: u64,
    /// The number of resources that they concern.
    pub told: u64,
}

/// A managed resource with its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeDocument {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The stage; null before the first look.
    pub stage: Option<String>,
    /// The stage that the resource moves towards.
    pub goal: Option<String>,
    /// The standing of the resource between the two, its parts left aside.
    pub health: TreeHealth,
    /// The message of what is wrong with the resource, if something is.
    pub message: Option<String>,
    /// The parts, by kind and name.
    pub parts: Vec<TreeDocument>,
}

/// The standing of a managed resource between its stage and its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeHealth {
    /// It is where it should be.
    There,
    /// It is on the way, or waits.
    Moving,
    /// A step has failed and is tried again.
    Trying,
    /// It has failed.
    Failed,
}

/// The instances of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstancesPage {
    /// Name and version of this form: `watershed.service/1`.
    pub schema: String,
    /// The instances, by name.
    pub instances: Vec<InstanceEntry>,
}

impl InstancesPage {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.service/1";
}

/// An instance of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceEntry {
    /// The name.
    pub name: String,
    /// The name of the project.
    pub project: Option<String>,
    /// The environment.
    pub environment: Option<String>,
    /// The health that is worst among its resources; null where the instance is not open.
    pub health: Option<Health>,
    /// The reason why the instance could not be opened; null where it is open.
    pub problem: Option<ProblemDocument>,
}

/// The one who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// Name and version of this form: `watershed.me/1`.
    pub schema: String,
    /// The name by which history and audit call the one who asks.
    pub principal: String,
    /// The roles.
    pub roles: Vec<Role>,
}

impl Me {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.me/1";
}

/// A problem as RFC 9457 has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// The address of the code's section of the documentation.
    #[serde(rename = "type")]
    pub about: String,
    /// The code in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The attempt, and the obstacle.
    pub detail: String,
    /// The code.
    pub code: String,
    /// A remedy to try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The operations that the remedy names, for programs that offer them as buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// The resource that the problem is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// The mistake in a statement or a resource that is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Mistake>,
    /// The candidates among which the name that was given does not decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ResourceName>,
    /// True if the same request may succeed later, without anything being changed by hand.
    pub retryable: bool,
}

impl ProblemDocument {
    /// The media type of problems.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// Returns the document of a problem; `base` is the path below which the API stands.
    pub fn new(problem: Problem, base: &str) -> Self {
        let code = problem.code.name();
        let proposed = |hint: &Hint| actions(hint, problem.resource.as_deref());
        Self {
            actions: problem.hint.as_ref().map(proposed).unwrap_or_default(),
            about: format!("{base}/problems/{code}"),
            title: code.replace('-', " "),
            status: problem.code.http_status(),
            detail: problem.message,
            code: code.to_owned(),
            hint: problem.hint.map(|hint| hint.as_str().to_owned()),
            resource: problem.resource.map(|resource| *resource),
            at: problem.at.map(|at| *at),
            candidates: problem.candidates,
            retryable: problem.retryable,
        }
    }
}
