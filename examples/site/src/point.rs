//! Named points before, in and after operations, at which a test can watch or end the process.
//!
//! `SITE_TRACE` prints each point as it is passed; `SITE_ABORT_AT=n` ends the process at the nth, as a `kill -9`
//! would: nothing is unwound or flushed.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use watershed_stategraph::{Context, Handler, HandlerError, Observed, Ref};

use crate::thing::Thing;

static PASSED: AtomicU64 = AtomicU64::new(0);

/// Passes a point.
pub(crate) fn pass(what: &str, item: &Ref) {
    let number = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if std::env::var_os("SITE_TRACE").is_some() {
        // Nobody may be listening any more, which is no reason to stop.
        let _ = writeln!(std::io::stdout().lock(), "{number} {what} {item}");
    }
    let end = std::env::var("SITE_ABORT_AT").ok().and_then(|at| at.parse().ok());
    if end == Some(number) {
        std::process::abort();
    }
}

/// A handler with a point before and after each operation.
pub(crate) struct Watched<H>(pub(crate) H);

impl<H: Handler<Thing>> Handler<Thing> for Watched<H> {
    async fn create(&self, context: &Context, item: &Ref, new: &Thing) -> Result<(), HandlerError> {
        pass("before create", item);
        let result = self.0.create(context, item, new).await;
        pass("after create", item);
        result
    }

    async fn modify(
        &self,
        context: &Context,
        item: &Ref,
        old: &Thing,
        new: &Thing,
    ) -> Result<(), HandlerError> {
        pass("before modify", item);
        let result = self.0.modify(context, item, old, new).await;
        pass("after modify", item);
        result
    }

    async fn delete(&self, context: &Context, item: &Ref, old: &Thing) -> Result<(), HandlerError> {
        pass("before delete", item);
        let result = self.0.delete(context, item, old).await;
        pass("after delete", item);
        result
    }

    async fn needs_recreate(&self, item: &Ref, old: &Thing, new: &Thing) -> Result<bool, HandlerError> {
        self.0.needs_recreate(item, old, new).await
    }

    async fn observe(&self, item: &Ref, known: &Thing) -> Observed<Thing> {
        self.0.observe(item, known).await
    }
}
