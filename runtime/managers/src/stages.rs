//! Stages: the ordered list that a resource moves along.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The largest number of stages of a resource; every record contains the list.
pub const STAGES_MAX: usize = 32;

/// A place in the life of a resource, identified by its name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stage(Arc<str>);

impl Stage {
    /// Returns the stage with the given name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name of the stage.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Stage {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The stages of a resource, in order.
///
/// The first one means that there is nothing, the last one that it is gone for good. Up to the *early* one a resource may
/// go before its window begins, and a part before those in front of it have come far enough.
///
/// ```
/// use watershed_managers::{Stage, Stages};
///
/// let stages = Stages::new(["absent", "prepared", "active", "gone"])?.with_early("prepared")?;
/// let step = |from: &str, goal: &str| stages.step(&Stage::from(from), &Stage::from(goal));
/// assert_eq!(step("absent", "active"), Some(Stage::from("prepared")));
/// assert_eq!(step("active", "gone"), Some(Stage::from("gone")));
/// assert_eq!(step("active", "active"), None);
/// # Ok::<(), watershed_managers::StagesError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Stages {
    list: Arc<[Stage]>,
    early: usize,
}

/// The reason why a list of stages is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StagesError {
    /// The list has fewer than two stages.
    #[error("a lifecycle needs at least two stages, one for what is absent and one for what is gone")]
    TooFew,
    /// The list has more than [`STAGES_MAX`] stages.
    #[error("a lifecycle has at most {STAGES_MAX} stages")]
    TooMany,
    /// A name is empty or occurs twice.
    #[error("the stage \"{0}\" has no name of its own")]
    NotDistinct(Stage),
    /// A stage is not in the list.
    #[error("\"{0}\" is no stage of this lifecycle")]
    Unknown(Stage),
    /// The last stage was given as the early one.
    #[error("the early stage must come before the last one")]
    EarlyIsLast,
}

impl Stages {
    /// Returns a list of these stages in this order, with the first as the early stage.
    ///
    /// # Errors
    /// [`StagesError`] if they are fewer than two or more than [`STAGES_MAX`], or two have one name.
    pub fn new<S: Into<Stage>>(stages: impl IntoIterator<Item = S>) -> Result<Self, StagesError> {
        let list: Arc<[Stage]> = stages.into_iter().map(Into::into).collect();
        if list.len() < 2 {
            return Err(StagesError::TooFew);
        }
        if list.len() > STAGES_MAX {
            return Err(StagesError::TooMany);
        }
        for (at, stage) in list.iter().enumerate() {
            if stage.as_str().is_empty() || list.iter().skip(at + 1).any(|other| other == stage) {
                return Err(StagesError::NotDistinct(stage.clone()));
            }
        }
        Ok(Self { list, early: 0 })
    }

    /// Returns the list with another early stage, the furthest that may be reached before a window begins.
    ///
    /// # Errors
    /// [`StagesError`] if it is not in the list, or the last.
    pub fn with_early(mut self, stage: impl Into<Stage>) -> Result<Self, StagesError> {
        let stage = stage.into();
        self.early = self
            .index(&stage)
            .ok_or_else(|| StagesError::Unknown(stage.clone()))?;
        if self.early + 1 == self.list.len() {
            return Err(StagesError::EarlyIsLast);
        }
        Ok(self)
    }

    /// Returns all stages, from first to last.
    pub fn list(&self) -> &[Stage] {
        &self.list
    }

    /// Returns the first stage, at which nothing exists yet.
    pub fn first(&self) -> &Stage {
        // There are at least two, also in what was stored: see `is_sound`.
        &self.list[0]
    }

    /// Returns the last stage, at which everything has been removed for good.
    pub fn last(&self) -> &Stage {
        &self.list[self.list.len() - 1]
    }

    /// Returns the early stage, the furthest that may be reached before a window begins.
    pub fn early(&self) -> &Stage {
        self.list.get(self.early).unwrap_or_else(|| self.first())
    }

    /// Returns the index of a stage, 0 for the first; none if it is not in the list.
    pub fn index(&self, stage: &Stage) -> Option<usize> {
        self.list.iter().position(|other| other == stage)
    }

    /// Returns true if nothing exists outside at this stage, which is the first or the last.
    pub fn is_nothing(&self, stage: &Stage) -> bool {
        stage == self.first() || stage == self.last()
    }

