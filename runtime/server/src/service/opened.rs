//! An engine that an operation uses.

use std::sync::Arc;

use watershed_drivers::olap::{Failure, Olap};

/// An engine, and who closes it.
pub(crate) struct Opened {
    /// The engine.
    pub(crate) engine: Arc<dyn Olap>,
    /// True if the engine was opened for one operation alone.
    pub(crate) is_own: bool,
}

impl Opened {
    /// Gives the engine back. One that was opened for this operation is closed.
    ///
    /// # Errors
    /// When the engine can't be closed in order.
    pub(crate) async fn close(self) -> Result<(), Failure> {
        match self.is_own {
            true => self.engine.close().await.map(drop),
            false => Ok(()),
        }
    }

    /// Gives the engine back; a failure is told in the log alone, for what was asked is answered.
    pub(crate) async fn give_back(self) {
        if let Err(error) = self.close().await {
            tracing::warn!(%error, "can't close the engine");
        }
    }
}
