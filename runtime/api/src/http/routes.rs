//! The table of paths of the HTTP API.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

use super::at::At;
use super::forms::{self, Form, Selected};
use super::rows;
use super::tools::{self, Tool};
use crate::code::Code;
use crate::operations::{Info, Manner, Operation as _, Request, Role};
use crate::problem::Problem;

/// The HTTP method of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// A request that only reads.
    Get,
    /// A request that starts work, or a question whose arguments are in the body.
    Post,
    /// A request that replaces a file by its body.
    Put,
    /// A request that removes something.
    Delete,
}

impl Method {
    /// Returns the name of the HTTP method, in capitals.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
        }
    }
}

/// The place of a request's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// The arguments are in the query of the URL.
    Query,
    /// The arguments are in a JSON body.
    Body,
}

/// An operation as a path offers it, with the forms of its input and answer.
#[derive(Clone, Copy)]
pub struct Offer {
    /// Description of the operation, from the table.
    pub info: Info,
    /// Parses a query or body and returns the operation's request.
    pub read: fn(Value, &At) -> Result<Request, Problem>,
    /// Returns the schema of the query or body.
    pub form: fn(&mut SchemaGenerator) -> Schema,
    /// Returns the schema of the document that answers the operation.
    pub document: fn(&mut SchemaGenerator) -> Schema,
}

/// The effect of a path.
#[derive(Clone, Copy)]
pub enum Does {
    /// The path carries out an operation and answers with the operation's document.
    Answers(Offer),
    /// The path stores a request for an operation, answers with its id, and does the work in the background.
    Starts(Offer),
    /// The path applies an operation to a selection of resources, once their number is confirmed.
    Selected(Offer),
    /// The path answers with an operation's document, or with a stream of events that continues.
    Follows(Offer),
    /// The path streams the rows of an operation, and ends with its connection.
    Rows(Offer),
    /// The path has no operation of the table behind it.
    Own(Own),
}

/// A path that only HTTP has, without an operation behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// Lists a page of resources.
    List,
    /// Returns a single resource.
    Resource,
    /// Returns a managed resource with its parts.
    Tree,
    /// Lists the mistakes in files.
    Diagnostics,
    /// Lists the files of the project.
    Files,
    /// Returns a file of the project.
    File,
    /// Writes a file of the project.
    WriteFile,
    /// Deletes a file of the project.
    DeleteFile,
    /// Renames a file of the project.
    RenameFile,
    /// Replaces the project's variables, the file `.env`, which nobody reads.
    WriteVariables,
    /// Compiles unsaved texts over the project's files.
    CheckFiles,
    /// Connects an editor to the project's language server.
    Lsp,
    /// Fetches the project's files from its git repository.
    Checkout,
    /// Returns a file below the manifest's `public_paths`, which every reader may have.
    Public,
    /// Streams changes of resources.
    Watch,
    /// Lists the metrics views that the caller may ask.
    MetricsViews,
    /// Describes a metrics view.
    MetricsView,
    /// Returns a canvas as the caller may see it.
    Board,
    /// Lists the APIs that the caller may call.
    Apis,
    /// Returns the state of an accepted request.
    Request,
    /// Sends a backup as the body of the answer.
    Backup,
    /// Accepts events from other programs.
    Events,
    /// Returns the file of a report.
    Export,
    /// Ends the address of a report's file.
    Revoke,
}

impl Own {
    /// Returns the name of the part, among the names of operations.
    pub fn operation(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Resource => "resource",
            Self::Tree => "tree",
            Self::Diagnostics => "diagnostics",
            Self::Files => "files",
            Self::File => "file",
            Self::WriteFile => "write-file",
            Self::DeleteFile => "delete-file",
            Self::RenameFile => "rename-file",
            Self::WriteVariables => "write-variables",
            Self::CheckFiles => "check-files",
            Self::Lsp => "lsp",
            Self::Checkout => "checkout",
            Self::Public => "public",
            Self::Watch => "watch",
            Self::MetricsViews => "metrics-views",
            Self::MetricsView => "metrics-view",
            Self::Board => "board",
            Self::Apis => "apis",
            Self::Request => "request",
            Self::Backup => "backup",
            Self::Events => "event",
            Self::Export => "export-open",
            Self::Revoke => "export-revoke",
        }
    }
}

