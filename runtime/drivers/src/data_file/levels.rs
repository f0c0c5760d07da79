//! Nesting levels of JSON, and detection of a truncated end.

/// The most nesting levels of values whose types become columns' types. The engine's cost per column grows with the
/// cube of the levels, and each level is part of a type's name.
pub const MOST_COLUMN_LEVELS: usize = 128;

/// The most nesting levels of values of which only some become columns: a fifth of the number that one of our threads
/// was seen to survive.
pub const MOST_LEVELS: usize = 1_000;

/// Nesting state at a position in a JSON file.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: usize,
    state: State,
    /// The first byte that is not whitespace; none before it.
    first: Option<u8>,
    lines: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    InText,
    Escaped,
}

impl Levels {
    /// Scans another piece of the file. Returns true if the nesting exceeds `most`.
    pub(super) fn exceed(&mut self, piece: &[u8], most: usize) -> bool {
        for byte in piece {
            if self.first.is_none() && !byte.is_ascii_whitespace() {
                self.first = Some(*byte);
            }
            self.lines = self.lines.saturating_add(u32::from(*byte == b'\n'));
            self.state = match (self.state, byte) {
                (State::Outside, b'"') => State::InText,
                (State::Outside, b'{' | b'[') => {
                    self.open += 1;
                    if self.open > most {
                        return true;
                    }
                    State::Outside
                }
                (State::Outside, b'}' | b']') => {
                    self.open = self.open.saturating_sub(1);
                    State::Outside
                }
                // No text goes beyond its line: one that is not closed hides nothing that follows.
                (State::InText, b'"' | b'\n') => State::Outside,
                (State::InText, b'\\') => State::Escaped,
                (State::Escaped, _) => State::InText,
                (state, _) => state,
            };
        }
        false
    }

    /// Returns the last line of a file that ends within its top-level array; none otherwise. The engine reports other
    /// values without an end, but takes such an array as complete at each comma.
    pub(super) fn cut_off_at(&self) -> Option<u32> {
        let is_cut_off = self.first == Some(b'[') && self.open > 0;
        is_cut_off.then(|| self.lines.saturating_add(1))
    }
}
