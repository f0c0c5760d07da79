//! Documents that only the HTTP API returns.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actions::actions;
use crate::documents::{
    Action, Diagnostic, Health, ResourceDocument, ResourceError, ResourceName, Time, Trust,
};
use crate::hint::Hint;
use crate::problem::{Mistake, Problem};

/// A page of the list of resources, ordered by kind and name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// Name and version of this form: `watershed.page/1`.
    pub schema: String,
    /// Resources of this page, by kind and name.
    pub resources: Vec<ResourceDocument>,
    /// Token of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Token from which to watch for changes, so that a reader of all pages misses no change in between.
    pub watch: String,
    /// Number of resources that wait to run or run, which may change this list, of one by `health` or `phase`; absent if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsettled: u64,
}

/// Returns true for none.
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Page {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.page/1";
}

/// The mistakes in a project's files, as of the last time the files were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosticsDocument {
    /// Name and version of this form: `watershed.diagnostics/1`.
    pub schema: String,
    /// Reason why the files' declarations were not applied; null if they were applied.
    pub not_applied: Option<ResourceError>,
    /// All mistakes in files, by file and place.
    pub diagnostics: Vec<Diagnostic>,
}

impl DiagnosticsDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.diagnostics/1";
}

/// The files of a project: project files and Markdown pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FilesDocument {
    /// Name and version of this form: `watershed.files/1`.
    pub schema: String,
    /// Files of the project, by path.
    pub files: Vec<FileEntry>,
}

impl FilesDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.files/1";
}

/// A file of a project, with its size and the resources that it declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileEntry {
    /// Path relative to the project's folder, with `/` as the separator.
    pub path: String,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// ETag of the content; null if the file can't be read or is larger than the project format allows.
    pub etag: Option<String>,
    /// Resources that the file declares, by kind and name.
    pub declares: Vec<ResourceName>,
}

/// A change of a file that was made, with the mistakes in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// Name and version of this form: `watershed.file-change/1`.
    pub schema: String,
    /// Path of the file, relative to the project's folder.
    pub path: String,
    /// ETag of the content; null if the file is gone or is one that nobody reads.
    pub etag: Option<String>,
    /// Id of the change, which the causes in the history name; null if nothing was changed.
    pub request: Option<String>,
    /// True if the project's files were compiled and their declarations applied; otherwise the work goes on.
    pub is_applied: bool,
    /// Reason why the files' declarations were not applied; null if they were applied.
    pub not_applied: Option<ResourceError>,
    /// Mistakes in the file, by place.
    pub diagnostics: Vec<Diagnostic>,
}

impl FileChange {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.file-change/1";
}

/// A fetch of a project's files from its git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkout {
    /// Name and version of this form: `watershed.checkout/1`.
    pub schema: String,
    /// Id of the commit whose files are in place.
    pub commit: String,
    /// True if the files are others than before.
    pub is_changed: bool,
}

impl Checkout {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.checkout/1";
}

/// A request to rename a file of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRename {
    /// Path of the file, relative to the project's folder.
    pub from: String,
    /// New path of the file. No file may have this path.
    pub to: String,
}

/// Unsaved texts to compile over the files of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileTexts {
    /// Text of each file by path, in the place of the file's own; null for a file that is to be seen as deleted.
    pub files: BTreeMap<String, Option<String>>,
}

/// The answer to a request that was accepted and whose work has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// Id of the request, for `requests/{id}`.
    pub id: String,
}

/// An accepted request and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestDocument {
    /// Name and version of this form: `watershed.request/1`.
    pub schema: String,
    /// Id of the request, for `requests/{id}`.
    pub id: String,
    /// Name of the requested operation, such as `refresh`.
    pub operation: String,
    /// Time at which the request was stored.
    pub accepted_at: Time,
    /// State of the requested work: running, done or refused.
    pub state: RequestState,
    /// Document that the operation ended with; null before the end, or if the document is no longer kept.
    pub document: Option<Value>,
    /// Problem that ended the request; null unless the request was refused.
    pub problem: Option<ProblemDocument>,
}

impl RequestDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.request/1";
}

/// The state of an accepted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    /// The requested work has not ended.
    Running,
    /// The requested work ended with a document.
    Done,
    /// The request was refused, or its work could not be done.
    Refused,
}

/// The resources that an operation on a selection would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Touched {
    /// Name and version of this form: `watershed.touched/1`.
    pub schema: String,
    /// Number of resources, to send back as `confirm` in order to carry the operation out.
    pub confirm: u64,
    /// Resources that the operation would change.
    pub resources: Vec<ResourceName>,
}

impl Touched {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.touched/1";
}

/// The receipt for events that were accepted and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventsTaken {
    /// Number of accepted events.
    pub events: u64,
    /// Number of resources that the events concern.
    pub told: u64,
}

/// A managed resource with its parts, which form a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeDocument {
    /// Kind of the resource.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
    /// Observed stage of the resource; null before the first observation.
    pub stage: Option<String>,
    /// Stage that the resource moves towards; null if it has no such goal.
    pub goal: Option<String>,
    /// Progress of the resource from its stage to its goal, without regard to its parts.
    pub health: TreeHealth,
    /// Description of the fault of the resource; null if nothing is wrong.
    pub message: Option<String>,
    /// Parts of the resource, by kind and name; empty if it has none.
    pub parts: Vec<TreeDocument>,
}

/// The progress of a managed resource from its stage to its goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TreeHealth {
    /// The resource has reached its goal.
    There,
    /// The resource is moving towards its goal, or waits to.
    Moving,
    /// A step towards the goal failed and will be retried.
    Trying,
    /// The resource or its last step failed for good, or has an error.
    Failed,
}

/// The list of a service's instances.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstancesPage {
    /// Name and version of this form: `watershed.service/1`.
    pub schema: String,
    /// Instances of the service, by name.
    pub instances: Vec<InstanceEntry>,
}

impl InstancesPage {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.service/1";
}

/// An instance of a service: a project in an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceEntry {
    /// Name of the instance.
    pub name: String,
    /// Name of the instance's project; null if the instance is not open.
    pub project: Option<String>,
    /// Name of the instance's environment; null if the instance is not open.
    pub environment: Option<String>,
    /// Rights of the project's files; null if the instance is not open.
    pub trust: Option<Trust>,
    /// Worst health among the instance's resources; null if the instance is not open.
    pub health: Option<Health>,
    /// Reason why the instance could not be opened; null if it is open.
    pub problem: Option<ProblemDocument>,
}

/// A problem in the form of RFC 9457.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProblemDocument {
    /// URI of the documentation of the problem's code.
    #[serde(rename = "type")]
    pub about: String,
    /// Short title of the problem, derived from its code.
    pub title: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// Message for people: what was attempted, and what prevented it.
    pub detail: String,
    /// Code of the problem, such as `unknown-name`.
    pub code: String,
    /// Suggested fix; absent if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Operations that the hint names, for programs that offer them as buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Resource that the problem is about; absent if it concerns no resource or several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// The error in a statement or a resource that caused the problem; absent for other problems.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Mistake>,
    /// Resources that an ambiguous name may mean; empty for other problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<ResourceName>,
    /// True if the same request may succeed later without any change by hand.
    pub retryable: bool,
}

impl ProblemDocument {
    /// Media type of answers that are problems.
    pub const MEDIA_TYPE: &str = "application/problem+json";

    /// Returns the document of a problem; `base` is the path of the API.
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
