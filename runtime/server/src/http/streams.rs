//! Streams that end with their caller's access: a token that is revoked or expires, a session that ends.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures::{Stream, StreamExt as _};
use watershed_api::documents::Time;

use super::caller::Caller;

/// Returns a response whose body ends when the caller's access does. Whole documents are sent to their end.
pub(super) fn ending_with(caller: &Caller, response: Response) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    // Readers of events ask again. What is to be read as a whole must not look as if it were whole.
    let is_of_events = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media| media.as_bytes().starts_with(b"text/event-stream"));
    let over = end_of_access(caller);
    response.map(|body| Body::from_stream(cut(body, over, is_of_events)))
}

/// Waits until the caller's access is revoked or expires. Cancel-safe.
pub(super) fn end_of_access(caller: &Caller) -> impl Future<Output = ()> + Send + use<> {
    let (ended, expires_at) = (caller.ended().clone(), caller.expires_at());
    async move {
        tokio::select! {
            () = ended.cancelled() => {}
            () = expiry(expires_at) => {}
        }
    }
}

/// Waits for a time; for ever if there is none.
async fn expiry(at: Option<Time>) {
    let left_ms = at.map(|at| at.since_ms(Time::now()));
    match left_ms {
        // A timer of no time would let the first piece through.
        Some(0) => {}
        Some(left_ms) => tokio::time::sleep(Duration::from_millis(left_ms)).await,
        None => std::future::pending().await,
    }
}

fn cut(
    body: Body,
    over: impl Future<Output = ()> + Send + 'static,
    is_of_events: bool,
) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    let over: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(over);
    let begun = Some((body.into_data_stream(), over));
    let pieces = futures::stream::unfold(begun, move |state| async move {
        let (mut body, mut over) = state?;
        tokio::select! {
            biased;
            () = &mut over => match is_of_events {
                true => None,
                false => {
                    let why = io::Error::other("the caller's access has ended");
                    Some((Err(axum::Error::new(why)), None))
                }
            },
            piece = body.next() => Some((piece?, Some((body, over)))),
        }
    });
    // Whoever asks after the end is told of the end again.
    pieces.fuse()
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn endless(media: &'static str) -> Response {
        let pieces = futures::stream::iter([Ok::<_, io::Error>("piece")]).chain(futures::stream::pending());
        let mut response = Response::new(Body::from_stream(pieces));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(media));
        response
    }

    #[tokio::test]
    async fn s_api17_a_stream_ends_with_its_callers_access() {
        for (media, ends_in_order) in [("text/event-stream", true), ("application/octet-stream", false)] {
            let ended = CancellationToken::new();
            let caller = Caller::owner("ann").until(ended.clone());
            let mut pieces = ending_with(&caller, endless(media))
                .into_body()
                .into_data_stream();
            assert_eq!(pieces.next().await.unwrap().unwrap(), "piece");
            ended.cancel();
            let last = pieces.next().await;
            assert_eq!(last.is_none(), ends_in_order, "{media}: {last:?}");
            assert!(pieces.next().await.is_none_or(|piece| piece.is_err()));
        }
        let over = Caller::owner("ann").expiring(Time::from_millis(1));
        let body = ending_with(&over, endless("text/event-stream")).into_body();
        assert!(to_bytes(body, 10).await.unwrap().is_empty());
        let whole = ending_with(&over, Response::new(Body::from("whole"))).into_body();
        assert_eq!(to_bytes(whole, 10).await.unwrap(), "whole");
    }
}
