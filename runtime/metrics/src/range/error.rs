//! Reasons for which a text is no range of time, or a range has no instants.

/// The error of a text that does not parse, or of an expression that cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text does not follow the grammar.
    #[error("\"{text}\" is no range of time: expected {expected} at \"{rest}\"", rest = rest(text, *at))]
    Syntax {
        /// The text as it was given.
        text: String,
        /// The place, as a number of bytes from its beginning.
        at: usize,
        /// Words for what may stand there.
        expected: &'static str,
    },
    /// A zone that the list of zones lacks.
    #[error("unknown time zone \"{name}\"")]
    UnknownZone {
        /// The name as it was given.
        name: String,
    },
    /// The range leaves the years that can be represented.
    #[error("the range leaves the years that can be represented")]
    OutOfRange,
    /// A part that its whole lacks, as the 31st day of a February.
    #[error("there is no {ordinal} in the {whole}")]
    NoSuchPart {
        /// The part, such as `D31`.
        ordinal: String,
        /// The whole, such as `month`.
        whole: &'static str,
    },
    /// A point that only data has, in a table without any.
    #[error("without data there is no {point}")]
    NoData {
        /// `earliest`, `latest` or `watermark`.
        point: &'static str,
    },
    /// Keys of a range that exclude each other, or of which one needs another.
    #[error("{0}")]
    Keys(&'static str),
}

/// Returns what follows a place in a text, for a message.
fn rest(text: &str, at: usize) -> &str {
    match text.get(at..) {
        Some("") | None => "the end",
        Some(rest) => rest,
    }
}