/// A path of the HTTP API: one line of the table.
#[derive(Clone, Copy)]
pub struct Route {
    /// HTTP method of the path.
    pub method: Method,
    /// Path relative to the instance, with parameters in braces.
    pub path: &'static str,
    /// Role that a caller needs.
    pub role: Role,
    /// Purpose of the path, in a short sentence.
    pub summary: &'static str,
    /// Effect of the path: an operation, or a part that only HTTP has.
    pub does: Does,
    /// The tool that the path is for assistants; none if it is none.
    pub tool: Option<&'static Tool>,
}

impl Route {
    /// Offers the path to assistants as a tool.
    const fn tool(self, tool: &'static Tool) -> Self {
        Self {
            tool: Some(tool),
            ..self
        }
    }

    /// Returns the operation behind the path; none for a part that only HTTP has.
    pub fn operation(&self) -> Option<Info> {
        match &self.does {
            Does::Answers(offer)
            | Does::Starts(offer)
            | Does::Selected(offer)
            | Does::Follows(offer)
            | Does::Rows(offer) => Some(offer.info),
            Does::Own(_) => None,
        }
    }

    /// Returns the name of the operation, by which tokens are narrowed and the audit log calls the path.
    pub fn name(&self) -> &'static str {
        match &self.does {
            Does::Own(own) => own.operation(),
            Does::Answers(offer)
            | Does::Starts(offer)
            | Does::Selected(offer)
            | Does::Follows(offer)
            | Does::Rows(offer) => offer.info.name,
        }
    }

    /// Returns true if the path may change something, so that its calls are audited and may have an idempotency key.
    pub fn changes(&self) -> bool {
        let changes = match &self.does {
            Does::Own(own) => matches!(
                own,
                Own::Backup
                    | Own::Events
                    | Own::WriteFile
                    | Own::DeleteFile
                    | Own::RenameFile
                    | Own::WriteVariables
                    | Own::Revoke
                    | Own::Checkout
            ),
            Does::Rows(_) => false,
            Does::Answers(offer) | Does::Starts(offer) | Does::Selected(offer) | Does::Follows(offer) => {
                offer.info.manner != Manner::Reads
            }
        };
        changes && self.method != Method::Get
    }

    /// Returns the place of the path's arguments: query or body.
    pub fn words(&self) -> Words {
        match self.method {
            Method::Get | Method::Delete => Words::Query,
            Method::Post | Method::Put => Words::Body,
        }
    }

    /// Returns the operation id of the path, by which generated clients call it.
    pub fn id(&self) -> String {
        let mut id = self.method.name().to_lowercase();
        for piece in self
            .path
            .split(['/', ':', '{', '}', '-', '*', '.'])
            .filter(|piece| !piece.is_empty())
        {
            id.push('_');
            id.push_str(piece);
        }
        id
    }
}

const fn offer<F: Form>() -> Offer {
    Offer {
        info: F::Operation::INFO,
        read: read::<F>,
        form: schema_of::<F>,
        document: schema_of::<F::Document>,
    }
}

fn schema_of<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// Parses a form and returns the operation's request.
fn read<F: Form>(words: Value, at: &At) -> Result<Request, Problem> {
    if !words.is_object() {
        return Err(Problem::new(Code::BadArgument, "the body is not a JSON object"));
    }
    let form: F = serde_json::from_value(words).map_err(|error| unread(&error))?;
    Ok(F::Operation::request(form.into_input(at)))
}

/// Returns the problem of a query or body that does not match its form.
fn unread(error: &serde_json::Error) -> Problem {
    Problem::new(Code::BadArgument, format!("the request can't be read: {error}"))
}

/// Removes the keys of the selection from a body, which also holds the operation's keys, and parses them.
///
/// # Errors
/// When one of them is of another type.
pub fn take_selected(body: &mut Map<String, Value>) -> Result<Selected, Problem> {
    let taken = Selected::KEYS.iter().filter_map(|key| body.remove_entry(*key));
    let taken = Value::Object(taken.collect());
    serde_json::from_value(taken).map_err(|error| unread(&error))
}

const fn get<F: Form>(path: &'static str, role: Role, summary: &'static str) -> Route {
    let does = Does::Answers(offer::<F>());
    line(Method::Get, path, role, summary, does)
}

const fn post<F: Form>(path: &'static str, role: Role, summary: &'static str) -> Route {
    let does = Does::Answers(offer::<F>());
    line(Method::Post, path, role, summary, does)
}

const fn start<F: Form>(path: &'static str, role: Role, summary: &'static str) -> Route {
    let does = Does::Starts(offer::<F>());
    line(Method::Post, path, role, summary, does)
}

