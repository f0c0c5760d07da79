//! Detection of a row with another number of values than all others, among the first rows of a CSV file.
//!
//! The engine guesses from these rows how a file is written, and prefers a guess by which all rows that are left have equally
//! many values: because of one row that does not fit it leaves out all before that row, or takes each line for one value.

/// A row that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uneven {
    /// Line on which the row begins, from 1.
    pub line: u32,
    /// Number of values in the first row, and in most others.
    pub expected: u32,
    /// Number of values in this row.
    pub found: u32,
}

/// Delimiters that the engine tries when it guesses.
const DELIMITERS: [u8; 4] = *b",;|\t";

/// A scanner that counts delimiters by row.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    row: Row,
    line: u32,
    state: State,
    /// True if something is written in a way that this scanner does not read.
    is_unknown: bool,
}

/// The number of each delimiter outside of quotes, and the line on which the row begins.
#[derive(Default, Clone, Copy)]
struct Row {
    line: u32,
    counts: [u32; DELIMITERS.len()],
    last: u8,
    has_values: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The beginning of a value.
    #[default]
    Before,
    Within,
    Quoted,
}

impl Rows {
    /// Scans another piece of the file. Returns true once the given number of rows is known.
    pub(super) fn end_with(&mut self, piece: &[u8], most: u64) -> bool {
        for &byte in piece {
            self.line += u32::from(byte == b'\n');
            match (self.state, byte) {
                (State::Quoted, b'"') => self.state = State::Within,
                (State::Quoted, _) => {}
                // Behind a quote that ended, another one is a part of the value.
                (State::Within, b'"') if self.row.last == b'"' => self.state = State::Quoted,
                (_, b'\n') => self.end_row(),
                // The last byte of a row is the one before.
                (_, b'\r') => continue,
                (State::Before, b'"') => self.begin(State::Quoted),
                // Comments, other quotes.
                (State::Before, b'\'' | b'#') | (_, b'\\' | 0) => self.is_unknown = true,
                (_, byte) => match DELIMITERS.iter().position(|one| *one == byte) {
                    Some(at) => {
                        self.begin(State::Before);
                        if let Some(count) = self.row.counts.get_mut(at) {
                            *count += 1;
                        }
                    }
                    None if byte == b' ' && self.state == State::Before => {}
                    None => self.begin(State::Within),
                },
            }
            self.row.last = byte;
            if self.is_unknown || self.rows.len() as u64 >= most {
                return true;
            }
        }
        false
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.row.has_values = true;
    }

    fn end_row(&mut self) {
        if self.row.has_values {
            self.rows.push(self.row);
        }
        self.row = Row {
            line: self.line,
            ..Row::default()
        };
        self.state = State::Before;
    }

    /// Returns the first row that does not fit; none if all do by any delimiter, or most don't.
    pub(super) fn uneven(mut self) -> Option<Uneven> {
        let is_open = self.state == State::Quoted;
        self.end_row();
        let first = *self.rows.first()?;
        if self.is_unknown || is_open {
            return None;
        }
        let mut best: Option<(usize, usize)> = None;
        for at in (0..DELIMITERS.len()).filter(|at| first.count(*at) > 0) {
            let fitting = self.rows.iter().filter(|row| row.fits(&first, at)).count();
            if fitting == self.rows.len() {
                return None;
            }
            best = best.max(Some((fitting, at)));
        }
        let (fitting, at) = best?;
        if fitting < 2 || fitting * 3 < self.rows.len() * 2 {
            return None;
        }
        let row = self.rows.iter().find(|row| !row.fits(&first, at))?;
        Some(Uneven {
            line: row.line + 1,
            expected: first.count(at) + 1,
            found: row.count(at) + 1,
        })
    }
}

impl Row {
    fn count(&self, at: usize) -> u32 {
        self.counts.get(at).copied().unwrap_or_default()
    }

    /// Returns true if there are as many values as in the first row, or one more that is empty and the last.
    fn fits(&self, first: &Row, at: usize) -> bool {
        let more = self.count(at).checked_sub(first.count(at));
        more == Some(0) || more == Some(1) && DELIMITERS.get(at) == Some(&self.last)
    }
}
