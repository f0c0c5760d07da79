//! The streams of a program: feeding its input, and reading its output within bounds.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Keep;

/// Time for which output is read after the end of the program, since a descendant may hold its streams open.
const AFTER_END: Duration = Duration::from_millis(200);

/// Both output streams of a program, as read so far.
pub(super) struct Streams {
    output: Stream,
    errors: Stream,
}

struct Stream {
    keep: Keep,
    kept: Vec<u8>,
    is_too_long: bool,
}

impl Streams {
    pub(super) fn new(output: Keep, errors: Keep) -> Self {
        let stream = |keep| Stream {
            keep,
            kept: Vec::new(),
            is_too_long: false,
        };
        Self {
            output: stream(output),
            errors: stream(errors),
        }
    }

    /// Writes a program's input and reads its output until the program ends. Notifies `too_much` as soon as a stream
    /// exceeds its bound; reading goes on.
    pub(super) async fn converse(
        &mut self,
        child: &mut Child,
        input: &[u8],
        too_much: &Notify,
    ) -> io::Result<ExitStatus> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // It need not read its input.
                let _ = stdin.write_all(input).await;
            }
        };
        let talk = async {
            tokio::join!(
                write,
                self.output.read(stdout, too_much),
                self.errors.read(stderr, too_much)
            );
        };
        let mut talk = Box::pin(talk);
        tokio::select! {
            status = child.wait() => {
                // What it said last may still be in the pipe.
                let _ = timeout(AFTER_END, &mut talk).await;
                status
            }
            () = &mut talk => child.wait().await,
        }
    }

    /// Returns the bound of the first stream that exceeds its bound; none if no stream does.
    pub(super) fn exceeded(&self) -> Option<usize> {
        let streams = [&self.output, &self.errors];
        streams.into_iter().find_map(|stream| match stream.keep {
            Keep::First(max) if stream.is_too_long => Some(max),
            _ => None,
        })
    }

    /// Returns the kept bytes of output and errors.
    pub(super) fn kept(self) -> (Vec<u8>, Vec<u8>) {
        (self.output.kept, self.errors.kept)
    }
}

impl Stream {
    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>, too_much: &Notify) {
        let Some(mut from) = from else { return };
        let mut chunk = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut chunk).await {
            self.keep(chunk.get(..count).unwrap_or_default());
            if self.is_too_long {
                too_much.notify_one();
            }
        }
    }

    fn keep(&mut self, chunk: &[u8]) {
        match self.keep {
            Keep::Nothing => {}
            Keep::First(max) => {
                let room = max - self.kept.len();
                self.is_too_long |= chunk.len() > room;
                self.kept.extend(chunk.iter().take(room));
            }
            Keep::Last(max) => {
                self.kept.extend_from_slice(chunk);
                let excess = self.kept.len().saturating_sub(max);
                self.kept.drain(..excess);
            }
        }
    }
}
