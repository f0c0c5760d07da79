//! Stops of containers in progress: signal, grace period and kill (rules W3, W14).
//!
//! A stop answers at once, and a task does the rest. The order stands in the name of the container before its signal, so
//! the next program goes on with it should this one end.

use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error as Bollard;
use bollard::query_parameters::{KillContainerOptions, WaitContainerOptions};
use futures::StreamExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::engine::Failed;
use super::label::{Mark, Order};
use super::observe::{Life, Listed};
use super::place::{Place, now};
use super::table::Ending;
use crate::backend::{Error, News, StartId, Stop, Then};

/// Delay after which a killed container that still exists is killed again.
const KILLED: Duration = Duration::from_secs(10);
/// First and longest delay after a request that the engine did not answer.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

impl Order {
    /// Creates an order whose grace period begins now.
    pub(super) fn from_now(stop: &Stop) -> Self {
        Self {
            signal: stop.signal.clone(),
            deadline: now().after(Duration::from_millis(stop.grace_ms)),
            then: stop.then,
        }
    }

    /// Merges the order with an earlier one: the grace period never grows, and a removal stays ordered.
    pub(super) fn after(self, earlier: &Mark) -> Self {
        match earlier {
            Mark::Stopped(earlier) => Self {
                signal: self.signal,
                deadline: self.deadline.min(earlier.deadline),
                then: self.then.max(earlier.then),
            },
            Mark::None | Mark::Kept => self,
        }
    }
}

/// Orders the stop of a living container, recorded in its name first.
///
/// An engine that does not answer leaves the name as it is; the task goes on trying either way.
pub(super) async fn order(place: &Arc<Place>, listed: &Listed, order: Order) {
    let order = order.after(&listed.mark);
    let mark = Mark::Stopped(order.clone());
    if let Err(failed) = place.mark(listed, &mark).await {
        tracing::warn!(start = %listed.labels.start, ?failed, "the name of a container can't be changed");
    }
    resume(place, listed, order);
}

/// Continues a stop that a container's name records.
pub(super) fn resume(place: &Arc<Place>, listed: &Listed, order: Order) {
    let start = &listed.labels.start;
    let mut table = place.table();
    if let Some(known) = table.stops.get(start) {
        known.order.send_if_modified(|now| {
            let is_other = *now != order;
            *now = order;
            is_other
        });
        return;
    }
    let (sender, orders) = watch::channel(order);
    table.stops.insert(start.clone(), Ending { order: sender });
    drop(table);
    let task = Task {
        start: start.clone(),
        container: Running {
            place: Arc::clone(place),
            container: listed.container.clone(),
        },
        orders,
    };
    tokio::spawn(task.run());
}

struct Task {
    start: StartId,
    container: Running,
    orders: watch::Receiver<Order>,
}

impl Task {
    async fn run(mut self) {
        let mut pause = PAUSES[0];
        while let Err(error) = self.end().await {
            tracing::warn!(start = %self.start, %error, "a container is not stopped yet");
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES[1]);
        }
        let place = &self.container.place;
        place.table().stops.remove(&self.start);
        place.tell(News::Changed(self.start.clone()));
    }

    /// Stops the container, and removes it if ordered. May be called again after an error.
    async fn end(&mut self) -> Result<(), Error> {
        loop {
            let order = self.orders.borrow_and_update().clone();
            self.container.kill(&order.signal).await?;
            let left = order.rest(now());
            tokio::select! {
                biased;
                over = self.container.wait() => { over?; break; }
                // The sender stands in the table until this task has ended.
                _ = self.orders.changed() => continue,
                () = sleep(left) => {}
            }
            self.container.kill("KILL").await?;
            if let Ok(over) = timeout(KILLED, self.container.wait()).await {
                over?;
                break;
            }
        }
        let then = self.orders.borrow().then;
        match then {
            Then::Keep => Ok(()),
            Then::Forget => self.container.place.forget(&self.start, false).await,
            Then::ForgetWithOutput => self.container.place.forget(&self.start, true).await,
        }
    }
}

/// A container that is being stopped.
struct Running {
    place: Arc<Place>,
    container: String,
}

impl Running {
    /// Sends a signal. Succeeds if the container is gone or has ended.
    async fn kill(&self, signal: &str) -> Result<(), Failed> {
        let client = self.place.engine.client().await?;
        let options = KillContainerOptions {
            signal: format!("SIG{signal}"),
        };
        let killed = client.kill_container(&self.container, Some(options));
        match self.place.engine.call(killed).await {
            Err(failed) if failed.is_missing() || failed.is_conflict() => Ok(()),
            killed => killed,
        }
    }

    /// Waits until the container has ended. Cancel-safe.
    async fn wait(&self) -> Result<(), Failed> {
        let client = self.place.engine.client().await?;
        let options = WaitContainerOptions {
            condition: "not-running".to_owned(),
        };
        let mut over = client.wait_container(&self.container, Some(options));
        match over.next().await {
            Some(Ok(_) | Err(Bollard::DockerContainerWaitError { .. })) => Ok(()),
            Some(Err(error)) => match self.place.engine.failed(error) {
                failed if failed.is_missing() => Ok(()),
                failed => Err(failed),
            },
            None => Err(Failed::Unreachable("the engine has ended".to_owned())),
        }
    }
}

/// Returns the containers with an unfinished stop that an earlier program ordered.
pub(super) fn left_over(place: &Place, listed: &[Listed]) -> Vec<(Listed, Order)> {
    let table = place.table();
    let orders = listed.iter().filter_map(|one| match &one.mark {
        Mark::Stopped(order) if !table.stops.contains_key(&one.labels.start) => {
            let is_due = one.life != Life::Ended || order.then != Then::Keep;
            is_due.then(|| (one.clone(), order.clone()))
        }
        _ => None,
    });
    orders.collect()
}

#[cfg(test)]
mod tests {
    use watershed_core::Timestamp;

    use super::*;

    fn order(signal: &str, deadline: i64, then: Then) -> Order {
        Order {
            signal: signal.to_owned(),
            deadline: Timestamp(deadline),
            then,
        }
    }

    /// Covers W14: the merge of two orders.
    #[test]
    fn a_second_order_shortens_the_grace_period_and_never_prolongs_it() {
        let first = Mark::Stopped(order("TERM", 1_000, Then::ForgetWithOutput));
        let sooner = order("INT", 500, Then::Keep).after(&first);
        assert_eq!(sooner, order("INT", 500, Then::ForgetWithOutput));
        let later = order("TERM", 2_000, Then::Keep).after(&first);
        assert_eq!(later.deadline, Timestamp(1_000));
        let only = order("TERM", 2_000, Then::Forget);
        assert_eq!(only.clone().after(&Mark::None), only);
    }
}
