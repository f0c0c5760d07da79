//! The output of containers, which the engine keeps (rule W19).

use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptions;
use futures::stream::Stream;
use futures::{FutureExt, StreamExt};
use watershed_core::Timestamp;

use super::engine::Failed;
use super::place::Place;
use crate::backend::Error;

/// Bytes of one line, at most: a longer one is cut into several.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes that are taken at once.
const MOST_READ: usize = 4 << 20;

/// The part of an output that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Lines before its end, at most.
    pub limit: usize,
    /// The time since which they were written.
    pub since: Option<Timestamp>,
    /// True if what is written later is read, too.
    pub follow: bool,
}

/// Returns a time as the engine takes it: whole seconds, so that a little more is shown than was asked for.
fn seconds(since: Timestamp) -> i32 {
    i32::try_from(since.0.div_euclid(1_000)).unwrap_or(i32::MAX)
}

/// The output of one container as it is read.
pub struct Reader {
    pieces: Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>,
    /// Beginnings of lines that have no end yet: of the output and of the errors.
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
    /// Begins to read the output of a start; none if it has no container.
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

    /// Returns the lines until the end of what is there.
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

    /// Returns the lines that have come, without waiting for more. A last line has its end when the container has.
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

    /// Takes a piece of output. Returns its length.
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

    /// Takes last lines without an end.
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
