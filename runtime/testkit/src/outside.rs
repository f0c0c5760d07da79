//! The world that a reconciler acts on, as the kit sees it.

use std::fmt;

/// The world that a reconciler acts on: files, tables, an API. Usually an in-memory substitute, which the kit makes
/// anew for each play, passes to the reconciler, and looks at.
///
/// An await in it is a point at which the kit can interrupt, so let each operation of a stand-in wait once, before or
/// after its effect (`tokio::task::yield_now().await`). Time is simulated: `tokio::time` in it passes at once.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
/// use watershed_testkit::Outside;
///
/// #[derive(Clone, Default)]
/// struct Files(Arc<Mutex<BTreeMap<String, String>>>);
///
/// impl Outside for Files {
///     type Seen = BTreeMap<String, String>;
///
///     fn look(&self) -> Self::Seen {
///         self.0.lock().unwrap().clone()
///     }
/// }
/// ```
pub trait Outside: 'static {
    /// Type of the value that is compared.
    type Seen: PartialEq + fmt::Debug;

    /// Returns the present value: everything that a reconciler must get right, without parts that depend on the history
    /// (times, numbers of attempts).
    fn look(&self) -> Self::Seen;

    /// Returns a fault that must never be visible, such as half an output. Called after each interruption, and at rest.
    fn wrong(&self) -> Option<String> {
        None
    }

    /// Returns the work in progress that a reconciler has to come back to, such as a job; none at rest.
    fn under_way(&self) -> Option<String> {
        None
    }

    /// Makes every access fail from now on (`true`), or work again.
    fn trouble(&self, begins: bool) {
        let _ = begins;
    }
}
