//! The nesting of JSON, and where it ends.

/// The most levels of values whose types become those of columns. The engine's work for a column grows by the cube of its
/// levels when the file is written, and each level is a part of the name of a type.
pub const MOST_COLUMN_LEVELS: usize = 128;

/// The most levels of values of which only some become columns: a fifth of what a thread of ours was seen to survive.
pub const MOST_LEVELS: usize = 1_000;

/// The levels at a place of a file.
#[derive(Debug, Default)]
pub(super) struct Levels {
    open: usize,
    state: State,
    /// The first byte that is no blank.
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
    /// Goes on through a piece of the file. Returns true where there are more levels than allowed.
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

    /// Returns the line on which the file ends, if that is within the array that the file begins with. The engine tells of other
    /// values without an end, and takes such an array for whole behind each comma.
    pub(super) fn cut_off_at(&self) -> Option<u32> {
        let is_cut_off = self.first == Some(b'[') && self.open > 0;
        is_cut_off.then(|| self.lines.saturating_add(1))
    }
}
