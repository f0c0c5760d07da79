//! The quotes in the first rows of a CSV file.

/// The rows that the engine guesses from, unless it is told otherwise.
pub const SAMPLE_ROWS: u64 = 20_480;

/// The beginning of a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// There is a value in quotes: the engine sees in which.
    Quoted,
    /// There is none, so whatever follows may be quoted in the usual way.
    Plain,
    /// It is in UTF-16, by its mark.
    Utf16,
    /// It can't be looked into.
    Unknown,
}

/// The rows of a file, looked at until one has a value in quotes.
pub(super) struct Quotes<'a> {
    rows_left: u64,
    delimiters: &'a [u8],
    state: State,
    has_quotes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing of the value was seen, but for blanks.
    Before,
    /// Behind its first byte.
    Within,
    /// Behind an apostrophe that it begins with.
    AfterApostrophe,
    /// Behind an apostrophe that may end it.
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

    /// Goes on through a piece of the file. Returns whether nothing behind it counts.
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

    /// Returns what the rows have.
    pub(super) fn found(&self) -> Beginning {
        match self.has_quotes || self.state == State::Closing {
            true => Beginning::Quoted,
            false => Beginning::Plain,
        }
    }
}
