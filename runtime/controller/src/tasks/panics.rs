//! Catching the panic of a future, without a hook.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

/// Runs a future to its end; if it panics, returns the panic's message.
///
/// The future is dropped after a panic and never polled again, so what it left half done is seen by nobody but
/// through what it shares, and that is the reconciler's own affair.
pub(crate) async fn catch<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(message(panic.as_ref()))),
        },
    )
    .await
}

/// Returns the message of a panic: the text of `panic!`, or a note that it has none.
fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_its_message_also_after_an_await() {
        let value = 3;
        let caught = catch(async {
            tokio::task::yield_now().await;
            panic!("value {value} is odd");
        });
        assert_eq!(caught.await, Err::<(), _>("value 3 is odd".to_owned()));
        assert_eq!(catch(async { 7 }).await, Ok(7));
    }
}
