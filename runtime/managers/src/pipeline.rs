//! Steps, the actions they consist of, and the choice of the next action.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stages::Stage;

/// The largest number of actions in one step. Records keep every finished action until the step is done.
pub const ACTIONS_MAX: usize = 64;

/// The way to a stage: one action, or several that may depend on one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The stage that is reached when all actions are finished.
    pub to: Stage,
    /// The actions in order; at least one.
    pub actions: Vec<Action>,
}

/// An action on the way to a stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Action {
    /// The name of the action, unique within its step.
    pub name: String,
    /// The names of the actions that must be done before this one.
    pub needs: Vec<String>,
    /// True if the step continues without this action once its attempts are used up.
    pub optional: bool,
    /// The reason to skip the action, if it is to be skipped.
    pub skip: Option<String>,
    /// The timeout and retries of this action; if none, the manager's apply.
    pub tries: Option<Tries>,
}

/// The timeout and the retries of an action.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Tries {
    /// The longest time that one attempt may take.
    pub timeout: Duration,
    /// The largest number of attempts.
    pub attempts: u32,
    /// The wait after the first failure; doubled after each further failure.
    pub base: Duration,
    /// The longest wait between attempts.
    pub cap: Duration,
}

impl Default for Tries {
    /// Returns a timeout of 5 minutes and 5 attempts, with waits that double from 1 s to at most 60 s.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(300),
            attempts: 5,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(60),
        }
    }
}

/// A finished action, as records keep it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finished {
    /// The name of the action within its step.
    pub action: String,
    /// The way in which the action ended.
    pub ending: Ending,
}

/// The way in which an action ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The action was performed.
    Done,
    /// The action was skipped, for this reason.
    Skipped(String),
    /// The action is optional and its attempts are used up; the text is its last error.
    GivenUp(String),
}

/// The next thing to do in a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next<'a> {
    /// Perform this action next.
    Act(&'a Action),
    /// Skip this action, for this reason.
    Skip(&'a Action, String),
    /// All actions are finished, so the stage is reached.
    Arrived,
    /// No action can be performed: the rest depend on one another in a circle, or on an action that does not exist.
    Stuck,
}

impl Step {
    /// Returns a step of one action with the name of the stage.
    pub fn to(stage: impl Into<Stage>) -> Self {
        let to = stage.into();
        let action = Action::new(to.as_str());
        Self {
            to,
            actions: vec![action],
        }
    }

    /// Returns a step of several actions, at most [`ACTIONS_MAX`].
    pub fn pipeline(stage: impl Into<Stage>, actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            to: stage.into(),
            actions: actions.into_iter().take(ACTIONS_MAX).collect(),
        }
    }

    /// Returns the next thing to do after the finished actions: the first action in order whose needs are met.
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
    /// Returns an action of this name without needs.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Returns the action with these needs, which must be done before.
    #[must_use]
    pub fn after<S: Into<String>>(mut self, needs: impl IntoIterator<Item = S>) -> Self {
        self.needs = needs.into_iter().map(Into::into).collect();
        self
    }

    /// Returns the action as an optional one, without which the step can continue.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// Returns the action marked to be skipped, for a reason.
    #[must_use]
    pub fn skipped(mut self, why: impl Into<String>) -> Self {
        self.skip = Some(why.into());
        self
    }

    /// Returns the action with its own timeout and retries.
    #[must_use]
    pub fn with_tries(mut self, tries: Tries) -> Self {
        self.tries = Some(tries);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a step to its end: the actions in `failing` are given up, all others succeed. Returns the events in order.
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

    /// Checks the order of actions with needs (rule M14).
    #[test]
    fn actions_are_taken_in_order_as_soon_as_their_needs_are_done() {
        assert_eq!(play(&step(), &[], vec![]), "boot greet log report");
        assert_eq!(play(&Step::to("active"), &[], vec![]), "active");
    }

    /// Checks that an interrupted step does not repeat its finished actions (rule M14).
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
