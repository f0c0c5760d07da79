//! The analysis of one statement: kept between processes, so that a text is parsed by the engine once.

/// The analysis of a statement's text, whatever else is in the project. Serialisable as a message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SqlAnalysis {
    /// The outcome.
    #[prost(enumeration = "Outcome", tag = "1")]
    pub outcome: i32,
    /// The engine's message, when it can't parse the statement.
    #[prost(string, tag = "2")]
    pub message: String,
    /// The place in the statement, in Unicode scalar values, when the parser can't parse it and said where.
    #[prost(uint64, optional, tag = "3")]
    pub error_at: Option<u64>,
    /// The tables that it reads, each once, in the order in which the fingerprint numbers them; no CTEs.
    #[prost(message, repeated, tag = "4")]
    pub tables: Vec<TableUse>,
    /// The paths and globs of local files that it reads.
    #[prost(string, repeated, tag = "5")]
    pub files: Vec<String>,
    /// 16 bytes that stand for the statement's meaning, with numbers in the places of tables.
    #[prost(bytes = "vec", tag = "6")]
    pub fingerprint: Vec<u8>,
    /// The number of statements.
    #[prost(uint32, tag = "7")]
    pub statements: u32,
    /// Functions, types and sequences that it names, in lower case, each once: a migration may have made them.
    #[prost(string, repeated, tag = "8")]
    pub names: Vec<String>,
    /// Calls that read files which its text alone does not tell: `read_csv('data/' || name)`.
    #[prost(string, repeated, tag = "9")]
    pub untold: Vec<String>,
}

/// The outcome of an analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
pub enum Outcome {
    /// From the engine's tree.
    Parsed = 0,
    /// From the statement's tokens: the engine has no tree for it.
    Scanned = 1,
    /// The engine can't parse it.
    Invalid = 2,
}

/// A table that a statement reads.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TableUse {
    /// The last part of its name, as written.
    #[prost(string, tag = "1")]
    pub name: String,
    /// It is qualified with another schema than `main`.
    #[prost(bool, tag = "2")]
    pub foreign: bool,
}

/// The stand-in for a table in a fingerprint: its number in the list of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableHole(pub(crate) usize);
