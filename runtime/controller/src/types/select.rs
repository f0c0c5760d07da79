//! Selections of resources for listings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::resource::Resource;
use watershed_core::{Kind, Row, Settled, Stage, Status, Uid};

/// A selection of resources by conditions, all of which must hold. Without any, it has all resources that are neither
/// hidden nor being deleted.
///
/// ```
/// # use watershed_controller::{Context, Error, Outcome, Reconciler};
/// # struct Pages;
/// # impl Reconciler for Pages {
/// #     type Spec = Page;
/// #     type State = Page;
/// #     async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
/// #         context.set_state(&Page(context.spec().0.clone())).await?;
/// #         Ok(Outcome::changed())
/// #     }
/// # }
/// # #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
/// # struct Page(String);
/// # watershed_controller::json_message!(Page, format = 1);
/// use std::time::Duration;
/// use watershed_controller::{Controller, KindOptions, Resource, Select};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let controller = Controller::builder().kind(KindOptions::new("page"), Pages).start().await?;
/// let home = controller.create(Resource::declare("page", "home", &Page("hello".into()))?).await?;
/// let mut part = Resource::declare("page", "part", &Page("part".into()))?;
/// part.owner = Some(home);
/// controller.create(part).await?;
/// controller.wait_until_idle(Duration::from_secs(10)).await?;
///
/// let names = |select: Select| controller.list(select).resources.len();
/// assert_eq!(names(Select::kind("page")), 2);
/// assert_eq!(names(Select::kind("page").owner(home)), 1);
/// assert_eq!(names(Select::new().failed()), 0);
/// assert_eq!(names(Select::new().label("team", "web")), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Select {
    kind: Option<Kind>,
    labels: BTreeMap<Arc<str>, Arc<str>>,
    owner: Option<Uid>,
    phase: Option<InPhase>,
    failed: bool,
    hidden: bool,
    deleted: bool,
}

/// The stage of a resource, without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InPhase {
    Settled,
    Pending,
    Running,
}

impl Select {
    /// Selects all resources that are neither hidden nor being deleted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects every stored resource, including hidden ones and those whose delete is unfinished.
    pub fn all() -> Self {
        Self::default().with_hidden().with_deleted()
    }

    /// Selects the resources of one kind.
    pub fn kind(kind: impl Into<Kind>) -> Self {
        Self {
            kind: Some(kind.into()),
            ..Self::default()
        }
    }

    /// Keeps only resources with this label, in addition to earlier ones.
    pub fn label(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Keeps only resources that this one owns.
    pub fn owner(mut self, owner: Uid) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Keeps only settled resources.
    pub fn settled(mut self) -> Self {
        self.phase = Some(InPhase::Settled);
        self
    }

    /// Keeps only pending resources.
    pub fn pending(mut self) -> Self {
        self.phase = Some(InPhase::Pending);
        self
    }

    /// Keeps only running resources.
    pub fn running(mut self) -> Self {
        self.phase = Some(InPhase::Running);
        self
    }

    /// Keeps only resources with an error, in any stage.
    pub fn failed(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Includes hidden resources.
    pub fn with_hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Includes resources whose delete is unfinished.
    pub fn with_deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// Returns true if a resource satisfies all conditions.
    pub(crate) fn keeps(&self, found: &Resource) -> bool {
        self.keeps_row(&found.row) && self.keeps_status(&found.row, &found.status)
    }

    /// Returns true if a row satisfies the conditions on rows.
    pub(crate) fn keeps_row(&self, row: &Row) -> bool {
        let has_label = |(key, value): (&Arc<str>, &Arc<str>)| row.labels.get(key) == Some(value);
        (self.hidden || !row.hidden)
            && (self.deleted || !row.intents.is_deleted())
            && self.kind.as_ref().is_none_or(|kind| row.kind == *kind)
            && self.owner.is_none_or(|owner| row.owner == Some(owner))
            && self.labels.iter().all(has_label)
    }

    /// Returns true if a resource, whose row is selected, also satisfies the conditions on stage and health.
    pub(crate) fn keeps_status(&self, row: &Row, status: &Status) -> bool {
        let is_unreadable = matches!(status.stage, Stage::Settled(Settled::Unreadable(_)));
        let phase = match status.stage {
            Stage::Settled(_) => InPhase::Settled,
            Stage::Pending => InPhase::Pending,
            Stage::Running { .. } => InPhase::Running,
        };
        self.phase.is_none_or(|wanted| wanted == phase)
            && (!self.failed || row.error.is_some() || is_unreadable)
    }
}
