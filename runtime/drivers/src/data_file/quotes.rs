//! Detection of quotes in the first rows of a CSV file.

/// The engine's default number of rows for detecting a CSV format.
pub const SAMPLE_ROWS: u64 = 20_480;

/// The quoting at the beginning of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// A value is in quotes, from which the engine detects the kind of quote.
    Quoted,
    /// No value is in quotes, so later values may be quoted in the usual way.
    Plain,
    /// The file's byte order mark says UTF-16.
    Utf16,
    /// The file can't be examined.
    Unknown,
}

/// A scanner that stops at the first quoted value.
pub(super) struct Quotes<'a> {
    rows_left: u64,
    delimiters: &'a [u8],
    state: State,
    has_quotes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the value, apart from whitespace.
    Before,
    /// Behind the first byte of the value.
    Within,
    /// Behind an apostrophe at the beginning of the value.
    AfterApostrophe,
    /// Behind an apostrophe that may end the value.
    Closing,
}

impl<'a> Quotes<'a> {
    pub(super) fn new(rows: u64, delimiters: &'a [u8]) -> Self {
        Self {
            rows_left: rows,
            delimiters,
            state: State::Before,
            has_quotes: false,
        }
    }

    /// Scans another piece of the file. Returns true once the result is certain.
    pub(super) fn end_with(&mut self, piece: &[u8]) -> bool {
        for &byte in piece {
            let is_line_end = byte == b'\n';
            let ends_value = is_line_end || byte == b'\r' || self.delimiters.contains(&byte);
            self.state = match (self.state, byte) {
                // An apostrophe is a quote where another one ends the value: 's-Hertogenbosch is a town.
                (State::Closing, _) if ends_value => {
                    self.has_quotes = true;
                    return true;
                }
                // Between apostrophes a delimiter is a part of the value.
                (State::AfterApostrophe, _) if ends_value && !is_line_end => State::AfterApostrophe,
                (_, _) if ends_value => State::Before,
                (State::Before, b' ' | 0) => State::Before,
                (State::Before, b'"') => {
                    self.has_quotes = true;
                    return true;
                }
                (State::Before, b'\'') => State::AfterApostrophe,
                (State::AfterApostrophe | State::Closing, b'\'') => State::Closing,
                (State::AfterApostrophe | State::Closing, _) => State::AfterApostrophe,
                (State::Before | State::Within, _) => State::Within,
            };
            if is_line_end {
                self.rows_left = self.rows_left.saturating_sub(1);
                if self.rows_left == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the result of the scan.
    pub(super) fn found(&self) -> Beginning {
        match self.has_quotes || self.state == State::Closing {
            true => Beginning::Quoted,
            false => Beginning::Plain,
        }
    }
}
