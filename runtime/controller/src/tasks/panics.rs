//! Catching of panics in an embedder's code, without a hook.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Calls a function of an embedder; returns the message if it panics.
///
/// What it left half done is seen by nobody but through what it shares, and that is the embedder's own affair.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| message(panic.as_ref()))
}

/// Runs a future to its end and drops it; returns the message if either panics, as [`caught`] does.
///
/// It is never polled again after a panic.
pub(crate) async fn catch<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(Some(future));
    let ended = poll_fn(|cx| {
        let Some(future) = future.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        match caught(|| future.poll(cx)) {
            Ok(poll) => poll.map(Ok),
            Err(message) => Poll::Ready(Err(message)),
        }
    });
    let ended = ended.await;
    // Here, for a panic in a drop would else be one of the task.
    let dropped = caught(|| future.set(None));
    ended.and_then(|output| dropped.map(|()| output))
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

    /// A hand-written future that completes at once and panics when dropped.
    struct Bomb;

    impl Future for Bomb {
        type Output = u32;

        fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<u32> {
            Poll::Ready(3)
        }
    }

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("it was dropped");
        }
    }

    #[tokio::test]
    async fn a_panic_at_the_drop_of_a_future_becomes_its_message_too() {
        assert_eq!(catch(Bomb).await, Err("it was dropped".to_owned()));
    }
}
