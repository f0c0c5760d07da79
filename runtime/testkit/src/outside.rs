//! The world that a reconciler acts on, as the kit sees it.

use std::fmt;

/// The world that a reconciler acts on: files, tables, an API. For tests usually a stand-in in memory; whatever it is,
/// the kit makes a fresh one for each play, hands it to the reconciler, and looks at it.
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
    /// The value that is compared.
    type Seen: PartialEq + fmt::Debug;

    /// Returns its present value: all that a reconciler should get right, and nothing that may differ from one way
    /// there to another (times, numbers of attempts).
    fn look(&self) -> Self::Seen;

    /// Returns a fault that must never be seen at any moment, half an output for instance. Asked whenever the kit has
    /// interrupted something, and at rest.
    fn wrong(&self) -> Option<String> {
        None
    }

    /// Returns the work in progress that a reconciler has to come back to, a job for instance; none at rest.
    fn under_way(&self) -> Option<String> {
        None
    }

    /// From now on (`true`), whatever is asked of it fails; it works again when told so.
    fn trouble(&self, begins: bool) {
        let _ = begins;
    }
}
