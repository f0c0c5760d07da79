//! Tools for assistants: which paths of the HTTP API are tools, and how they are told of.
//!
//! A tool is a mark in the table of paths (`routes`), so its role, input, answer and problems are those of the operation. All
//! texts are constant: no author of a project tells an assistant what a tool is for.

/// The effect of a tool on the project, for clients that ask their person before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads.
    Reads,
    /// The tool starts work that builds what the files declare. A second call finds it done.
    Builds,
    /// The tool replaces or removes what an author wrote.
    Replaces,
}

/// A tool: its name, and what an assistant reads of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Name of the tool, unique among tools.
    pub name: &'static str,
    /// Description for somebody who sees nothing else: when to use the tool, when not, and one example.
    pub description: &'static str,
    /// Effect of the tool.
    pub effect: Effect,
    /// Words of the path's query that the tool fixes, so that answers stay small.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Hint that is added to an answer that was cut: how to ask for less, or for the rest.
    pub more: &'static str,
}

/// Longest description of a tool, in bytes: every conversation pays for it.
pub const LONGEST_DESCRIPTION: usize = 400;

const fn tool(name: &'static str, effect: Effect, more: &'static str, description: &'static str) -> Tool {
    Tool {
        name,
        description,
        effect,
        fixed: &[],
        more,
    }
}

const NAMES: &str = "choose fewer by `select`, such as `[\"path:models/**\"]`, or ask with a smaller `limit` and go on with `page`, the `next` of this answer";
const ROWS: &str =
    "ask for fewer columns, aggregate or filter in the question, or set `limit` (at most 1000)";
const RUNS: &str = "ask with a smaller `limit`, and go on with `page`, the `next` of this answer";
const WHOLE: &str = "ask for one resource by `describe_resource`, or choose fewer by `select`";
const FILES: &str = "ask for the rest by `from_line`, or choose fewer files";
const WORK: &str = "`describe_resource` and `explain` tell of one resource; `list_resources` with `health` lists those that failed";

