//! The goal: the stage to move towards now, as a function of the desired stage, the window and the time.

use serde::{Deserialize, Serialize};
use watershed_controller::Timestamp;
use watershed_schedule::Phase;

use crate::stages::{Stage, Stages};
use crate::window::Occurrence;

/// The stage to move towards now, and whether to use force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Goal {
    /// The stage to reach.
    pub stage: Stage,
    /// True from the cleanup deadline on, when steps to the last stage are repeated without a limit on attempts.
    pub force: bool,
}

/// The limit that an owner sets on the stages of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// The part must be removed.
    Gone,
    /// The part may go as far as its early stage.
    Early,
    /// The part may go to its desired stage; so may resources without an owner.
    #[default]
    All,
}

/// The inputs of a goal, except for the time.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The stages that the resource moves along.
    pub stages: &'a Stages,
    /// The stage that is desired, by the spec or an event.
    pub desired: &'a Stage,
    /// The window that applies, if there is one.
    pub window: Option<&'a Occurrence>,
    /// The limit that the owner sets on the resource's stages.
    pub allowed: Allowed,
    /// The time from which nothing may be left, with or without a window. Set by a part's owner.
    pub cleanup_by: Option<Timestamp>,
}

impl Wish<'_> {
    /// Returns the goal at a time.
    ///
    /// Before the lead nothing is wanted; in the lead what is desired, as far as the early stage; in the window what
    /// is desired; from its end on the last stage, and from the cleanup deadline on with force.
    pub fn goal(&self, now: Timestamp) -> Goal {
        let (stages, desired) = (self.stages, self.desired);
        let phase = self.window.map(|window| window.phase(now));
        let is_late = self.cleanup_by.is_some_and(|by| by <= now);
        if is_late || phase == Some(Phase::Expired) {
            return Goal {
                stage: stages.last().clone(),
                force: true,
            };
        }
        let stage = match phase {
            Some(Phase::Teardown) => stages.last(),
            // What is wanted gone is gone at any time.
            _ if desired == stages.last() || self.allowed == Allowed::Gone => stages.last(),
            Some(Phase::Before) => stages.first(),
            Some(Phase::Approaching) => stages.earlier(desired, stages.early()),
            _ if self.allowed == Allowed::Early => stages.earlier(desired, stages.early()),
            _ => desired,
        };
        Goal {
            stage: stage.clone(),
            force: false,
        }
    }

    /// Returns the first time after `now` at which the goal changes; none if it never does.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let goal = self.goal(now);
        self.boundaries(now).into_iter().find(|at| self.goal(*at) != goal)
    }

    /// Returns the next time at which the phase of the window changes or nothing may be left any more; none if there is
    /// no such time.
    pub fn next_boundary(&self, now: Timestamp) -> Option<Timestamp> {
        self.boundaries(now).first().copied()
    }

    fn boundaries(&self, now: Timestamp) -> Vec<Timestamp> {
        let of_window = self
            .window
            .map(|window| [window.opening, window.start, window.end, window.deadline]);
        let all = of_window.into_iter().flatten().chain(self.cleanup_by);
        let mut later: Vec<_> = all.filter(|at| *at > now).collect();
        later.sort();
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(count: usize, early: usize) -> Stages {
        let list: Vec<Stage> = (0..count).map(|n| Stage::new(format!("s{n}"))).collect();
        let early = list[early].clone();
        Stages::new(list).unwrap().with_early(early).unwrap()
    }

    const ALLOWED: [Allowed; 3] = [Allowed::Gone, Allowed::Early, Allowed::All];
    const WINDOW: Occurrence = Occurrence {
        opening: Timestamp(10),
        start: Timestamp(20),
        end: Timestamp(30),
        deadline: Timestamp(40),
    };

    /// Returns the stage and force of the goal by a naive reading of the rules, with numbers for stages and times.
    fn naive(count: usize, early: usize, desired: usize, now: i64, allowed: Allowed) -> (usize, bool) {
        let gone = count - 1;
        let desired = match allowed {
            Allowed::Gone => gone,
            Allowed::Early if desired != gone => desired.min(early),
            _ => desired,
        };
        if now >= 40 {
            (gone, true)
        } else if now >= 30 || desired == gone {
            (gone, false)
        } else if now >= 20 {
            (desired, false)
        } else if now >= 10 {
            (desired.min(early), false)
        } else {
            (0, false)
        }
    }

    /// Checks goals and their changes against a naive reading of the rules (rule M9).
    #[test]
    fn the_goal_of_every_phase_stage_and_desired_stage_is_that_of_the_naive_reference() {
        let mut cases = 0;
        for count in 2..=6 {
            for early in 0..count - 1 {
                let stages = stages(count, early);
                for desired in 0..count {
                    for (now, allowed) in (0..50).flat_map(|now| ALLOWED.map(|allowed| (now, allowed))) {
                        let wish = Wish {
                            stages: &stages,
                            desired: &stages.list()[desired],
                            window: Some(&WINDOW),
                            allowed,
                            cleanup_by: None,
                        };
                        let goal = wish.goal(Timestamp(now));
                        let found = (stages.index(&goal.stage).unwrap(), goal.force);
                        let expected = naive(count, early, desired, now, allowed);
                        assert_eq!(
                            found, expected,
                            "{count} stages, early {early}, desired {desired}, at {now}"
                        );
                        let change =
                            (now + 1..60).find(|at| naive(count, early, desired, *at, allowed) != expected);
                        assert_eq!(wish.next_change(Timestamp(now)), change.map(Timestamp));
                        let boundary = [10, 20, 30, 40].into_iter().find(|at| *at > now);
                        assert_eq!(wish.next_boundary(Timestamp(now)), boundary.map(Timestamp));
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 3 * 50 * (2 + 3 * 2 + 4 * 3 + 5 * 4 + 6 * 5));
    }

    #[test]
    fn without_a_window_the_goal_is_what_is_desired_until_nothing_may_be_left() {
        let stages = stages(4, 1);
        for desired in stages.list() {
            let wish = |cleanup_by| Wish {
                stages: &stages,
                desired,
                window: None,
                allowed: Allowed::All,
                cleanup_by,
            };
            let plain = wish(None).goal(Timestamp(0));
            assert_eq!((&plain.stage, plain.force), (desired, false));
            assert_eq!(wish(None).next_change(Timestamp(0)), None);
            let by = wish(Some(Timestamp(5)));
            assert_eq!(by.goal(Timestamp(4)), plain);
            assert_eq!(by.goal(Timestamp(5)).stage, *stages.last());
            assert!(by.goal(Timestamp(5)).force);
            assert_eq!(by.next_change(Timestamp(0)), Some(Timestamp(5)));
        }
    }
}
