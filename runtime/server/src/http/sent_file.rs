//! Bodies of files, each sent for as long as its reader takes something.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{Stream, StreamExt as _, stream};
use tokio::fs::File;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;

/// Time after which a reader that takes nothing is ended: what is held for it is somebody else's.
pub(super) const TAKES_NOTHING: Duration = Duration::from_secs(30);

/// Bytes of a file that are read at once.
const PIECE: usize = 64 << 10;

/// Returns a file as the body of a response. `held` is dropped with the last byte, when the reader is gone, and when it has
/// taken nothing for 30 seconds: the body is broken off then.
pub(super) fn body(file: File, held: impl Send + 'static) -> Body {
    Body::from_stream(paced(ReaderStream::with_capacity(file, PIECE), held))
}

fn paced(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
    held: impl Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(pump(parts, sender, held));
    stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    })
}

async fn pump(
    mut parts: impl Stream<Item = io::Result<Bytes>> + Unpin,
    sender: mpsc::Sender<io::Result<Bytes>>,
    held: impl Send,
) {
    while let Some(part) = parts.next().await {
        if sender.send_timeout(part, TAKES_NOTHING).await.is_err() {
            drop((parts, held));
            // The body must not look whole to a reader that comes back.
            let late = io::Error::other("the reader took nothing for too long");
            let _ = sender.send(Err(late)).await;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::Instant;

    use super::*;

    /// Returns a body of some pieces, the permit that it holds, and what counts the permits.
    fn begin(pieces: u8) -> (impl Stream<Item = io::Result<Bytes>> + Send, Arc<()>) {
        let held = Arc::new(());
        let parts = stream::iter((0..pieces).map(|piece| Ok(Bytes::from(vec![piece]))));
        (paced(parts, Arc::clone(&held)), held)
    }

    #[tokio::test(start_paused = true)]
    async fn s_api26_a_download_whose_reader_takes_nothing_is_broken_off_and_gives_its_place_back() {
        let (body, held) = begin(5);
        let mut body = std::pin::pin!(body);
        assert!(body.next().await.unwrap().is_ok());
        let begun = Instant::now();
        while Arc::strong_count(&held) > 1 {
            tokio::time::advance(TAKES_NOTHING / 10).await;
            tokio::task::yield_now().await;
            assert!(begun.elapsed() <= TAKES_NOTHING * 2, "the place is held for ever");
        }
        assert!(begun.elapsed() >= TAKES_NOTHING);
        let rest: Vec<_> = body.collect().await;
        assert!(rest.len() < 5, "{rest:?}");
        assert!(rest.last().unwrap().is_err(), "the body looks whole: {rest:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn s_api26_a_slow_reader_gets_the_whole_file_and_one_that_leaves_gives_its_place_back() {
        let (body, held) = begin(5);
        let mut body = std::pin::pin!(body);
        for piece in 0..5 {
            tokio::time::advance(TAKES_NOTHING - Duration::from_secs(1)).await;
            assert_eq!(body.next().await.unwrap().unwrap()[..], [piece]);
        }
        assert!(body.next().await.is_none());
        assert_eq!(Arc::strong_count(&held), 1);

        let (body, held) = begin(5);
        drop(body);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
