//! The analysis of one statement, cached so that the engine parses each text once.

/// The analysis of a statement's text by itself, stored as a message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SqlAnalysis {
    /// The [`Outcome`] of the analysis, as a number.
    #[prost(enumeration = "Outcome", tag = "1")]
    pub outcome: i32,
    /// The engine's error message, if the statement can't be parsed.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The place of a syntax error, in Unicode scalar values from the start, if the parser gave one.
    #[prost(uint64, optional, tag = "3")]
    pub error_at: Option<u64>,
    /// The tables that the statement reads, without CTEs and repetitions, in the order of their ordinals in the
    /// fingerprint.
    #[prost(message, repeated, tag = "4")]
    pub tables: Vec<TableUse>,
    /// Paths and globs of local files that the statement reads.
    #[prost(string, repeated, tag = "5")]
    pub files: Vec<String>,
    /// A 16-byte digest of the statement's meaning, with ordinals in place of tables.
    #[prost(bytes = "vec", tag = "6")]
    pub fingerprint: Vec<u8>,
    /// The number of statements in the text.
    #[prost(uint32, tag = "7")]
    pub statements: u32,
    /// Functions, types and sequences that the statement names, in lower case; migrations may create them.
    #[prost(string, repeated, tag = "8")]
    pub names: Vec<String>,
    /// Calls that read files which the text alone does not determine, such as `read_csv('data/' || name)`.
    #[prost(string, repeated, tag = "9")]
    pub untold: Vec<String>,
}

/// The way in which a statement was analysed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum Outcome {
    /// The analysis comes from the engine's parse tree.
    Parsed = 0,
    /// The analysis comes from the statement's tokens, as the engine has no tree for it.
    Scanned = 1,
    /// The engine can't parse the statement.
    Invalid = 2,
}

/// A table that a statement reads.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TableUse {
    /// The last part of the table's name, as written.
    #[prost(string, tag = "1")]
    pub name: String,
    /// True if the name is qualified with a schema other than `main`.
    #[prost(bool, tag = "2")]
    pub foreign: bool,
}

/// The ordinal that stands for a table in a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableHole(pub(crate) usize);
