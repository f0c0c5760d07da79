//! The lifecycle of one resource: its stage, and the transition for each event.
//!
//! Every change of stage goes through [`next`], one match over stage and event. What a stage needs lies inside it, so no
//! stage is derived from anything else.
//!
//! Invariants:
//! 1. `Concluding` lasts within one input: the invocation has returned, and what follows from that is being decided.
//! 2. An abandoned invocation is never in the way of the stage beside it, `then`: that settles as if nothing ran, until
//!    the invocation returns after all.

use std::mem::replace;
use std::ops::Deref;

use super::stages::{Pending, Running};
use crate::Settled;

/// The stage of a resource. Only an [`Event`] changes it.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Lifecycle(Stage);

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Stage {
    Settled(Rest),
    Pending(Pending),
    Running(Box<Running>),
    Concluding,
    Abandoned { run: Box<Running>, then: Then },
}

/// The stage beside an abandoned invocation.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Then {
    Settled(Rest),
    Pending(Pending),
}

/// The reason why something is settled. Most resources are idle, and the other reasons are larger than all else that a
/// stage has.
#[derive(Clone, Debug)]
struct Rest(Option<Box<Settled>>);

impl Rest {
    const IDLE: Self = Self(None);
}

impl From<Settled> for Rest {
    fn from(why: Settled) -> Self {
        Self((why != Settled::Idle).then(|| Box::new(why)))
    }
}

impl Deref for Rest {
    type Target = Settled;

    fn deref(&self) -> &Settled {
        self.0.as_deref().unwrap_or(&Settled::Idle)
    }
}

/// An event that moves a resource from one stage to another.
#[derive(Debug)]
pub(crate) enum Event {
    /// Something requests it.
    Asked(Pending),
    /// Its invocation starts.
    Started(Box<Running>),
    /// Its invocation has returned, be it abandoned or not.
    Returned,
    /// Its invocation has not returned for too long; it is requested beside that, unless it is gone.
    Abandoned(Option<Pending>),
    /// It has nothing to do, or may not do it.
    Settled(Settled),
    /// It is taken out of the catalog; an invocation of it may still run.
    Removed,
}