const fn follow<F: Form>(path: &'static str, role: Role, summary: &'static str) -> Route {
    let does = Does::Follows(offer::<F>());
    line(Method::Get, path, role, summary, does)
}

const fn stream<F: Form>(method: Method, path: &'static str, summary: &'static str) -> Route {
    line(method, path, Role::Query, summary, Does::Rows(offer::<F>()))
}

const fn selected<F: Form>(path: &'static str, summary: &'static str) -> Route {
    let does = Does::Selected(offer::<F>());
    line(Method::Post, path, Role::Operate, summary, does)
}

const fn own(method: Method, path: &'static str, role: Role, own: Own, summary: &'static str) -> Route {
    line(method, path, role, summary, Does::Own(own))
}

const fn line(method: Method, path: &'static str, role: Role, summary: &'static str, does: Does) -> Route {
    Route {
        method,
        path,
        role,
        summary,
        does,
        tool: None,
    }
}

use Role::{Admin, Edit, Operate, Query, Read};

/// All paths of an instance.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    own(Method::Get, "/resources", Read, Own::List, "Lists resources, a page at a time").tool(&tools::LIST_RESOURCES),
    own(Method::Get, "/resources/{kind}/{name}", Read, Own::Resource, "Shows one resource").tool(&tools::DESCRIBE_RESOURCE),
    get::<forms::History>("/resources/{kind}/{name}/history", Read, "Tells of past runs of a resource, the latest first").tool(&tools::HISTORY),
    own(Method::Get, "/resources/{kind}/{name}/tree", Read, Own::Tree, "Shows a managed resource with its parts"),
    get::<forms::Explain>("/resources/{kind}/{name}/explain", Operate, "Tells why a resource is not running, the root cause first").tool(&tools::EXPLAIN),
    follow::<forms::Logs>("/resources/{kind}/{name}/logs", Operate, "Tells what runs of a resource said").tool(&tools::LOGS),
    follow::<forms::Output>("/resources/{kind}/{name}/output", Operate, "Tells what a program wrote"),
    get::<forms::Partitions>("/resources/{kind}/{name}/partitions", Operate, "Lists partitions of a model, the latest first"),
    start::<forms::Reconcile>("/resources/{kind}/{name}/reconcile", Operate, "Looks at a resource again").tool(&tools::RECONCILE),
    start::<forms::Refresh>("/resources/{kind}/{name}/refresh", Operate, "Does the work of a resource again").tool(&tools::REFRESH),
    start::<forms::Retry>("/resources/{kind}/{name}/retry", Operate, "Tries again now what has failed of a resource").tool(&tools::RETRY),
    start::<forms::Approve>("/resources/{kind}/{name}/approve", Operate, "Lets an edit through that is held"),
    post::<forms::Pause>("/resources/{kind}/{name}/pause", Operate, "Keeps a resource from being run"),
    post::<forms::Resume>("/resources/{kind}/{name}/resume", Operate, "Lets a resource run again"),
    post::<forms::Cancel>("/resources/{kind}/{name}/cancel", Operate, "Ends the run of a resource"),
    post::<forms::Restart>("/resources/{kind}/{name}/restart", Operate, "Starts a service anew"),
    post::<forms::Scale>("/resources/{kind}/{name}/scale", Operate, "Changes the number of replicas of a service"),
    post::<forms::Rollback>("/resources/{kind}/{name}/rollback", Operate, "Goes back to an earlier release of a service"),
    post::<forms::Set>("/resources/{kind}/{name}/set", Operate, "Sets the stage that is desired of a managed resource"),
    post::<forms::Snooze>("/resources/{kind}/{name}/snooze", Operate, "Tells nobody of an alert for a while"),
    start::<forms::Evaluate>("/resources/{kind}/{name}/evaluate", Operate, "Evaluates an alert now"),
    post::<forms::RunReport>("/resources/{kind}/{name}/run", Operate, "Makes the rows of a report"),
    post::<forms::TestOne>("/resources/{kind}/{name}/test", Operate, "Runs the tests of a model"),
    selected::<forms::Reconcile>("/resources:reconcile", "Looks at resources again"),
    selected::<forms::Refresh>("/resources:refresh", "Does the work of resources again"),
    selected::<forms::Retry>("/resources:retry", "Tries again now what has failed of resources"),
    selected::<forms::Approve>("/resources:approve", "Lets edits through that are held"),
    selected::<forms::Pause>("/resources:pause", "Keeps resources from being run"),
    selected::<forms::Resume>("/resources:resume", "Lets resources run again"),
    selected::<forms::Cancel>("/resources:cancel", "Ends the runs of resources"),
    selected::<forms::Restart>("/resources:restart", "Starts services anew"),
    get::<forms::Graph>("/graph", Read, "Draws what reads what"),
    own(Method::Get, "/diagnostics", Read, Own::Diagnostics, "Lists the mistakes in files").tool(&tools::DIAGNOSTICS),
    get::<forms::Stats>("/stats", Read, "Counts resources and what was done to them"),
    get::<forms::Engine>("/engine", Read, "Tells what the engine promises"),
    get::<forms::Past>("/history", Operate, "Tells of past runs of all resources, the latest first"),
    own(Method::Get, "/watch", Read, Own::Watch, "Follows what changes"),
    own(Method::Get, "/files", Edit, Own::Files, "Lists the files of the project").tool(&tools::LIST_FILES),
    own(Method::Get, "/files/{*path}", Edit, Own::File, "Shows one file of the project").tool(&tools::READ_FILE),
    own(Method::Put, "/files/{*path}", Edit, Own::WriteFile, "Writes one file of the project").tool(&tools::WRITE_FILE),
    own(Method::Put, "/files/.env", Admin, Own::WriteVariables, "Replaces the project's variables, which nobody reads"),
    own(Method::Post, "/rename-file", Edit, Own::RenameFile, "Renames one file of the project").tool(&tools::RENAME_FILE),
    own(Method::Delete, "/files/{*path}", Edit, Own::DeleteFile, "Deletes one file of the project").tool(&tools::DELETE_FILE),
    own(Method::Post, "/check", Edit, Own::CheckFiles, "Compiles unsaved texts over the project's files, and changes nothing").tool(&tools::CHECK_FILES),
    own(Method::Get, "/lsp", Edit, Own::Lsp, "Connects an editor to the project's language server, as a WebSocket"),
    own(Method::Get, "/public/{*path}", Read, Own::Public, "Shows a file below the manifest's `public_paths`"),
    own(Method::Get, "/exports/{id}", Query, Own::Export, "Sends the file of a report, also to who has its signed address"),
    own(Method::Delete, "/exports/{id}", Admin, Own::Revoke, "Ends the address of a report's file"),
    own(Method::Get, "/requests/{id}", Read, Own::Request, "Tells what came of a request").tool(&tools::GET_REQUEST),
    start::<forms::Run>("/run", Operate, "Brings the project up to date, or what is selected of it").tool(&tools::RUN),
    post::<forms::Plan>("/plan", Operate, "Works out what a run would do").tool(&tools::PLAN),
    post::<forms::Test>("/test", Operate, "Runs the tests of models"),
    own(Method::Post, "/checkout", Operate, Own::Checkout, "Fetches the project's files from its git repository"),
    own(Method::Post, "/events", Operate, Own::Events, "Takes in CloudEvents"),
    stream::<rows::Query>(Method::Post, "/query", "Asks the project's outputs one question in SQL").tool(&tools::QUERY_SQL),
    stream::<rows::Rows>(Method::Get, "/resources/{kind}/{name}/rows", "Sends the rows of a resource").tool(&tools::SHOW_ROWS),
    get::<forms::Compile>("/resources/{kind}/{name}/compiled", Role::Query, "Shows the SQL of a model as the engine gets it"),
    own(Method::Get, "/metrics", Read, Own::MetricsViews, "Lists the metrics views that the caller may ask").tool(&tools::LIST_METRICS),
    own(Method::Get, "/metrics/{view}", Read, Own::MetricsView, "Describes a metrics view, with questions that run as they stand").tool(&tools::DESCRIBE_METRICS),
    post::<forms::MetricsQuery>("/metrics/{view}/query", Read, "Asks a metrics view").tool(&tools::QUERY_METRICS),
    get::<forms::MetricsBounds>("/metrics/{view}/bounds", Read, "Tells the ends of a metrics view's time dimension"),
    own(Method::Get, "/canvases/{name}/board", Read, Own::Board, "Shows a canvas as its caller may see it, with queries that can be asked"),
    own(Method::Get, "/api", Read, Own::Apis, "Lists the APIs that the caller may call").tool(&tools::LIST_APIS),
    get::<forms::Arguments>("/api/{name}", Read, "Calls an API of the project"),
    post::<forms::Arguments>("/api/{name}", Read, "Calls an API of the project, its arguments in the body").tool(&tools::CALL_API),
    get::<forms::Trash>("/trash", Operate, "Lists the trash"),
    post::<forms::RestoreTable>("/trash/{id}/restore", Edit, "Gives a table back from the trash"),
    post::<forms::EmptyTrash>("/trash/empty", Admin, "Throws tables of the trash away for good"),
    post::<forms::Doctor>("/doctor", Admin, "Looks for damage in what is stored"),
    post::<forms::Gc>("/gc", Admin, "Removes what nothing needs any more"),
    own(Method::Post, "/backup", Admin, Own::Backup, "Sends a copy of everything that is kept"),
];

