//! The stable codes of findings, with severity, meaning, example and fix.
//!
//! Each code has one entry here: how bad it is, what it means, an example, and what to do. `docs/diagnostics.md` is made
//! of them (`WATERSHED_BLESS=1` writes the page anew).

use super::Severity;

macro_rules! codes {
    ($($variant:ident = $severity:ident $code:literal {
        meaning: $meaning:literal,
        example: $example:literal,
        fix: $fix:literal,
    })+) => {
        /// The code of a finding. Codes are stable, so scripts may depend on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)+
        }

        impl Code {
            /// All diagnostic codes, in the order of their declaration.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// Returns the code as documents write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)+
                }
            }

            /// Returns the severity of findings with this code.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$variant => Severity::$severity,)+
                }
            }

            /// Returns the meaning of the code, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Code::$variant => $meaning,)+
                }
            }

            /// Returns an example that causes the finding.
            pub const fn example(self) -> &'static str {
                match self {
                    $(Code::$variant => $example,)+
                }
            }

            /// Returns the advice on how to fix the finding.
            pub const fn fix(self) -> &'static str {
                match self {
                    $(Code::$variant => $fix,)+
                }
            }
        }
    };
}

codes! {
    ManifestMissing = Error "manifest-missing" {
        meaning: "The project has no manifest: neither `rill.yaml` nor `watershed.yaml` stands at its root.",
        example: "a folder with `models/` and no `watershed.yaml`",
        fix: "Add a file `watershed.yaml` at the project's root. It may be empty.",
    }
    ManifestTwice = Error "manifest-twice" {
        meaning: "The project has two manifests.",
        example: "rill.yaml and watershed.yaml in one folder",
        fix: "Keep one of them.",
    }
    EngineLacks = Error "engine-lacks" {
        meaning: "The engine that models are built in lacks what the file needs.",
        example: "partitions:\n  sql: SELECT day FROM days",
        fix: "Leave it out, or name an engine that has it as `olap_connector`. `watershed status --engine` says what an engine has.",
    }
    TooManyFiles = Error "too-many-files" {
        meaning: "The project has more than 20,000 files; nothing is compiled.",
        example: "a project at the root of a home folder",
        fix: "List folders that are no part of the project under `ignore_paths` in the manifest.",
    }
    FileTooLarge = Error "file-too-large" {
        meaning: "The file is larger than 128 KiB.",
        example: "models/rows.sql of 10 MB, which holds rows as VALUES",
        fix: "Split the file. Rows of data belong into a CSV or Parquet file that a model reads.",
    }
    NotUtf8 = Error "not-utf8" {
        meaning: "The file is not UTF-8 text.",
        example: "models/a.sql in Latin-1",
        fix: "Save the file as UTF-8.",
    }
    IsFolder = Error "is-folder" {
        meaning: "A folder has the name of a project file.",
        example: "models/daily.sql/",
        fix: "Rename the folder.",
    }
    NotAFile = Error "not-a-file" {
        meaning: "A named pipe, a socket or a device has the name of a project file. It is never opened.",
        example: "mkfifo models/daily.sql",
        fix: "Put a regular file in its place.",
    }
    LinkLoop = Error "link-loop" {
        meaning: "A symbolic link leads back to a folder above it.",
        example: "models/again, a link to models",
        fix: "Remove the link.",
    }
    Unreadable = Error "unreadable" {
        meaning: "The system refused to read the file.",
        example: "chmod 000 models/daily.sql",
        fix: "Give the user that runs Watershed the right to read the file.",
    }
    YamlSyntax = Error "yaml-syntax" {
        meaning: "The YAML can't be read.",
        example: "measures: [a, b",
        fix: "Close brackets and quotes, and indent the keys of one mapping alike.",
    }
    YamlTab = Error "yaml-tab" {
        meaning: "A tab indents YAML.",
        example: "measures:\n\t- name: revenue",
        fix: "Indent with spaces.",
    }
    YamlLimit = Error "yaml-limit" {
        meaning: "The YAML is nested too deeply, or its aliases stand for too much.",
        example: "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]   # and so on",
        fix: "Write out what the aliases stand for, or split the file.",
    }
    DuplicateKey = Error "duplicate-key" {
        meaning: "A mapping has one key twice.",
        example: "timeout: 60\ntimeout: 90",
        fix: "Remove one of them.",
    }
    SeveralDocuments = Warning "several-documents" {
        meaning: "The file holds several YAML documents; only the first is read.",
        example: "type: explore\n---\ntype: theme",
        fix: "Put each document into a file of its own.",
    }
    UnquotedTemplate = Hint "unquoted-template" {
        meaning: "A template stands in YAML without quotes; it is read as text.",
        example: "path: {{ .env.data }}",
        fix: "Put it into quotes: `path: '{{ .env.data }}'`.",
    }
    CommentJoined = Warning "comment-joined" {
        meaning: "The lines of a text are joined to one, so a comment in the SQL takes those after it with it.",
        example: "sql: >\n  SELECT * FROM trips -- all of them\n  WHERE distance > 0",
        fix: "Write `|` in the place of `>`, which keeps the lines, or `/* ... */` around the comment.",
    }
    YamlTwice = Error "yaml-twice" {
        meaning: "Both a `.yaml` and a `.yml` file of one name exist; the second is not read.",
        example: "models/a.yaml and models/a.yml",
        fix: "Keep one of them.",
    }
    CompanionError = Error "companion-error" {
        meaning: "The file is not used because of an error in the file of the same name.",
        example: "models/a.sql, where models/a.yaml has an error",
        fix: "Correct the other file.",
    }
    SqlTwice = Error "sql-twice" {
        meaning: "SQL stands both under the key `sql` and in a `.sql` file of the same name.",
        example: "models/a.yaml with `sql:`, and models/a.sql",
        fix: "Remove one of them.",
    }
    UnknownKey = Error "unknown-key" {
        meaning: "The key is not known where only known keys are allowed.",
        example: "type: explore\nmetrics_veiw: sales",
        fix: "Correct the key, or remove it.",
    }
    MisspelledKey = Warning "misspelled-key" {
        meaning: "The key is not known and much like a known one.",
        example: "materialise: true",
        fix: "Correct the key. A key that is meant for the input or the driver can stay.",
    }
    UnusedKey = Warning "unused-key" {
        meaning: "The key is not known, and nothing takes it: the model's own SQL is its input.",
        example: "data_tests: [unique]",
        fix: "Write the key that the hint names, or remove it.",
    }
    WrongType = Error "wrong-type" {
        meaning: "A value has another type than the key takes.",
        example: "timeout: [60]",
        fix: "Write a value of the type that the message names.",
    }
    InvalidValue = Error "invalid-value" {
        meaning: "A value is not one that the key takes.",
        example: "change_mode: sometimes",
        fix: "Write one of the values that the message or its hint names.",
    }
    UnknownField = Error "unknown-field" {
        meaning: "A name is none of the fields that are meant.",
        example: "type: explore\nmetrics_view: sales\nmeasures: [revenu]",
        fix: "Correct the name, or add the field to the metrics view.",
    }
    MissingKey = Error "missing-key" {
        meaning: "A key that is needed is not there.",
        example: "type: explore",
        fix: "Add the key that the message names.",
    }
    ConflictingKeys = Error "conflicting-keys" {
        meaning: "Keys that exclude one another are there.",
        example: "partitions: {sql: SELECT 1}\nsplits: {sql: SELECT 1}",
        fix: "Keep one of them.",
    }
    EmptyAnnotation = Warning "empty-annotation" {
        meaning: "An annotation that takes a value has none.",
        example: "-- @materialize",
        fix: "Write the value: `-- @materialize: true`.",
    }
    AnnotationIgnored = Warning "annotation-ignored" {
        meaning: "A comment looks like an annotation and is none: annotations begin at the start of a line.",
        example: "SELECT 1 -- @materialize: true",
        fix: "Put it on a line of its own, without blanks before `--`.",
    }
    ScheduleNotInDev = Hint "schedule-not-in-dev" {
        meaning: "The model has a schedule, which does not count in the environment `dev`.",
        example: "refresh: {cron: \"0 6 * * *\"}",
        fix: "Nothing, if the schedule is for production alone. `run_in_dev: true` has it count in `dev` too; `--environment prod` picks another environment.",
    }
    TestAsModel = Warning "test-as-model" {
        meaning: "A SQL file in the folder `tests` makes a model like any other, and tests nothing.",
        example: "tests/no_orders_twice.sql, as dbt's tests of one query are written",
        fix: "Write the query as a test of the model that it is about: `tests: [{sql: SELECT ...}]` fails on rows. If a model is meant, say so: `-- @type: model`.",
    }
    NoEffectYet = Warning "no-effect-yet" {
        meaning: "The key is read, and nothing acts on it yet.",
        example: "stage: {connector: files}",
        fix: "Remove the key, or mind what the message says happens instead.",
    }
    DeprecatedKey = Hint "deprecated-key" {
        meaning: "The key is an old name.",
        example: "kind: model",
        fix: "Use the key that the hint names. The old one still works.",
    }
    UnknownKind = Error "unknown-kind" {
        meaning: "The kind of resource is not known.",
        example: "type: dashbord",
        fix: "Write one of the kinds that the hint names.",
    }
    NoKind = Error "no-kind" {
        meaning: "The file does not say what kind of resource it declares, and its folder does not tell.",
        example: "metrics/sales.yaml without `type`",
        fix: "Add `type:`.",
    }
    NotSupportedYet = Warning "not-supported-yet" {
        meaning: "The kind of resource, or the driver, is recognised and can't be run yet.",
        example: "type: alert",
        fix: "Nothing needs to be done: it is checked, listed and not run.",
    }
    DoesNothing = Warning "does-nothing" {
        meaning: "The kind of resource is stored but has no effect.",
        example: "skills/x/SKILL.md",
        fix: "Nothing needs to be done.",
    }
    InvalidName = Error "invalid-name" {
        meaning: "The name of a resource can't be used.",
        example: "name: \"\"",
        fix: "Choose a name of 1 to 255 bytes without control characters.",
    }
    NameCollision = Error "name-collision" {
        meaning: "Another resource of the same kind has this name.",
        example: "models/a.sql and models/old/a.sql",
        fix: "Rename one of the files, or set `name`.",
    }
    OutputShared = Error "output-shared" {
        meaning: "Two models write the same table. The first by its path has it, and nothing is built of the other.",
        example: "models/orders.sql, and models/all_orders.yaml with output: {table: orders}",
        fix: "Give one of them another name, or another `output.table`.",
    }
    MissingRef = Warning "missing-ref" {
        meaning: "A ref names a resource that no file declares.",
        example: "refs: [model/ordres]",
        fix: "Correct the name, or add the resource: the ref then takes effect by itself.",
    }
    InvalidRef = Error "invalid-ref" {
        meaning: "A ref is not written as refs are.",
        example: "refs: [{type: model}]",
        fix: "Write `name`, `kind/name` or `{type: kind, name: name}`.",
    }
    Cycle = Error "cycle" {
        meaning: "The resource reads, in the end, itself.",
        example: "models/a.sql reads b, models/b.sql reads a",
        fix: "Break the circle. A model reads its own last rows inside `{{ if incremental }}` only.",
    }
    UnknownConnector = Error "unknown-connector" {
        meaning: "No connector has this name.",
        example: "connector: warehuose",
        fix: "Correct the name, or declare the connector in `connectors/NAME.yaml`.",
    }
    TemplateSyntax = Error "template-syntax" {
        meaning: "A template can't be read.",
        example: "SELECT {{ if dev }} 1",
        fix: "Close the block with `{{ end }}`, and call only functions that exist.",
    }
    UnknownVariable = Warning "unknown-variable" {
        meaning: "A template, or the command of a program, reads a variable that is not set.",
        example: "SELECT '{{ .env.nobody_sets_me }}'",
        fix: "Set it in `.env`, in the manifest under `env:`, or with `--env NAME=VALUE`.",
    }
    InvalidVariable = Error "invalid-variable" {
        meaning: "A variable can't have this name or value.",
        example: "env: {\"1st\": x}",
        fix: "Use letters, digits, `_` and `.` in names, and text as value.",
    }
    EnvSyntax = Error "env-syntax" {
        meaning: "A line of an `.env` file can't be read.",
        example: "NAME value",
        fix: "Write `NAME=value`.",
    }
    EnvUnset = Warning "env-unset" {
        meaning: "A value of an `.env` file names a variable that no line above sets: nothing stands in its place.",
        example: "PASSWORD=abc$DEF",
        fix: "Put the value into single quotes, or write `\\$`, if the dollar sign belongs to it. Otherwise set the variable on a line above, in the same file.",
    }
    SqlSyntax = Error "sql-syntax" {
        meaning: "The engine can't parse the SQL.",
        example: "SELECT FROM",
        fix: "Correct the SQL at the place that is shown.",
    }
    SeveralStatements = Error "several-statements" {
        meaning: "A model's SQL holds several statements.",
        example: "SELECT 1; SELECT 2",
        fix: "Put the others into models of their own, or into `pre_exec`.",
    }
    NotAQuery = Error "not-a-query" {
        meaning: "A model's SQL is a statement that yields no rows.",
        example: "CREATE TABLE a AS SELECT 1",
        fix: "Write the SELECT alone: the model makes the table.",
    }
    UnknownInput = Hint "unknown-input" {
        meaning: "The SQL reads files that are known only when it is run, so that a change of them is not noticed.",
        example: "SELECT * FROM read_csv('data/' || 'a.csv')",
        fix: "Write the path or pattern as one text, relative to the project.",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_distinct() {
        let distinct: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(distinct.len(), Code::ALL.len());
    }
}
