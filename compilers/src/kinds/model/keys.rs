//! The keys of models and sources.

use crate::{
    blocks::{data::DATA, schedule::REFRESH},
    yaml::{Key, keys::blocks},
};

/// The ways in which new rows are merged into a table.
pub(super) const STRATEGIES: [&str; 4] = ["append", "merge", "overwrite", "partition_overwrite"];

/// The formats in which a model may export files.
pub(super) const FILE_FORMATS: [&str; 3] = ["csv", "json", "parquet"];

/// The compressions of output files.
pub(super) const COMPRESSIONS: [&str; 5] = ["none", "gzip", "zstd", "snappy", "uncompressed"];

/// The ways to treat columns of new rows that the table lacks.
pub(super) const SCHEMA_CHANGES: [&str; 3] = ["fail", "ignore", "append_new_columns"];

/// Keys of SQL that runs around a build, in the order in which it runs.
pub(super) const HOOKS: [&str; 3] = ["init_queries", "pre_exec", "post_exec"];

/// Keys of an output that concern its table.
const INTO_TABLE: &[Key] = OUTPUT.own;
const INTO_FILES: &[Key] = FILES.own;

blocks! {
    /// Keys of a model. Other keys are settings of its input.
    pub(crate) static MODEL = "model" Kept {
        "sql": Sql, "The query whose rows the model holds.";
        "connector": Text, "The connector that the rows come from.";
        "refresh": Block(&REFRESH), "When the model is built again without an edit.";
        "timeout": Duration, "How long a build may take.";
        "materialize": Bool, "Whether the model is a table (true) or a view (false).";
        "incremental": Bool, "Whether builds add to the rows that are there.";
        "protect": Bool, "Whether an edit waits for approval before it throws the rows away; so it is for incremental models.";
        "change_mode": Word(&["reset", "manual", "patch"]), "What a changed definition does to the rows that are there.";
        "state": Block(&DATA), "What yields the state that incremental builds see.";
        "partitions": Block(&DATA), "What yields the partitions.";
        "splits": Block(&DATA), "What yields the partitions." => "partitions";
        "partitions_watermark": Text, "The column of the partitions that says how fresh one is.";
        "partitions_concurrency": Count, "How many partitions are built at once.";
        "stage": Any, "The connector that rows are staged in, and its settings.";
        "output": Either(&[Text, Block(&WRITTEN)]), "The connector that rows are written to, or a mapping with `connector` and its settings.";
        "retry": Block(&RETRY), "How a failed build is tried again.";
        "tests": List(&Block(&TEST)), "Checks of the rows.";
        "freshness": Block(&FRESHNESS), "How old the rows may become.";
        "unit_tests": List(&Block(&UNIT_TEST)), "Checks of the query: the rows that it yields from given ones.";
        "defined_as_source": Bool, "Whether the model is shown as a source.";
        "pre_exec": Texts, "SQL that is run before each build, on its connection.";
        "post_exec": Texts, "SQL that is run after each build, on its connection.";
        "init_queries": Texts, "SQL that is run before `pre_exec`.";
        "path": Any, "The file or files that are read.";
        "uri": Any, "The place of the files that are read.";
        "format": Text, "The format of the files.";
        "args": Map(&Any), "Arguments of the query.";
        "create_secrets_from_connectors": Texts, "Connectors whose secrets the engine may use.";
        "db": Text, "The database file that is read.";
        "dsn": Text, "How to reach the database.";
        "duckdb": Map(&Any), "Options of the engine's readers of files.";
        "description": Text, "What the model is about.";
        "invalidate_on_change": Bool, "Whether the model is built again when its local files change.";
        "database_url": Text, "How to reach the database.";
        "glob": Any, "Bounds of what a pattern of files may match.";
        "extract": Any, "How much of the files is read.";
        "batch_size": Any, "How much is read at once.";
        "region": Text, "The region of the store.";
        "endpoint": Text, "The address of the store.";
        "project_id": Text, "The project that is charged.";
        "table": Text, "The table that is read.";
    }

    /// Keys of an output. The connector decides which of them apply; other keys are passed on.
    static WRITTEN = "output" Kept + INTO_TABLE + INTO_FILES {
        "connector": Name("connector"), "The connector that rows are written to.";
        "table": Text, "The table that holds the rows, if it has another name than the model.";
        "materialize": Bool, "Whether the model is a table (true) or a view (false).";
        "pre_exec": Texts, "SQL that is run before each build, on its connection.";
        "post_exec": Texts, "SQL that is run after each build, on its connection.";
        "init_queries": Texts, "SQL that is run before `pre_exec`.";
    }

    /// Keys of an output that say how rows are written to its table.
    pub(crate) static OUTPUT = "output_table" Kept {
        "incremental_strategy": Word(&STRATEGIES), "What new rows do to those that are there.";
        "unique_key": Texts, "The column, or several, whose values no two rows share.";
        "partition_by": Text, "The expression whose value tells the groups of rows apart that new ones take the place of.";
        "order_by": Texts, "The order in which rows of a table are written, as ORDER BY takes it.";
        "on_schema_change": Word(&SCHEMA_CHANGES), "What becomes of columns of new rows that the table does not have.";
    }

    /// Keys of an output that is written to files.
    pub(crate) static FILES = "output_files" Kept {
        "path": Text, "The file, or with `partition_by` the folder, that the rows are written to.";
        "format": Word(&FILE_FORMATS), "The form of the files; if not said, the ending of the path tells.";
        "partition_by": Texts, "The columns whose values name folders, each of which holds the rows that have them.";
        "header": Bool, "Whether names of columns stand first in CSV.";
        "delimiter": Text, "The text between values in CSV.";
        "compression": Word(&COMPRESSIONS), "How the files are compressed.";
    }

    /// Keys of the block `retry`.
    pub(crate) static RETRY = "retry" Refused {
        "attempts": Count, "Attempts in all; 0 disables retries.";
        "delay": Duration, "How long to wait before the second attempt.";
        "exponential_backoff": Bool, "Whether the wait doubles after each attempt.";
        "if_error_matches": Texts, "Patterns of the errors that are tried again.";
    }

    /// Keys of the test `accepted_values`.
    pub(crate) static ACCEPTED = "accepted_values" Refused {
        "column": Text, "The column.";
        "values": List(&Any), "Its values.";
    }

    /// Keys of the test `relationships`.
    pub(crate) static RELATED = "relationships" Refused {
        "column": Text, "The column.";
        "to": Name("model"), "The model whose rows are referred to.";
        "field": Text, "The column there; if not said, one of the same name.";
    }

    /// Keys of the block `freshness`.
    pub(crate) static FRESHNESS = "freshness" Refused {
        "warn": Duration, "The age from which there is a warning.";
        "error": Duration, "The age from which the model is stale, which is an error.";
    }

    /// Keys that each unit test of a model accepts.
    pub(crate) static UNIT_TEST = "unit_test" Refused {
        "name": Text, "The test's name, unique in its model.";
        "given": Map(&Either(&[List(&Map(&Any)), Block(&ROWS)])), "The rows of each table that the query reads, by its name.";
        "expect": Either(&[List(&Map(&Any)), Block(&ROWS)]), "The rows that come out, in any order; columns that are not said are not compared.";
        "severity": Word(&["error", "warn"]), "Whether a failure throws the new rows away.";
    }

    /// Keys of a unit test's rows, if these are not given as a list.
    pub(crate) static ROWS = "rows" Refused {
        "rows": List(&Map(&Any)), "The rows, each by column.";
        "types": Map(&Text), "Types of columns, where the values do not say them.";
        "csv": Text, "A file of rows, relative to the project.";
        "sql": Sql, "A query that yields the rows.";
    }

    /// Keys that each data test of a model accepts.
    pub(crate) static TEST = "test" Refused {
        "name": Text, "The test's name, unique in its model.";
        "assert": Sql, "A condition that holds for every row.";
        "sql": Sql, "A query that yields the rows that should not be there.";
        "unique": Texts, "A column, or several, whose values no two rows share.";
        "not_null": Texts, "A column, or several, that have a value in every row.";
        "accepted_values": Block(&ACCEPTED), "A column that holds no other values than these.";
        "relationships": Block(&RELATED), "A column whose values are those of another model.";
        "severity": Word(&["error", "warn"]), "Whether a failure throws the new rows away.";
        "store_failures": Either(&[Bool, Count]), "Whether the rows that fail are kept for people, or how many of them at most.";
        "connector": Text, "The connector that the query runs on.";
        "metrics_sql": Sql, "A query over metrics views.";
        "metrics": Map(&Any), "A query over a metrics view, as a mapping.";
        "api": Name("api"), "An API that yields the rows.";
        "args": Map(&Any), "Arguments of the API.";
        "glob": Any, "Files that yield the rows.";
        "resource_status": Any, "Resources by their status.";
        "ai": Any, "A question to an assistant.";
    }
}