/// Returns all tools with the paths that they are, in the order of the table.
pub fn tools() -> impl Iterator<Item = (&'static Tool, &'static Route)> {
    ROUTES.iter().filter_map(|route| Some((route.tool?, route)))
}

/// Operations without a path of their own, each with the reason.
pub const WITHOUT_PATH: &[(&str, &str)] = &[
    ("status", "`resources` lists, and `resources/{kind}/{name}` shows"),
    (
        "validate",
        "`diagnostics` has what the watched files say; `check` compiles texts",
    ),
    ("logs", "has a path for logs and one for the output of programs"),
    ("instances", "is of the service, above its instances"),
    ("prometheus", "is of the service, above its instances"),
    ("export", "writes files of the machine"),
    (
        "alert-test",
        "tries an alert at another time, which is a tool of authors",
    ),
    ("event", "`events` takes the three modes of CloudEvents"),
    ("check", "is part of `doctor`"),
    (
        "repair",
        "changes what is stored below the project, by hand at the machine",
    ),
    ("backup", "`backup` sends the archive in place of writing a file"),
    (
        "restore",
        "reads a file of the machine, while nobody runs the project",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::tools::{Effect, LONGEST_DESCRIPTION};
    use super::*;
    use crate::operations::TABLE;

    #[test]
    fn each_operation_has_a_path_or_a_reason_for_having_none() {
        let offered: BTreeSet<&str> = ROUTES
            .iter()
            .filter_map(|route| Some(route.operation()?.name))
            .collect();
        for line in TABLE {
            let excused = WITHOUT_PATH.iter().any(|(name, _)| *name == line.name);
            let has_two = line.name == "logs";
            assert!(offered.contains(line.name) != excused || has_two, "{}", line.name);
        }
        for (name, reason) in WITHOUT_PATH {
            assert!(TABLE.iter().any(|line| line.name == *name), "{name}: {reason}");
        }
    }

    #[test]
    fn s_api41_tools_have_names_of_their_own_and_short_descriptions_with_an_example() {
        let names: BTreeSet<&str> = tools().map(|(tool, _)| tool.name).collect();
        assert_eq!(names.len(), tools().count());
        for (tool, route) in tools() {
            let length = tool.description.len();
            assert!(length < LONGEST_DESCRIPTION, "{}: {length}", tool.name);
            assert!(tool.description.contains("Example: {"), "{}", tool.name);
            assert_eq!(
                route.changes() || matches!(route.does, Does::Starts(_)),
                tool.effect != Effect::Reads,
                "{}",
                tool.name
            );
        }
    }

    #[test]
    fn paths_ask_for_the_role_of_their_operation() {
        for route in ROUTES {
            if let Some(info) = route.operation() {
                let is_own_history = info.name == "history" && route.path.starts_with("/resources/");
                assert!(
                    route.role == info.role || is_own_history,
                    "{} {}",
                    route.path,
                    info.name
                );
            }
        }
    }

    #[test]
    fn paths_are_unique_and_so_are_the_names_of_generated_clients() {
        let paths: BTreeSet<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
        let ids: BTreeSet<String> = ROUTES.iter().map(Route::id).collect();
        assert_eq!((paths.len(), ids.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_refused() {
        let offers = ROUTES.iter().filter_map(|route| match &route.does {
            Does::Answers(offer) | Does::Starts(offer) | Does::Rows(offer) => Some((route.path, *offer)),
            _ => None,
        });
        for (path, offer) in offers.filter(|(path, _)| !path.starts_with("/api/")) {
            let at = At::resource("model", "a");
            assert!(
                (offer.read)(serde_json::json!({ "nonsense": 1 }), &at).is_err(),
                "{path}"
            );
        }
        let read = offer::<forms::Refresh>().read;
        assert!(read(serde_json::json!({ "full": "yes" }), &At::nothing()).is_err());
    }
}
