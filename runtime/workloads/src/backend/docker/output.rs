//! Output of containers, which the engine keeps (rule W19).

use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptions;
use futures::stream::Stream;
use futures::{FutureExt, StreamExt};
use watershed_core::Timestamp;

use super::engine::Failed;
use super::place::Place;
use crate::backend::Error;

/// The longest line in bytes; a longer one is split.
const LONGEST_LINE: usize = 1 << 20;
/// The most bytes of output that are returned at once.
const MOST_READ: usize = 4 << 20;

/// The part of a container's output to read.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// The most lines before the end.
    pub limit: usize,
    /// Time since which lines were written; none for no bound.
    pub since: Option<Timestamp>,
    /// True to read output that is written later too.
    pub follow: bool,
}

/// Returns a time in the engine's form, whole seconds rounded down, so that a little more may be shown.
fn seconds(since: Timestamp) -> i32 {
    i32::try_from(since.0.div_euclid(1_000)).unwrap_or(i32::MAX)
}

/// A reader of one container's output.
pub struct Reader {
    pieces: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    /// Incomplete last lines of output and errors.
    partial: [Vec<u8>; 2],
    has_ended: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Reader");
        shown.field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

impl Reader {
    /// Starts reading the output of a start; none if the start has no container.
    pub(super) async fn begin(
        place: &Place,
        uid: &str,
        counter: u64,
        part: Part,
    ) -> Result<Option<Self>, Error> {
        let found = place.containers(Some(uid)).await?;
        let found = found
            .into_iter()
            .find(|one| one.labels.start.counter() == counter);
        let Some(found) = found else { return Ok(None) };
        let client = place.engine.client().await?;
        let options = LogsOptions {
            follow: part.follow,
            stdout: true,
            stderr: true,
            since: part.since.map_or(0, seconds),
            tail: match part.limit {
                usize::MAX => "all".to_owned(),
                lines => lines.to_string(),
            },
            ..LogsOptions::default()
        };
        let container = found.container;
        Ok(Some(Self {
            pieces: Box::pin(client.logs(&container, Some(options))),
            partial: [Vec::new(), Vec::new()],
            has_ended: false,
        }))
    }

    /// Returns the lines up to the current end of the output.
    ///
    /// # Errors
    /// When the engine does not answer.
    pub async fn all(&mut self) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        while let Some(piece) = self.pieces.next().await {
            self.take(piece, &mut lines)?;
        }
        self.has_ended = true;
        lines.extend(self.rest());
        Ok(lines)
    }

    /// Returns the lines that have arrived, without waiting. An incomplete last line is returned once the container has
    /// ended.
    ///
    /// # Errors
    /// When the engine does not answer any more.
    pub fn more(&mut self) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        let mut taken = 0;
        while !self.has_ended && taken < MOST_READ {
            match self.pieces.next().now_or_never() {
                None => break,
                Some(Some(piece)) => taken += self.take(piece, &mut lines)?,
                Some(None) => {
                    self.has_ended = true;
                    lines.extend(self.rest());
                }
            }
        }
        Ok(lines)
    }

    /// Splits a chunk of output into lines. Returns its length.
    fn take(
        &mut self,
        piece: Result<LogOutput, bollard::errors::Error>,
        lines: &mut Vec<String>,
    ) -> Result<usize, Error> {
        let piece = piece.map_err(|error| {
            self.has_ended = true;
            Error::from(Failed::Unreachable(error.to_string()))
        })?;
        let [output, errors] = &mut self.partial;
        let partial = match piece {
            LogOutput::StdErr { .. } => errors,
            _ => output,
        };
        let bytes = piece.as_ref();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(part);
            if part.ends_with(b"\n") || partial.len() >= LONGEST_LINE {
                lines.push(line(std::mem::take(partial)));
            }
        }
        Ok(bytes.len())
    }

    /// Returns incomplete last lines.
    fn rest(&mut self) -> Vec<String> {
        let partial = self.partial.iter_mut().map(std::mem::take);
        partial.filter(|rest| !rest.is_empty()).map(line).collect()
    }
}

fn line(bytes: Vec<u8>) -> String {
    let text = String::from_utf8_lossy(&bytes);
    text.trim_end_matches(['\n', '\r']).to_owned()
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn piece(is_error: bool, text: &'static str) -> Result<LogOutput, bollard::errors::Error> {
        let message = text.into();
        Ok(match is_error {
            true => LogOutput::StdErr { message },
            false => LogOutput::StdOut { message },
        })
    }

    #[test]
    fn lines_of_output_and_of_errors_are_put_together_apart() {
        let pieces = [
            piece(false, "a"),
            piece(true, "x\r\n"),
            piece(false, "b\nc"),
            piece(true, "y"),
        ];
        let mut reader = Reader {
            pieces: Box::pin(stream::iter(pieces)),
            partial: [Vec::new(), Vec::new()],
            has_ended: false,
        };
        assert_eq!(reader.more().unwrap(), ["x", "ab", "c", "y"]);
        assert!(reader.more().unwrap().is_empty());
    }

    #[test]
    fn what_has_not_come_is_not_waited_for() {
        let pieces = stream::iter([piece(false, "a\nb")]).chain(stream::pending());
        let mut reader = Reader {
            pieces: Box::pin(pieces),
            partial: [Vec::new(), Vec::new()],
            has_ended: false,
        };
        assert_eq!(reader.more().unwrap(), ["a"]);
        assert!(reader.more().unwrap().is_empty());
    }
}
