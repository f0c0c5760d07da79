//! Lifecycle of one resource: its stage, and the transition for each event.
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

/// Stage of a resource, changed only by an [`Event`].
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Lifecycle(Inner);

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Inner {
    Settled(Rest),
    Pending(Pending),
    Running(Box<Running>),
    Concluding,
    Abandoned { run: Box<Running>, then: Then },
}

/// Stage of a resource in addition to its abandoned invocation.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
enum Then {
    Settled(Rest),
    Pending(Pending),
}

/// Reason why a resource is settled. Boxed, because most resources are idle and the other reasons are large.
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

/// Event that moves a resource from one stage to another.
#[derive(Debug)]
pub(crate) enum Event {
    /// The resource is requested.
    Asked(Pending),
    /// An invocation of the resource starts.
    Started(Box<Running>),
    /// The invocation has returned, abandoned or not.
    Returned,
    /// The invocation is abandoned. The resource is requested again at the same time, unless it is gone.
    Abandoned(Option<Pending>),
    /// The resource settles for this reason.
    Settled(Settled),
    /// The resource is removed from the catalog; an invocation may still run.
    Removed,
}

/// Stage of a resource in the form that the scheduler needs.
#[derive(Debug)]
pub(crate) enum At<'a> {
    Settled(&'a Settled),
    Pending(&'a Pending),
    Running(&'a Running),
    Concluding,
}

/// Error for an event that is not allowed in the present stage.
#[derive(Debug)]
struct Unexpected;

/// Moves to the stage that follows an event; returns the invocation that the event ends. Leaves the stage unchanged on
/// error.
#[inline]
fn next(stage: &mut Inner, event: Event) -> Result<Option<Box<Running>>, Unexpected> {
    match (&mut *stage, event) {
        (Inner::Settled(_) | Inner::Pending(_) | Inner::Concluding, Event::Asked(pending)) => {
            *stage = Inner::Pending(pending);
        }
        (Inner::Pending(_), Event::Started(run)) => *stage = Inner::Running(run),
        (Inner::Settled(_) | Inner::Pending(_) | Inner::Concluding, Event::Settled(why)) => {
            *stage = Inner::Settled(why.into());
        }
        (Inner::Settled(_) | Inner::Pending(_) | Inner::Concluding, Event::Removed) => {
            *stage = Inner::Settled(Rest::IDLE);
        }
        (Inner::Running(_), Event::Returned) => return Ok(replace(stage, Inner::Concluding).into_run()),
        (Inner::Running(_), Event::Abandoned(pending)) => {
            let then = pending.map_or(Then::Settled(Rest::IDLE), Then::Pending);
            if let Some(run) = replace(stage, Inner::Concluding).into_run() {
                *stage = Inner::Abandoned { run, then };
            }
        }
        // It is forgotten once its invocation has returned.
        (Inner::Running(_), Event::Removed) => {}
        (Inner::Abandoned { then, .. }, Event::Asked(pending)) => *then = Then::Pending(pending),
        (Inner::Abandoned { then, .. }, Event::Settled(why)) => *then = Then::Settled(why.into()),
        (Inner::Abandoned { then, .. }, Event::Removed) => *then = Then::Settled(Rest::IDLE),
        (Inner::Abandoned { then, .. }, Event::Returned) => {
            let after = match replace(then, Then::Settled(Rest::IDLE)) {
                Then::Settled(rest) => Inner::Settled(rest),
                Then::Pending(pending) => Inner::Pending(pending),
            };
            return Ok(replace(stage, after).into_run());
        }
        (
            Inner::Settled(_) | Inner::Pending(_) | Inner::Concluding,
            Event::Returned | Event::Abandoned(_),
        )
        | (Inner::Settled(_) | Inner::Concluding, Event::Started(_))
        | (Inner::Running(_), Event::Asked(_) | Event::Started(_) | Event::Settled(_))
        | (Inner::Abandoned { .. }, Event::Started(_) | Event::Abandoned(_)) => return Err(Unexpected),
    }
    Ok(None)
}

impl Inner {
    fn into_run(self) -> Option<Box<Running>> {
        match self {
            Inner::Running(run) | Inner::Abandoned { run, .. } => Some(run),
            Inner::Settled(_) | Inner::Pending(_) | Inner::Concluding => None,
        }
    }
}

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Inner::Settled(Rest::IDLE))
    }
}

