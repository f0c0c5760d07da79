//! An engine that an operation uses, and closes if it opened it.

use std::sync::Arc;

use watershed_drivers::olap::{Failure, Olap};

/// An engine, and the obligation to close it.
pub(crate) struct Opened {
    /// The engine that the operation asks.
    pub(crate) engine: Arc<dyn Olap>,
    /// True if the engine was opened for this operation alone, and is closed after it.
    pub(crate) is_own: bool,
}

impl Opened {
    /// Closes the engine if it was opened for this operation.
    ///
    /// # Errors
    /// When the engine can't be closed in order.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self.is_own {
            true => self.engine.close().await.map(drop),
            false => Ok(()),
        }
    }

    /// Closes the engine as [`close`](Self::close) does, and only logs a failure, since the answer is complete.
    pub(crate) async fn give_back(self) {
        if let Err(error) = self.close().await {
            tracing::warn!(%error, "can't close the engine");
        }
    }
}