/// The stage as the scheduler needs it.
#[derive(Debug)]
pub(crate) enum At<'a> {
    Settled(&'a Settled),
    Pending(&'a Pending),
    Running(&'a Running),
    Concluding,
}

/// An event that does not go with the stage.
#[derive(Debug)]
struct Unexpected;

/// Moves to the stage that follows; returns the invocation that the event ends. Leaves the stage as it is if the two don't
/// go together.
#[inline]
fn next(stage: &mut Stage, event: Event) -> Result<Option<Box<Running>>, Unexpected> {
    match (&mut *stage, event) {
        (Stage::Settled(_) | Stage::Pending(_) | Stage::Concluding, Event::Asked(pending)) => {
            *stage = Stage::Pending(pending);
        }
        (Stage::Pending(_), Event::Started(run)) => *stage = Stage::Running(run),
        (Stage::Settled(_) | Stage::Pending(_) | Stage::Concluding, Event::Settled(why)) => {
            *stage = Stage::Settled(why.into());
        }
        (Stage::Settled(_) | Stage::Pending(_) | Stage::Concluding, Event::Removed) => {
            *stage = Stage::Settled(Rest::IDLE);
        }
        (Stage::Running(_), Event::Returned) => return Ok(replace(stage, Stage::Concluding).into_run()),
        (Stage::Running(_), Event::Abandoned(pending)) => {
            let then = pending.map_or(Then::Settled(Rest::IDLE), Then::Pending);
            if let Some(run) = replace(stage, Stage::Concluding).into_run() {
                *stage = Stage::Abandoned { run, then };
            }
        }
        // It is forgotten once its invocation has returned.
        (Stage::Running(_), Event::Removed) => {}
        (Stage::Abandoned { then, .. }, Event::Asked(pending)) => *then = Then::Pending(pending),
        (Stage::Abandoned { then, .. }, Event::Settled(why)) => *then = Then::Settled(why.into()),
        (Stage::Abandoned { then, .. }, Event::Removed) => *then = Then::Settled(Rest::IDLE),
        (Stage::Abandoned { then, .. }, Event::Returned) => {
            let after = match replace(then, Then::Settled(Rest::IDLE)) {
                Then::Settled(rest) => Stage::Settled(rest),
                Then::Pending(pending) => Stage::Pending(pending),
            };
            return Ok(replace(stage, after).into_run());
        }
        (
            Stage::Settled(_) | Stage::Pending(_) | Stage::Concluding,
            Event::Returned | Event::Abandoned(_),
        )
        | (Stage::Settled(_) | Stage::Concluding, Event::Started(_))
        | (Stage::Running(_), Event::Asked(_) | Event::Started(_) | Event::Settled(_))
        | (Stage::Abandoned { .. }, Event::Started(_) | Event::Abandoned(_)) => return Err(Unexpected),
    }
    Ok(None)
}

impl Stage {
    fn into_run(self) -> Option<Box<Running>> {
        match self {
            Stage::Running(run) | Stage::Abandoned { run, .. } => Some(run),
            Stage::Settled(_) | Stage::Pending(_) | Stage::Concluding => None,
        }
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Stage::Settled(Rest::IDLE))
    }
}

impl Lifecycle {
    /// Moves to the next stage; returns the invocation that is over by that.
    #[inline]
    pub(super) fn on(&mut self, event: Event) -> Option<Box<Running>> {
        let over = next(&mut self.0, event);
        debug_assert!(over.is_ok(), "an event that does not go with {:?}", self.0);
        over.unwrap_or_default()
    }

    /// The stage. What goes on beside an abandoned invocation counts, and not the invocation.
    pub(crate) fn at(&self) -> At<'_> {
        match &self.0 {
            Stage::Settled(rest)
            | Stage::Abandoned {
                then: Then::Settled(rest),
                ..
            } => At::Settled(rest),
            Stage::Pending(pending)
            | Stage::Abandoned {
                then: Then::Pending(pending),
                ..
            } => At::Pending(pending),
            Stage::Running(run) => At::Running(run),
            Stage::Concluding => At::Concluding,
        }
    }

    pub(crate) fn pending(&self) -> Option<&Pending> {
        match self.at() {
            At::Pending(pending) => Some(pending),
            _ => None,
        }
    }

    pub(crate) fn pending_mut(&mut self) -> Option<&mut Pending> {
        match &mut self.0 {
            Stage::Pending(pending)
            | Stage::Abandoned {
                then: Then::Pending(pending),
                ..
            } => Some(pending),
            _ => None,
        }
    }

    pub(crate) fn settled(&self) -> Option<&Settled> {
        match self.at() {
            At::Settled(why) => Some(why),
            _ => None,
        }
    }

    /// Its invocation, unless that is abandoned.
    pub(crate) fn run(&self) -> Option<&Running> {
        match &self.0 {
            Stage::Running(run) => Some(run),
            _ => None,
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Running> {
        match &mut self.0 {
            Stage::Running(run) => Some(run),
            _ => None,
        }
    }

    /// Its abandoned invocation.
    pub(crate) fn abandoned(&self) -> Option<&Running> {
        match &self.0 {
            Stage::Abandoned { run, .. } => Some(run),
            _ => None,
        }
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        !matches!(self.at(), At::Settled(_))
    }

    pub(crate) fn is_concluding(&self) -> bool {
        matches!(self.0, Stage::Concluding)
    }
}

#[cfg(test)]
impl Lifecycle {
    pub(crate) fn settled_as(why: Settled) -> Self {
        Self(Stage::Settled(why.into()))
    }

    pub(crate) fn pending_as(pending: Pending) -> Self {
        Self(Stage::Pending(pending))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::resource::Under;
    use crate::types::index::NameId;
    use crate::{InvocationId, Mono, Phase, Reason, Timestamp, Why};

    fn pending() -> Pending {
        Pending::new(Arc::new(Reason::bare(Why::Nudge)), Mono(0))
    }

    fn run() -> Box<Running> {
        Box::new(Running {
            invocation: InvocationId(1),
            phase: Phase::Reconcile,
            reason: Arc::new(Reason::bare(Why::Nudge)),
            started_at: Timestamp(0),
            begun: Mono(0),
            waited_since: Mono(0),
            cancelled: crate::graph::resource::Cancelled::No,
            rerun: None,
            under: Under {
                name: NameId::new(0),
                claims: Box::default(),
            },
            seen: None,
            answers: false,
            busy: true,
            progress: None,
        })
    }

    fn stages() -> Vec<Stage> {
        let abandoned = |then| Stage::Abandoned { run: run(), then };
        vec![
            Stage::Settled(Rest::IDLE),
            Stage::Pending(pending()),
            Stage::Running(run()),
            Stage::Concluding,
            abandoned(Then::Settled(Rest::IDLE)),
            abandoned(Then::Pending(pending())),
        ]
    }

    fn events() -> [fn() -> Event; 6] {
        [
            || Event::Asked(pending()),
            || Event::Started(run()),
            || Event::Returned,
            || Event::Abandoned(Some(pending())),
            || Event::Settled(Settled::Failed),
            || Event::Removed,
        ]
    }

    fn word(stage: &Stage) -> &'static str {
        match stage {
            Stage::Settled(_) => "settled",
            Stage::Pending(_) => "pending",
            Stage::Running(_) => "running",
            Stage::Concluding => "concluding",
            Stage::Abandoned {
                then: Then::Settled(_),
                ..
            } => "aside, settled",
            Stage::Abandoned {
                then: Then::Pending(_),
                ..
            } => "aside, pending",
        }
    }

    /// Each stage after a request, a start, a return, an abandonment, a settlement and a removal.
    const TABLE: [(&str, [&str; 6]); 6] = [
        ("settled", ["pending", "-", "-", "-", "settled", "settled"]),
        ("pending", ["pending", "running", "-", "-", "settled", "settled"]),
        (
            "running",
            ["-", "-", "concluding", "aside, pending", "-", "running"],
        ),
        ("concluding", ["pending", "-", "-", "-", "settled", "settled"]),
        (
            "aside, settled",
            [
                "aside, pending",
                "-",
                "settled",
                "-",
                "aside, settled",
                "aside, settled",
            ],
        ),
        (
            "aside, pending",
            [
                "aside, pending",
                "-",
                "pending",
                "-",
                "aside, settled",
                "aside, settled",
            ],
        ),
    ];

    #[test]
    fn every_stage_and_every_event_stand_in_the_table() {
        for (stage, (name, row)) in stages().into_iter().zip(TABLE) {
            assert_eq!(word(&stage), name);
            for (event, expected) in events().into_iter().zip(row) {
                let before = word(&stage);
                let mut after = stage.clone();
                match next(&mut after, event()) {
                    Ok(over) => {
                        assert_eq!(word(&after), expected, "{before}, {:?}", event());
                        let returns = matches!(event(), Event::Returned);
                        assert_eq!(over.is_some(), returns, "only a return ends an invocation");
                    }
                    Err(Unexpected) => assert_eq!((expected, word(&after)), ("-", before)),
                }
            }
        }
    }

    #[test]
    fn what_goes_on_beside_an_abandoned_invocation_counts() {
        for (stage, unsettled) in stages().into_iter().zip([false, true, true, true, false, true]) {
            let lifecycle = Lifecycle(stage);
            assert_eq!(lifecycle.is_unsettled(), unsettled, "{lifecycle:?}");
            let has_one = lifecycle.run().is_some() || lifecycle.abandoned().is_some();
            let runs = matches!(lifecycle.0, Stage::Running(_) | Stage::Abandoned { .. });
            assert_eq!(has_one, runs);
        }
    }
}