impl Lifecycle {
    /// Moves to the next stage; returns the invocation that this ends.
    #[inline]
    pub(super) fn on(&mut self, event: Event) -> Option<Box<Running>> {
        let over = next(&mut self.0, event);
        // In release the stage stays: one resource that is wrong, and found by the checks, must not stop the others.
        debug_assert!(over.is_ok(), "an event that does not go with {:?}", self.0);
        over.unwrap_or_default()
    }

    /// Returns the stage. Beside an abandoned invocation, that is the stage of everything else.
    pub(crate) fn at(&self) -> At<'_> {
        match &self.0 {
            Inner::Settled(rest)
            | Inner::Abandoned {
                then: Then::Settled(rest),
                ..
            } => At::Settled(rest),
            Inner::Pending(pending)
            | Inner::Abandoned {
                then: Then::Pending(pending),
                ..
            } => At::Pending(pending),
            Inner::Running(run) => At::Running(run),
            Inner::Concluding => At::Concluding,
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
            Inner::Pending(pending)
            | Inner::Abandoned {
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

    /// Returns the running invocation; none if it is abandoned or nothing runs.
    pub(crate) fn run(&self) -> Option<&Running> {
        match &self.0 {
            Inner::Running(run) => Some(run),
            _ => None,
        }
    }

    pub(crate) fn run_mut(&mut self) -> Option<&mut Running> {
        match &mut self.0 {
            Inner::Running(run) => Some(run),
            _ => None,
        }
    }

    /// Returns the abandoned invocation, if there is one.
    pub(crate) fn abandoned(&self) -> Option<&Running> {
        match &self.0 {
            Inner::Abandoned { run, .. } => Some(run),
            _ => None,
        }
    }

    pub(crate) fn is_unsettled(&self) -> bool {
        !matches!(self.at(), At::Settled(_))
    }

    pub(crate) fn is_concluding(&self) -> bool {
        matches!(self.0, Inner::Concluding)
    }
}

#[cfg(test)]
impl Lifecycle {
    pub(crate) fn settled_as(why: Settled) -> Self {
        Self(Inner::Settled(why.into()))
    }

    pub(crate) fn pending_as(pending: Pending) -> Self {
        Self(Inner::Pending(pending))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::resource::Under;
    use crate::types::index::NameId;
    use crate::{InvocationId, Mono, Phase, Reason, Timestamp, Trigger};

    fn pending() -> Pending {
        Pending::new(Arc::new(Reason::bare(Trigger::Nudge)), Mono(0))
    }

    fn run() -> Box<Running> {
        Box::new(Running {
            invocation: InvocationId(1),
            phase: Phase::Reconcile,
            reason: Arc::new(Reason::bare(Trigger::Nudge)),
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

    fn stages() -> Vec<Inner> {
        let abandoned = |then| Inner::Abandoned { run: run(), then };
        vec![
            Inner::Settled(Rest::IDLE),
            Inner::Pending(pending()),
            Inner::Running(run()),
            Inner::Concluding,
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

    fn word(stage: &Inner) -> &'static str {
        match stage {
            Inner::Settled(_) => "settled",
            Inner::Pending(_) => "pending",
            Inner::Running(_) => "running",
            Inner::Concluding => "concluding",
            Inner::Abandoned {
                then: Then::Settled(_),
                ..
            } => "aside, settled",
            Inner::Abandoned {
                then: Then::Pending(_),
                ..
            } => "aside, pending",
        }
    }

    /// Transition table: for each stage the next one after a request, start, return, abandonment, settlement and
    /// removal.
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
            let runs = matches!(lifecycle.0, Inner::Running(_) | Inner::Abandoned { .. });
            assert_eq!(has_one, runs);
        }
    }
}