    /// Returns true if a stage comes before another one.
    pub fn is_before(&self, stage: &Stage, other: &Stage) -> bool {
        self.index(stage) < self.index(other)
    }

    /// Returns whichever of two stages comes first in the list.
    pub fn earlier<'a>(&self, one: &'a Stage, other: &'a Stage) -> &'a Stage {
        if self.is_before(other, one) { other } else { one }
    }

    /// Returns the next stage on the way to a goal.
    ///
    /// Upwards it is the neighbour, so that no stage is passed by. Downwards it is the goal itself: what is taken back is not
    /// brought to the stages in between once more. To the last stage it is that one, from wherever. To the first one the way leads over the last, since removing
    /// is what the last one stands for. None where there is nothing to do, or a stage is unknown.
    pub fn step(&self, from: &Stage, goal: &Stage) -> Option<Stage> {
        let (at, to) = (self.index(from)?, self.index(goal)?);
        if at == to || (self.is_nothing(from) && self.is_nothing(goal)) {
            return None;
        }
        if self.is_nothing(goal) {
            return Some(self.last().clone());
        }
        // From the last stage a lifecycle starts over.
        let at = if from == self.last() { 0 } else { at };
        let next = if at < to { at + 1 } else { to };
        self.list.get(next).cloned()
    }

    /// Returns true if a stored list has a valid length and a valid early stage.
    pub(crate) fn is_sound(&self) -> bool {
        (2..=STAGES_MAX).contains(&self.list.len()) && self.early + 1 < self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages() -> Stages {
        let stages = Stages::new(["absent", "prepared", "active", "gone"]).unwrap();
        stages.with_early("prepared").unwrap()
    }

    #[test]
    fn the_next_step_from_every_stage_to_every_goal_is_this() {
        let table = [
            ("absent", ["-", "prepared", "prepared", "-"]),
            ("prepared", ["gone", "-", "active", "gone"]),
            ("active", ["gone", "prepared", "-", "gone"]),
            ("gone", ["-", "prepared", "prepared", "-"]),
        ];
        let stages = stages();
        for (from, goals) in table {
            for (goal, next) in stages.list().iter().zip(goals) {
                let found = stages.step(&from.into(), goal);
                let found = found.as_ref().map_or("-", Stage::as_str);
                assert_eq!(found, next, "from {from} to {goal}");
            }
        }
        assert_eq!(stages.step(&"elsewhere".into(), &"active".into()), None);
        assert_eq!(stages.step(&"active".into(), &"elsewhere".into()), None);
    }

    #[test]
    fn every_goal_is_reached_in_fewer_steps_than_there_are_stages() {
        let stages = Stages::new((0..9).map(|n| Stage::new(format!("s{n}")))).unwrap();
        for from in stages.list() {
            for goal in stages.list() {
                let (mut at, mut steps) = (from.clone(), 0);
                while let Some(next) = stages.step(&at, goal) {
                    at = next;
                    steps += 1;
                    assert!(steps < stages.list().len(), "from {from} to {goal}");
                }
                let arrived = at == *goal || (stages.is_nothing(&at) && stages.is_nothing(goal));
                assert!(arrived, "from {from} to {goal} ended at {at}");
            }
        }
    }

    #[test]
    fn lists_that_are_no_lifecycle_are_refused() {
        assert_eq!(Stages::new(["a"]).unwrap_err(), StagesError::TooFew);
        let twice = StagesError::NotDistinct("a".into());
        assert_eq!(Stages::new(["a", "b", "a"]).unwrap_err(), twice);
        let nameless = StagesError::NotDistinct("".into());
        assert_eq!(Stages::new(["a", ""]).unwrap_err(), nameless);
        let many = (0..=STAGES_MAX).map(|n| Stage::new(n.to_string()));
        assert_eq!(Stages::new(many).unwrap_err(), StagesError::TooMany);
        let unknown = StagesError::Unknown("c".into());
        assert_eq!(
            Stages::new(["a", "b"]).unwrap().with_early("c").unwrap_err(),
            unknown
        );
        let last = Stages::new(["a", "b"]).unwrap().with_early("b");
        assert_eq!(last.unwrap_err(), StagesError::EarlyIsLast);
    }
}
