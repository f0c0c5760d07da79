//! Steps and the actions that they are made of, and which of them comes next.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stages::Stage;

/// The most actions of one step: each finished one is kept in the record until the step is done.
pub const ACTIONS_MAX: usize = 64;

/// The way to a stage: one action, or several of which some need others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The stage that is reached when all is done.
    pub to: Stage,
    /// The actions in their order, at least one.
    pub actions: Vec<Action>,
}

/// One thing to do on the way to a stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Action {
    /// The name, which no other action of the step has.
    pub name: String,
    /// The actions that must be done before.
    pub needs: Vec<String>,
    /// Set if the step goes on without it when its attempts are used up.
    pub optional: bool,
    /// The reason for which it is left out, if it is.
    pub skip: Option<String>,
    /// Its own timeout and attempts, in place of the manager's.
    pub tries: Option<Tries>,
}

/// The time that one attempt may take, and how often and when it is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tries {
    /// The longest that one attempt may take.
    pub timeout: Duration,
    /// The most attempts.
    pub attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Default for Tries {
    /// 5 minutes for an attempt, 5 attempts, waits of 1 s doubling to 60 s.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            attempts: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
        }
    }
}

/// An action that needs nothing more, as records keep it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// The name of the action.
    pub action: String,
    /// The way in which it ended.
    pub ending: Ending,
}

/// The ways in which an action ends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It was done.
    Done,
    /// It was left out, for this reason.
    Skipped(String),
    /// It is optional and its attempts are used up; the last failure.
    GivenUp(String),
}

/// The next thing to do of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next<'a> {
    /// Perform this.
    Act(&'a Action),
    /// Leave this out, for this reason.
    Skip(&'a Action, String),
    /// Nothing: the stage is reached.
    Arrived,
    /// The actions need one another in a circle, or something that is no action.
    Stuck,
}

impl Step {
    /// Returns the step of one action, named like the stage.
    pub fn to(stage: impl Into<Stage>) -> Self {
        let to = stage.into();
        let action = Action::new(to.as_str());
        Self {
            to,
            actions: vec![action],
        }
    }

    /// Returns the step of several actions.
    pub fn pipeline(stage: impl Into<Stage>, actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            to: stage.into(),
            actions: actions.into_iter().take(ACTIONS_MAX).collect(),
        }
    }

    /// Returns the next thing to do, given what is finished: the first action in order whose needs are done.
    ///
    /// An action that needs one which was not done, because it was left out or given up, is left out as well.
    pub fn next<'a>(&'a self, finished: &[Finished]) -> Next<'a> {
        let ending = |name: &str| {
            finished
                .iter()
                .find(|one| one.action == name)
                .map(|one| &one.ending)
        };
        let mut is_open = false;
        for action in &self.actions {
            if ending(&action.name).is_some() {
                continue;
            }
            is_open = true;
            if let Some(why) = &action.skip {
                return Next::Skip(action, why.clone());
            }
            let lacking = action
                .needs
                .iter()
                .find(|need| ending(need).is_some_and(|ending| *ending != Ending::Done));
            if let Some(need) = lacking {
                return Next::Skip(action, format!("it needs \"{need}\", which was not done"));
            }
            if action.needs.iter().all(|need| ending(need).is_some()) {
                return Next::Act(action);
            }
        }
        if is_open { Next::Stuck } else { Next::Arrived }
    }
}

impl Action {
    /// Returns the action of this name, which needs nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the same, to be done after these.
    #[must_use]
    pub fn after<S: Into<String>>(mut self, needs: impl IntoIterator<Item = S>) -> Self {
        self.needs = needs.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the same, without which the step goes on when its attempts are used up.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns the same, left out for a reason.
    #[must_use]
    pub fn skipped(mut self, why: impl Into<String>) -> Self {
        self.skip = Some(why.into());
        self
    }

    /// Returns the same with a timeout and attempts of its own.
    #[must_use]
    pub fn with_tries(mut self, tries: Tries) -> Self {
        self.tries = Some(tries);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries a step out: what is in `failing` is given up, all else done. Returns what happened in order.
    fn play(step: &Step, failing: &[&str], mut finished: Vec<Finished>) -> String {
        let mut story = Vec::new();
        loop {
            let (action, ending, sign) = match step.next(&finished) {
                Next::Act(action) if failing.contains(&action.name.as_str()) => {
                    (action, Ending::GivenUp("no".into()), "!")
                }
                Next::Act(action) => (action, Ending::Done, ""),
                Next::Skip(action, why) => (action, Ending::Skipped(why), "-"),
                Next::Arrived => return story.join(" "),
                Next::Stuck => return story.join(" ") + " stuck",
            };
            story.push(format!("{sign}{}", action.name));
            finished.push(Finished {
                action: action.name.clone(),
                ending,
            });
        }
    }

    fn step() -> Step {
        let actions = [
            Action::new("greet").after(["boot"]),
            Action::new("boot"),
            Action::new("log").optional(),
            Action::new("report").after(["greet", "log"]),
        ];
        Step::pipeline("active", actions)
    }

    /// M14.
    #[test]
    fn actions_are_taken_in_order_as_soon_as_their_needs_are_done() {
        assert_eq!(play(&step(), &[], vec![]), "boot greet log report");
        assert_eq!(play(&Step::to("active"), &[], vec![]), "active");
    }

    /// M14.
    #[test]
    fn what_is_finished_is_never_repeated_wherever_it_was_interrupted() {
        let all = ["boot", "greet", "log", "report"];
        for done in 0..=all.len() {
            let finished = all[..done].iter().map(|name| Finished {
                action: (*name).to_owned(),
                ending: Ending::Done,
            });
            assert_eq!(play(&step(), &[], finished.collect()), all[done..].join(" "));
        }
    }

    #[test]
    fn what_needs_something_that_was_not_done_is_left_out() {
        assert_eq!(play(&step(), &["log"], vec![]), "boot greet !log -report");
        assert_eq!(play(&step(), &["boot"], vec![]), "!boot -greet log -report");
        let mut quiet = step();
        quiet.actions[0].skip = Some("quiet".into());
        assert_eq!(play(&quiet, &[], vec![]), "-greet boot log -report");
    }

    #[test]
    fn needs_that_can_not_be_met_are_noticed() {
        let circle = [
            Action::new("a").after(["b"]),
            Action::new("b").after(["a"]),
            Action::new("c"),
        ];
        assert_eq!(play(&Step::pipeline("x", circle), &[], vec![]), "c stuck");
        let unknown = [Action::new("a").after(["nothing"])];
        assert_eq!(play(&Step::pipeline("x", unknown), &[], vec![]), " stuck");
    }
}
