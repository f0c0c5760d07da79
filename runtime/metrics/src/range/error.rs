//! Reasons why a text is no time range, or a range can't be resolved.

/// The reason why a text can't be parsed as a time range, or a range can't be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text does not follow the grammar.
    #[error("\"{text}\" is no range of time: expected {expected} at \"{rest}\"", rest = rest(text, *at))]
    Syntax {
        /// The whole invalid text.
        text: String,
        /// The byte offset of the error.
        at: usize,
        /// A description of what may stand there.
        expected: &'static str,
    },
    /// No time zone has the given name.
    #[error("unknown time zone \"{name}\"")]
    UnknownZone {
        /// The name of the zone as given.
        name: String,
    },
    /// The range exceeds the representable years.
    #[error("the range leaves the years that can be represented")]
    OutOfRange,
    /// The part does not exist in its whole, such as the 31st day of a February.
    #[error("there is no {ordinal} in the {whole}")]
    NoSuchPart {
        /// The part, such as `D31`.
        ordinal: String,
        /// The whole, such as `month`.
        whole: &'static str,
    },
    /// The range refers to a point that only data has, and there is no data.
    #[error("without data there is no {point}")]
    NoData {
        /// The name of the point: `earliest`, `latest` or `watermark`.
        point: &'static str,
    },
    /// Keys of a range exclude each other, or a key needs another one; holds the message.
    #[error("{0}")]
    Keys(&'static str),
}

/// Returns the rest of a text from a position on, for a message.
fn rest(text: &str, at: usize) -> &str {
    match text.get(at..) {
        Some("") | None => "the end",
        Some(rest) => rest,
    }
}
