//! Following a selection of resources.

use std::collections::BTreeSet;

use watershed_core::{Revision, Uid};

use crate::handle::{Handle, Listing};
use crate::read::watch::{Event, Watch};
use crate::types::resource::Resource;
use crate::types::select::Select;

impl Handle {
    /// Lists the resources that are selected, and follows them from there: by kind, labels, owner, phase and health.
    ///
    /// ```
    /// # use watershed_controller::{Context, Error, Outcome, Reconciler};
    /// # struct Pages;
    /// # impl Reconciler for Pages {
    /// #     type Spec = Page;
    /// #     type State = Page;
    /// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
    /// #         match context.spec().0.as_str() {
    /// #             "" => Err(Error::permanent("empty", "the page is empty")),
    /// #             _ => Ok(Outcome::changed()),
    /// #         }
    /// #     }
    /// # }
    /// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    /// # struct Page(String);
    /// # watershed_controller::json_message!(Page, format = 1);
    /// use watershed_controller::watch::SelectionEvent;
    /// use watershed_controller::{Controller, Select};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let controller = Controller::builder().kind("page", Pages).start().await?;
    /// let (listing, mut failing) = controller.watch_selected(Select::kind("page").failed());
    /// assert!(listing.resources.is_empty());
    ///
    /// let pages = controller.resources::<Pages>();
    /// let home = pages.create("home", &Page(String::new())).await?;
    /// let Some(SelectionEvent::Changed { resources, .. }) = failing.next().await else { panic!("it lags") };
    /// assert_eq!(resources[0].uid(), home);
    ///
    /// pages.update("home", &Page("hello".into())).settled(None).await?;
    /// let Some(SelectionEvent::Changed { left, .. }) = failing.next().await else { panic!("it lags") };
    /// assert_eq!(left, [home]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch_selected(&self, select: Select) -> (Listing, SelectionWatch) {
        // Whatever is published between the two is listed, and seen once more.
        let watch = self.watch(self.revision());
        let listing = self.list(select.clone());
        let members = listing.resources.iter().map(Resource::uid).collect();
        let watch = SelectionWatch {
            handle: self.clone(),
            watch,
            select,
            members,
        };
        (listing, watch)
    }
}

/// Follows a selection of resources, see [`Handle::watch_selected`].
#[derive(Debug)]
pub struct SelectionWatch {
    handle: Handle,
    watch: Watch,
    select: Select,
    /// The resources that were selected when they were last seen.
    members: BTreeSet<Uid>,
}

/// One thing that a watcher of a selection sees.
///
/// See [`Handle::watch_selected`] for an example.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectionEvent {
    /// Resources of the selection have changed.
    Changed {
        /// The catalog's revision with the changes.
        revision: Revision,
        /// Those that are selected now, each as it is now: new ones, changed ones, and ones with another status.
        resources: Vec<Resource>,
        /// Those that are selected no longer, or have left the catalog.
        left: Vec<Uid>,
    },
    /// This watcher has missed something. It gets nothing more; list and watch again.
    Lagged,
}

impl SelectionWatch {
    /// The next event; none when the controller has stopped or after [`SelectionEvent::Lagged`].
    ///
    /// Cancel-safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<SelectionEvent> {
        loop {
            let touched: BTreeSet<Uid> = match self.watch.next().await? {
                Event::Lagged => return Some(SelectionEvent::Lagged),
                Event::Changed(changes) => {
                    let rows = changes.rows.iter().map(|row| row.uid);
                    rows.chain(changes.removed.iter().map(|removed| removed.uid))
                        .collect()
                }
                Event::Status(updates) => updates.iter().map(|update| update.uid).collect(),
            };
            if let Some(event) = self.look_at(touched) {
                return Some(event);
            }
        }
    }

    /// Looks at resources as they are now; none if nothing of the selection is among them.
    fn look_at(&mut self, touched: BTreeSet<Uid>) -> Option<SelectionEvent> {
        let (mut resources, mut left) = (Vec::new(), Vec::new());
        for uid in touched {
            let found = self.handle.get(uid).ok();
            match found.filter(|found| self.select.keeps(found)) {
                Some(found) => {
                    self.members.insert(uid);
                    resources.push(found);
                }
                None if self.members.remove(&uid) => left.push(uid),
                None => {}
            }
        }
        let is_any = !resources.is_empty() || !left.is_empty();
        is_any.then(|| SelectionEvent::Changed {
            revision: self.handle.revision(),
            resources,
            left,
        })
    }
}
