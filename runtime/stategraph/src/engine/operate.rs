//! Execution of effects: each handler's future is polled once in place, and spawned if it is not ready.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Waker};

use tokio_util::sync::CancellationToken;

use super::{AtHand, Cancellable, Desk, Executor, lock};
use crate::handler::{AnyHandler, Background, Context, HandlerError};
use crate::item::Operation;
use crate::message::Message;
use crate::planner::{Effect, Input, Observed, Start};
use crate::reference::Ref;
use crate::value::Value;

type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The part of a call that runs handlers.
pub(super) struct Desking<'a, V: Value> {
    executor: &'a Executor<V>,
    desk: &'a Arc<Desk<V>>,
    graph: &'a str,
    generation: u64,
    pub(super) at_hand: AtHand<V>,
    /// True if operations may have to wait until the graph is stored.
    parks: bool,
    /// Operations that wait until the graph is stored.
    pub(super) parked: Vec<Start<V>>,
}

impl<V: Value> Executor<V> {
    fn handler(&self, reference: &Ref) -> Option<Arc<dyn AnyHandler<V>>> {
        self.handlers.get(reference.type_name()).cloned()
    }

    pub(super) async fn needs_recreate(&self, reference: &Ref, old: &V, new: &V) -> Result<bool, String> {
        let handler = self.handler(reference).ok_or_else(no_handler)?;
        let (reference, old, new) = (reference.clone(), old.clone(), new.clone());
        let asked: Running<Result<bool, String>> = Box::pin(async move {
            handler
                .needs_recreate(&reference, &old, &new)
                .await
                .map_err(HandlerError::into_text)
        });
        CatchPanic(asked).await.unwrap_or_else(Err)
    }
}

fn no_handler() -> String {
    "has no handler".to_owned()
}

impl<'a, V: Value> Desking<'a, V> {
    pub(super) fn new(
        executor: &'a Executor<V>,
        desk: &'a Arc<Desk<V>>,
        graph: &'a str,
        generation: u64,
        parks: bool,
    ) -> Self {
        Self {
            executor,
            desk,
            graph,
            generation,
            at_hand: AtHand::new(),
            parks,
            parked: Vec::new(),
        }
    }

    pub(super) fn carry_out(&mut self, effects: Vec<Effect<V>>) {
        for effect in effects {
            match effect {
                Effect::Start(start) if self.must_be_stored(&start) => self.parked.push(start),
                Effect::Start(start) => self.start(start),
                Effect::Ask { reference, old, new } => {
                    self.ask(reference, old.value().clone(), new.value().clone())
                }
                Effect::Observe { reference, known } => self.observe(reference, known.value().clone()),
                // The request to cancel has set the operation's token and the time.
                Effect::Cancel { .. } | Effect::Done => {}
            }
        }
    }

    /// Returns true if a crash during the operation would leave something behind that is never found again.
    fn must_be_stored(&self, start: &Start<V>) -> bool {
        let known = self.executor.types.get(start.reference.type_name());
        self.parks && (start.operation == Operation::Create || !known.is_some_and(|known| known.observes))
    }

    pub(super) fn begin(&mut self, starts: Vec<Start<V>>) {
        for start in starts {
            self.start(start);
        }
    }

    /// Drops operations before their start.
    pub(super) fn give_up(&mut self, starts: Vec<Start<V>>) {
        self.at_hand
            .extend(starts.into_iter().map(|start| Input::Dropped { id: start.id }));
    }

    pub(super) fn give_up_parked(&mut self) {
        let parked = std::mem::take(&mut self.parked);
        self.give_up(parked);
    }

