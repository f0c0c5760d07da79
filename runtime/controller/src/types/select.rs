//! Selections of resources for listings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::resource::Resource;
use watershed_core::{Kind, Row, Settled, Stage, Status, Uid};

/// A selection of resources: those that pass every condition that is set. Without any these are all that are not
/// hidden and not being deleted.
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

/// The three phases of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InPhase {
    Settled,
    Pending,
    Running,
}

impl Select {
    /// All that are not hidden and not being deleted.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that is stored: hidden ones and those whose delete is unfinished as well.
    pub fn all() -> Self {
        Self::default().with_hidden().with_deleted()
    }

    /// The resources of one kind.
    pub fn kind(kind: impl Into<Kind>) -> Self {
        Self {
            kind: Some(kind.into()),
            ..Self::default()
        }
    }

    /// Only those with this label, beside the labels that were named before.
    pub fn label(mut self, key: impl Into<Arc<str>>, value: impl Into<Arc<str>>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Only those that belong to this resource.
    pub fn owner(mut self, owner: Uid) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Only those that are settled.
    pub fn settled(mut self) -> Self {
        self.phase = Some(InPhase::Settled);
        self
    }

    /// Only those that wait for their run.
    pub fn pending(mut self) -> Self {
        self.phase = Some(InPhase::Pending);
        self
    }

    /// Only those that run.
    pub fn running(mut self) -> Self {
        self.phase = Some(InPhase::Running);
        self
    }

    /// Only those that carry an error, whatever they do now.
    pub fn failed(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Hidden ones as well.
    pub fn with_hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Those as well whose delete is unfinished.
    pub fn with_deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// Returns true for a resource that passes.
    pub(crate) fn keeps(&self, found: &Resource) -> bool {
        self.keeps_row(&found.row) && self.keeps_status(&found.row, &found.status)
    }

    /// Returns true for a row that passes.
    pub(crate) fn keeps_row(&self, row: &Row) -> bool {
        let has_label = |(key, value): (&Arc<str>, &Arc<str>)| row.labels.get(key) == Some(value);
        (self.hidden || !row.hidden)
            && (self.deleted || !row.intents.is_deleted())
            && self.kind.as_ref().is_none_or(|kind| row.kind == *kind)
            && self.owner.is_none_or(|owner| row.owner == Some(owner))
            && self.labels.iter().all(has_label)
    }

    /// Returns true if a resource whose row passes does so by its phase and health too.
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
