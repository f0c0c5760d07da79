//! Watches on selections of resources.

use std::collections::BTreeSet;

use watershed_core::{Revision, Uid};

use crate::handle::{Handle, Listing};
use crate::read::watch::{Event, Watch};
use crate::types::resource::Resource;
use crate::types::select::Select;

impl Handle {
    /// Lists the selected resources and follows the selection: by kind, labels, owner, phase and health.
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

/// A watch on a selection of resources, see [`Handle::watch_selected`].
#[derive(Debug)]
pub struct SelectionWatch {
    handle: Handle,
    watch: Watch,
    select: Select,
    /// Resources that were in the selection at the last look.
    members: BTreeSet<Uid>,
}

/// A change that a watch on a selection reports.
///
/// See [`Handle::watch_selected`] for an example.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectionEvent {
    /// Resources of the selection have changed.
    Changed {
        /// Revision of the catalog with the changes.
        revision: Revision,
        /// Present values of the selected resources that are new, changed, or have another status.
        resources: Vec<Resource>,
        /// Resources that left the selection or the catalog.
        left: Vec<Uid>,
    },
    /// The watch has missed changes and ends; list and watch again.
    Lagged,
}

impl SelectionWatch {
    /// Waits for the next event; none after the controller has stopped or after [`SelectionEvent::Lagged`].
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

    /// Compares the present values of touched resources with the selection; none if nothing in the selection is
    /// affected.
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