/// Lists resources.
pub const LIST_RESOURCES: Tool = Tool {
    fixed: &[
        ("fields", "kind"),
        ("fields", "name"),
        ("fields", "health"),
        ("fields", "phase"),
        ("fields", "refs"),
        ("fields", "paths"),
        ("fields", "error"),
        ("fields", "blocked_by"),
    ],
    ..tool(
        "list_resources",
        Effect::Reads,
        NAMES,
        "Lists what the project declares (models, sources, metrics views, alerts, APIs ...) with health, refs, files and errors. \
         Begin here to find what is there or what failed; for one resource with its columns use `describe_resource`. \
         Example: {\"health\": [\"failed\"]} lists what failed.",
    )
};
/// Shows one resource.
pub const DESCRIBE_RESOURCE: Tool = Tool {
    fixed: &[("include", "columns")],
    ..tool(
        "describe_resource",
        Effect::Reads,
        WHOLE,
        "Shows one resource: health, refs, files, error, last run, and for a model its table with columns and types. \
         For the measures of a metrics view use `describe_metrics`. Example: {\"kind\": \"model\", \"name\": \"orders\"}.",
    )
};
/// Lists metrics views.
pub const LIST_METRICS: Tool = tool(
    "list_metrics",
    Effect::Reads,
    WHOLE,
    "Lists the metrics views that you may ask: named measures over one table, with what each is about. Use it first for any \
     question about numbers; then `describe_metrics`. Takes nothing. Example: {}.",
);
/// Describes a metrics view.
pub const DESCRIBE_METRICS: Tool = tool(
    "describe_metrics",
    Effect::Reads,
    WHOLE,
    "Describes a metrics view: dimensions and measures with types, formats and meaning, the first and last time, the smallest \
     grain, and `examples` that run as they stand in `query_metrics`. Ask it before the first question to a view. \
     Example: {\"view\": \"sales\"}.",
);
/// Asks a metrics view.
pub const QUERY_METRICS: Tool = tool(
    "query_metrics",
    Effect::Reads,
    ROWS,
    "Answers a question to a metrics view, as `query` or `sql`; names are those of `describe_metrics`. Prefer it to `query_sql`. \
     Days are of UTC unless `time_zone` says. Example: {\"view\": \"sales\", \"query\": {\"measures\": [{\"name\": \"revenue\"}], \
     \"time_range\": {\"expression\": \"2024-07\"}}, \"where\": \"country = 'DE'\"}, {\"view\": \"sales\", \"sql\": \"SELECT country, revenue FROM sales\"}.",
);
/// Lists APIs.
pub const LIST_APIS: Tool = tool(
    "list_apis",
    Effect::Reads,
    WHOLE,
    "Lists the project's APIs: prepared questions with arguments and what each is about. Use one by `call_api` where it fits \
     the question better than a metrics view. Takes nothing. Example: {}.",
);
/// Calls an API.
pub const CALL_API: Tool = tool(
    "call_api",
    Effect::Reads,
    ROWS,
    "Calls one of the project's APIs, a prepared question, and returns its rows. `arguments` are those that `list_apis` names. \
     Example: {\"name\": \"top_customers\", \"arguments\": {\"country\": \"DE\"}}.",
);
/// Tells of past runs of a resource.
pub const HISTORY: Tool = tool(
    "history",
    Effect::Reads,
    RUNS,
    "Tells of past runs of one resource, the latest first: when, how long, outcome, cause. Use it for what happened; for why \
     something is not running now use `explain`. Example: {\"kind\": \"model\", \"name\": \"orders\", \"limit\": 5}.",
);
/// Lists mistakes in files.
pub const DIAGNOSTICS: Tool = tool(
    "diagnostics",
    Effect::Reads,
    WHOLE,
    "Lists the mistakes in the project's files with file, line, code and hint, as last read. It knows nothing of errors while \
     running: `list_resources` with {\"health\": [\"failed\"]} has those. Takes nothing. Example: {}.",
);
/// Explains a resource.
pub const EXPLAIN: Tool = tool(
    "explain",
    Effect::Reads,
    WHOLE,
    "Tells why a resource failed, waits or is blocked, the root cause first, with the file and line of the error where there \
     is one. Ask it of the resource that `list_resources` shows as failed. Example: {\"kind\": \"model\", \"name\": \"orders\"}.",
);
/// Shows log lines.
pub const LOGS: Tool = tool(
    "logs",
    Effect::Reads,
    "ask with a smaller `limit`, or a later `since`",
    "Shows what runs of one resource said, the latest lines. Use it when `explain` is not enough. \
     Example: {\"kind\": \"model\", \"name\": \"orders\", \"limit\": 20}.",
);
/// Works out a run.
pub const PLAN: Tool = tool(
    "plan",
    Effect::Reads,
    NAMES,
    "Works out what a run would build, rename or drop, and changes nothing. Use it before `run` to see the reach of an edit. \
     Example: {\"select\": [\"orders+\"]} for a model and what reads it.",
);
/// Runs the project.
pub const RUN: Tool = tool(
    "run",
    Effect::Builds,
    WORK,
    "Brings the project up to date, or what `select` chooses: builds what an edit touched and what failed. Waits up to a minute, \
     then returns an id for `get_request`. Example: {\"select\": [\"orders+\"]}.",
);
/// Reconciles a resource.
pub const RECONCILE: Tool = tool(
    "reconcile",
    Effect::Builds,
    WORK,
    "Looks at one resource again and does only the work that is due; its errors come back. For the same work again although \
     nothing changed use `refresh`. Example: {\"kind\": \"model\", \"name\": \"orders\"}.",
);
/// Refreshes a resource.
pub const REFRESH: Tool = tool(
    "refresh",
    Effect::Builds,
    WORK,
    "Does the work of one resource again although nothing changed: reads a source anew, builds a table anew. May be dear; \
     `reconcile` does only what is due. Example: {\"kind\": \"model\", \"name\": \"orders\", \"downstream\": true}.",
);
/// Retries failed work.
pub const RETRY: Tool = tool(
    "retry",
    Effect::Builds,
    WORK,
    "Tries again now what failed of one resource, as when a server was away. It does not mend a mistake in a file: edit the \
     file for that. Example: {\"kind\": \"model\", \"name\": \"orders\"}.",
);
/// Tells what came of a request.
pub const GET_REQUEST: Tool = tool(
    "get_request",
    Effect::Reads,
    WORK,
    "Waits up to a minute for work that `run`, `write_file` and the like set going, and tells how it ended: what failed, the \
     root cause first. Ask again while `state` is `running`. Example: {\"id\": \"0198...\"}.",
);
/// Asks in SQL.
pub const QUERY_SQL: Tool = tool(
    "query_sql",
    Effect::Reads,
    ROWS,
    "Runs one SELECT (DuckDB) over the project's tables. For numbers that a metrics view has, ask `query_metrics`: its measures \
     are defined. Files and other databases are refused. \
     Example: {\"sql\": \"SELECT country, count(*) FROM orders GROUP BY country\"}.",
);
/// Shows rows.
pub const SHOW_ROWS: Tool = tool(
    "show_rows",
    Effect::Reads,
    ROWS,
    "Shows the first rows of a model's table, to see what values look like. To count or filter use `query_sql`. \
     Example: {\"kind\": \"model\", \"name\": \"orders\", \"limit\": 5}.",
);
/// Lists files.
pub const LIST_FILES: Tool = tool(
    "list_files",
    Effect::Reads,
    FILES,
    "Lists the project's files with size, ETag and the resources that each declares. To read one use `read_file`. \
     Takes nothing. Example: {}.",
);
/// Reads a file.
pub const READ_FILE: Tool = tool(
    "read_file",
    Effect::Reads,
    FILES,
    "Reads one file of the project: text and ETag, which `write_file` needs. Paths are those of `list_resources` and \
     `list_files`. Example: {\"path\": \"models/orders.sql\"}; `from_line` goes on in a long one.",
);
/// Checks unsaved texts.
pub const CHECK_FILES: Tool = tool(
    "check_files",
    Effect::Reads,
    FILES,
    "Judges texts as if they were saved, and changes nothing: all mistakes of the project with them in place, but for names of \
     tables and columns that the engine alone knows, which the build looks up. Try an edit here before `write_file`; null is a file deleted. Example: {\"files\": {\"models/orders.sql\": \"SELECT 1 AS id\"}}.",
);
/// Writes a file.
pub const WRITE_FILE: Tool = tool(
    "write_file",
    Effect::Replaces,
    FILES,
    "Writes one whole file. To replace one, give the `etag` that `read_file` returned; without it a new file is made. Answers \
     with the file's mistakes and `request`, which `get_request` follows until all that it set going is done. \
     Example: {\"path\": \"models/a.sql\", \"text\": \"SELECT 1 AS id\"}.",
);
/// Renames a file.
pub const RENAME_FILE: Tool = tool(
    "rename_file",
    Effect::Replaces,
    FILES,
    "Renames one file; its table is renamed with it and nothing is built anew. `etag` is that of `read_file`. \
     Example: {\"from\": \"models/a.sql\", \"to\": \"models/b.sql\", \"etag\": \"...\"}.",
);
/// Deletes a file.
pub const DELETE_FILE: Tool = tool(
    "delete_file",
    Effect::Replaces,
    FILES,
    "Deletes one file, and with it what it declares; its table goes to the trash. `etag` is that of `read_file`. \
     Example: {\"path\": \"models/old.sql\", \"etag\": \"...\"}.",
);