    fn start(&mut self, start: Start<V>) {
        let id = start.id;
        let Some(handler) = self.executor.handler(&start.reference) else {
            return self.at_hand.push_back(Input::Ended {
                id,
                result: Err(no_handler()),
            });
        };
        let token = CancellationToken::new();
        let is_back = Arc::new(AtomicBool::new(false));
        let inbox = self.desk.inbox.clone();
        let background = Background {
            id,
            inbox: inbox.clone(),
            is_back: Arc::clone(&is_back),
        };
        let context = Context {
            cancel: token.clone(),
            background: Some(background),
        };
        let (reference, operation) = (start.reference.clone(), start.operation);
        let running: Running<Result<(), String>> = Box::pin(perform(handler, context, start));
        match first_poll(running) {
            Ok(result) => self.at_hand.push_back(Input::Ended {
                id,
                result: result.unwrap_or_else(Err),
            }),
            Err(running) => {
                lock(&self.desk.running).insert(
                    id,
                    Cancellable {
                        reference,
                        operation,
                        token,
                        deadline: None,
                    },
                );
                let (desk, graph) = (Arc::clone(self.desk), self.graph.to_owned());
                let executor = self.executor;
                let (notices, clock) = (Arc::clone(&executor.notices), Arc::clone(&executor.clock));
                let session = Arc::clone(&executor.session);
                tokio::spawn(async move {
                    let result = running.await.unwrap_or_else(Err);
                    let ended = Message::Ended {
                        id,
                        result,
                        at: clock(),
                    };
                    let is_back = is_back.load(Ordering::SeqCst);
                    notices.add(&graph, is_back, || drop(inbox.send(ended)));
                    desk.returned(id);
                    drop(session);
                });
            }
        }
    }

    fn ask(&mut self, reference: Ref, old: V, new: V) {
        let Some(handler) = self.executor.handler(&reference) else {
            return self.at_hand.push_back(Input::Answered {
                reference,
                answer: Err(no_handler()),
            });
        };
        let asked = reference.clone();
        let running: Running<Result<bool, String>> = Box::pin(async move {
            handler
                .needs_recreate(&asked, &old, &new)
                .await
                .map_err(HandlerError::into_text)
        });
        match first_poll(running) {
            Ok(answer) => self.at_hand.push_back(Input::Answered {
                reference,
                answer: answer.unwrap_or_else(Err),
            }),
            Err(running) => {
                let (inbox, generation) = (self.desk.inbox.clone(), self.generation);
                tokio::spawn(async move {
                    let answer = running.await.unwrap_or_else(Err);
                    let _ = inbox.send(Message::Answered {
                        generation,
                        reference,
                        answer,
                    });
                });
            }
        }
    }

    fn observe(&mut self, reference: Ref, known: V) {
        let Some(handler) = self.executor.handler(&reference) else {
            return self.at_hand.push_back(Input::Observed {
                reference,
                found: Observed::Unclear(no_handler()),
            });
        };
        let observed = reference.clone();
        let running: Running<Observed<V>> = Box::pin(async move { handler.observe(&observed, &known).await });
        match first_poll(running) {
            Ok(found) => self.at_hand.push_back(Input::Observed {
                reference,
                found: found.unwrap_or_else(Observed::Unclear),
            }),
            Err(running) => {
                let (inbox, generation) = (self.desk.inbox.clone(), self.generation);
                tokio::spawn(async move {
                    let found = Box::new(running.await.unwrap_or_else(Observed::Unclear));
                    let _ = inbox.send(Message::Observed {
                        generation,
                        reference,
                        found,
                    });
                });
            }
        }
    }
}

async fn perform<V: Value>(
    handler: Arc<dyn AnyHandler<V>>,
    context: Context,
    start: Start<V>,
) -> Result<(), String> {
    let reference = &start.reference;
    let result = match (start.operation, &start.old, &start.new) {
        (Operation::Create, _, Some(new)) => handler.create(&context, reference, new.value()).await,
        (Operation::Modify, Some(old), Some(new)) => {
            handler
                .modify(&context, reference, old.value(), new.value())
                .await
        }
        (Operation::Delete, Some(old), _) => handler.delete(&context, reference, old.value()).await,
        (Operation::Adopt, ..) => handler.adopt(&context, reference, &reference.base()).await,
        _ => Err(HandlerError::new("there is no value to work with")),
    };
    result.map_err(HandlerError::into_text)
}

/// Polls a future once. Few operations of most embedders are ready at once, but those need no task.
fn first_poll<T>(running: Running<T>) -> Result<Result<T, String>, CatchPanic<T>> {
    let mut running = CatchPanic(running);
    // What is not ready is polled again by the task that it is given to, with a waker of its own.
    match Pin::new(&mut running).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(result) => Ok(result),
        Poll::Pending => Err(running),
    }
}

/// A future wrapper that turns a panic into an error. The inner future is dropped and not polled again.
struct CatchPanic<T>(Running<T>);

impl<T> Future for CatchPanic<T> {
    type Output = Result<T, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Self::Output> {
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Ready(result)) => Poll::Ready(Ok(result)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(payload) => Poll::Ready(Err(format!("panicked: {}", panic_text(payload.as_ref())))),
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
