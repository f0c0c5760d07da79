//! The stable codes of findings.

use super::Severity;

macro_rules! codes {
    ($(#[doc = $doc:literal] $variant:ident = $severity:ident $code:literal),+ $(,)?) => {
        /// What a finding is. Codes are stable: scripts may lean on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = $doc] $variant,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$variant),+];

            /// The code as documents write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $code,)+
                }
            }

            /// How bad a finding of this code is.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Code::$variant => Severity::$severity,)+
                }
            }

            /// What it means, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Code::$variant => $doc.trim_ascii(),)+
                }
            }
        }
    };
}

codes! {
    /// The project has no manifest: neither `rill.yaml` nor `watershed.yaml` stands at its root.
    ManifestMissing = Error "manifest-missing",
    /// The project has two manifests.
    ManifestTwice = Error "manifest-twice",
    /// The project has more files than are compiled; nothing is.
    TooManyFiles = Error "too-many-files",
    /// The file is larger than 128 KiB.
    FileTooLarge = Error "file-too-large",
    /// The file is not UTF-8 text.
    NotUtf8 = Error "not-utf8",
    /// A folder has the name of a project file.
    IsFolder = Error "is-folder",
    /// A symbolic link leads back to a folder above it.
    LinkLoop = Error "link-loop",
    /// The system refused to read the file.
    Unreadable = Error "unreadable",

    /// The YAML can't be read.
    YamlSyntax = Error "yaml-syntax",
    /// A tab indents YAML.
    YamlTab = Error "yaml-tab",
    /// The YAML is nested too deeply, or its aliases stand for too much.
    YamlLimit = Error "yaml-limit",
    /// A mapping has one key twice.
    DuplicateKey = Error "duplicate-key",
    /// The file holds several YAML documents; only the first is read.
    SeveralDocuments = Warning "several-documents",
    /// A template stands in YAML without quotes; it is read as the text that it is.
    UnquotedTemplate = Hint "unquoted-template",

    /// Both a `.yaml` and a `.yml` file of one name exist; the second is not read.
    YamlTwice = Error "yaml-twice",
    /// The file is not used because of an error in the file that belongs to it.
    CompanionError = Error "companion-error",
    /// SQL stands both under the key `sql` and in a `.sql` file of the same name.
    SqlTwice = Error "sql-twice",

    /// The key is not known where only known keys are allowed.
    UnknownKey = Error "unknown-key",
    /// The key is not known and much like a known one.
    MisspelledKey = Warning "misspelled-key",
    /// A value has another type than the key takes.
    WrongType = Error "wrong-type",
    /// A value is not one that the key takes.
    InvalidValue = Error "invalid-value",
    /// A name is none of the fields that are meant.
    UnknownField = Error "unknown-field",
    /// A key that is needed is not there.
    MissingKey = Error "missing-key",
    /// Keys that exclude one another are there.
    ConflictingKeys = Error "conflicting-keys",
    /// An annotation that takes a value has none.
    EmptyAnnotation = Warning "empty-annotation",
    /// The key has a newer name.
    DeprecatedKey = Hint "deprecated-key",

    /// The kind of resource is not one that is known.
    UnknownKind = Error "unknown-kind",
    /// The file does not say what kind of resource it declares, and its folder does not tell.
    NoKind = Error "no-kind",
    /// The kind of resource is recognised and does nothing yet.
    NotSupportedYet = Warning "not-supported-yet",
    /// The kind of resource is kept and does nothing here.
    DoesNothing = Warning "does-nothing",
    /// The name of a resource can't be used.
    InvalidName = Error "invalid-name",
    /// Another resource of the same kind has this name.
    NameCollision = Error "name-collision",
    /// A ref names a resource that no file declares.
    MissingRef = Error "missing-ref",
    /// A ref is not written as refs are.
    InvalidRef = Error "invalid-ref",
    /// The resource reads, in the end, itself.
    Cycle = Error "cycle",
    /// No connector has this name.
    UnknownConnector = Error "unknown-connector",

    /// A template can't be read.
    TemplateSyntax = Error "template-syntax",
    /// A template reads a variable that is not set.
    UnknownVariable = Warning "unknown-variable",
    /// A variable can't have this name or value.
    InvalidVariable = Error "invalid-variable",
    /// A line of an `.env` file can't be read.
    EnvSyntax = Error "env-syntax",
    /// The engine can't parse the SQL.
    SqlSyntax = Error "sql-syntax",
    /// A model's SQL holds several statements.
    SeveralStatements = Error "several-statements",
    /// A model's SQL is a statement that yields no rows.
    NotAQuery = Error "not-a-query",
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_distinct() {
        let distinct: BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(distinct.len(), Code::ALL.len());
    }

    #[test]
    fn the_page_of_codes_lists_every_code_and_no_other() {
        let page = include_str!("../../../docs/diagnostics.md");
        let written: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<_> = Code::ALL
            .iter()
            .map(|code| {
                format!(
                    "| `{}` | {} | {} |",
                    code.as_str(),
                    code.severity().as_str(),
                    code.meaning()
                )
            })
            .collect();
        assert_eq!(written, expected, "docs/diagnostics.md should hold these lines");
    }
}
