//! The place of an SQL client among the readers of an instance.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use watershed_drivers::olap::Catalog;
use watershed_pgwire::Place;

use crate::http::Entered;
use crate::slots::{Pause, Slot};

/// A slot that is given back while its client takes no rows: whoever looks at the first page of an answer holds up nobody.
pub(super) struct Seat {
    entered: Arc<Entered>,
    slot: Option<Slot>,
    pause: Option<Pause>,
    /// The catalog that is read, if one is.
    _catalog: Option<Arc<dyn Catalog>>,
}

impl Seat {
    pub(super) fn new(entered: &Arc<Entered>, slot: Slot, catalog: Option<Arc<dyn Catalog>>) -> Box<Self> {
        Box::new(Self {
            entered: Arc::clone(entered),
            slot: Some(slot),
            pause: None,
            _catalog: catalog,
        })
    }
}

impl Place for Seat {
    fn leave(&mut self) -> bool {
        if self.pause.is_none() {
            self.pause = self.entered.instance().slots.pause();
        }
        if self.pause.is_some() {
            self.slot = None;
        }
        self.pause.is_some()
    }

    fn enter(&mut self) -> BoxFuture<'_, ()> {
        async {
            if self.slot.is_none() {
                self.slot = Some(self.entered.instance().slots.take_again().await);
                self.pause = None;
            }
        }
        .boxed()
    }
}
