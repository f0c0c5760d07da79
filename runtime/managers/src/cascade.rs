//! The cascade: the decisions on how far each part may go, and the effect of failed parts on their owner.
//!
//! Only this decides what parts may do, so order and gates are one function of what is there.

use crate::desired::OnPartFailure;
use crate::goal::Allowed;
use crate::stages::{Stage, Stages};

/// A part as its owner sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seat<'a> {
    /// The name of the part, for messages.
    pub(crate) name: &'a str,
    /// The place in the order of parts; parts in the same place move together.
    pub(crate) order: u32,
    /// The stage that this part must reach before later parts go on; none if later parts need not wait.
    pub(crate) gates_next: Option<&'a Stage>,
    /// The state in which the part was found.
    pub(crate) found: PartState<'a>,
}

/// The state in which an owner finds a part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum PartState<'a> {
    /// No resource for this part exists.
    Missing,
    /// The part is a managed resource.
    Managed {
        /// The stages of the part and its present stage; none before its first pass.
        at: Option<(&'a Stages, &'a Stage)>,
        /// The stage that the part should reach.
        desired: &'a Stage,
        /// The present limit on the stages of the part.
        allowed: Allowed,
        /// True if nothing of the part is left, no step is under way, and no stage is wanted.
        idle: bool,
        /// True if the attempts of the part, or of one of its own parts, are used up.
        failed: bool,
    },
    /// The part is of a kind without stages.
    Other {
        /// True if the part is ready for use.
        ready: bool,
        /// True if the part has failed permanently.
        failed: bool,
        /// True while the part is being deleted.
        leaving: bool,
    },
}

/// The level to which an owner's parts may rise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// All parts are removed, the last in order first, because no stage is wanted or a part has failed.
    Down,
    /// No part changes, because the owner is absent or must not be built further.
    Keep,
    /// Parts go as far as their early stages.
    Early,
    /// Parts go as far as desired, in order.
    Full,
}

/// The decision about a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// A managed part exists, with this limit on its stages.
    Allow(Allowed),
    /// A part without stages is created.
    Create,
    /// A part without stages is deleted.
    Delete,
    /// The part stays unchanged.
    Keep,
}

/// The effect of failed parts on their owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict<'a> {
    /// No part has failed.
    Fine,
    /// The named parts have failed, and the others continue.
    Degraded(Vec<&'a str>),
    /// The owner has failed because of the named part.
    Failed(&'a str),
}

impl Seat<'_> {
    /// Returns true if nothing of the part is left.
    pub(crate) fn is_down(&self) -> bool {
        match &self.found {
            PartState::Missing => true,
            PartState::Managed { idle, .. } => *idle,
            PartState::Other { .. } => false,
        }
    }

    /// Returns true if the part has reached its early stage, or its desired stage if that comes first.
    pub(crate) fn is_early(&self) -> bool {
        match &self.found {
            PartState::Managed {
                at: Some((stages, stage)),
                desired,
                ..
            } => !stages.is_before(stage, stages.earlier(desired, stages.early())),
            PartState::Managed { at: None, .. } | PartState::Missing => false,
            PartState::Other { .. } => true,
        }
    }

    /// Returns true if the part is past its early stage and not gone.
    pub(crate) fn is_beyond_early(&self) -> bool {
        match &self.found {
            PartState::Managed {
                at: Some((stages, stage)),
                ..
            } => stages.is_before(stages.early(), stage) && !stages.is_nothing(stage),
            PartState::Managed { at: None, .. } | PartState::Missing => false,
            PartState::Other { .. } => true,
        }
    }

    /// Returns true if the part has reached its desired stage.
    pub(crate) fn is_full(&self) -> bool {
        match &self.found {
            PartState::Managed {
                at: Some((stages, stage)),
                desired,
                ..
            } => !stages.is_before(stage, desired),
            PartState::Managed { at: None, .. } | PartState::Missing => false,
            PartState::Other { ready, leaving, .. } => *ready && !*leaving,
        }
    }

    /// Returns true if later parts need not wait for this part.
    fn is_open(&self) -> bool {
        let Some(gate) = self.gates_next else { return true };
        match &self.found {
            PartState::Managed {
                at: Some((stages, stage)),
                ..
            } => stages.index(gate).is_some() && !stages.is_before(stage, gate),
            PartState::Managed { at: None, .. } | PartState::Missing => false,
            PartState::Other { .. } => self.is_full(),
        }
    }

    fn has_failed(&self) -> bool {
        match &self.found {
            PartState::Missing => false,
            PartState::Managed { failed, .. } | PartState::Other { failed, .. } => *failed,
        }
    }

    fn is_managed(&self, declared_managed: bool) -> bool {
        match self.found {
            PartState::Missing => declared_managed,
            PartState::Managed { .. } => true,
            PartState::Other { .. } => false,
        }
    }
}

/// Returns a decision for each part, in the order given. `managed` tells for each part whether it has stages.
///
/// A gate holds back; it takes nothing back that it has let through, and neither does a part that fell behind.
pub(crate) fn cascade(level: Level, seats: &[Seat<'_>], managed: &[bool]) -> Vec<Order> {
    let decide = |(seat, managed): (&Seat<'_>, &bool)| {
        if seat.is_managed(*managed) {
            for_managed(level, seat, seats)
        } else {
            for_other(level, seat, seats)
        }
    };
    seats.iter().zip(managed).map(decide).collect()
}

fn for_managed(level: Level, seat: &Seat<'_>, seats: &[Seat<'_>]) -> Order {
    let (is_missing, allowed) = match seat.found {
        PartState::Managed { allowed, .. } => (false, allowed),
        _ => (true, Allowed::Gone),
    };
    match level {
        Level::Keep => Order::Keep,
        Level::Down if is_missing => Order::Keep,
        Level::Down if are_down_behind(seat, seats) => Order::Allow(Allowed::Gone),
        Level::Down => Order::Keep,
        Level::Early => Order::Allow(Allowed::Early),
        Level::Full if allowed == Allowed::All || is_open_for(seat, seats) => Order::Allow(Allowed::All),
        Level::Full => Order::Allow(Allowed::Early),
    }
}

fn for_other(level: Level, seat: &Seat<'_>, seats: &[Seat<'_>]) -> Order {
    let is_missing = seat.found == PartState::Missing;
    match level {
        Level::Keep => Order::Keep,
        Level::Full if is_missing && is_open_for(seat, seats) => Order::Create,
        Level::Full => Order::Keep,
        _ if is_missing => Order::Keep,
        Level::Down if !are_down_behind(seat, seats) => Order::Keep,
        Level::Down | Level::Early => Order::Delete,
    }
}

/// Returns true if nothing is left of any part that comes later in the order.
fn are_down_behind(seat: &Seat<'_>, seats: &[Seat<'_>]) -> bool {
    let mut behind = seats.iter().filter(|other| other.order > seat.order);
    behind.all(Seat::is_down)
}

/// Returns true if all parts that come earlier in the order have reached their gates.
fn is_open_for(seat: &Seat<'_>, seats: &[Seat<'_>]) -> bool {
    let mut before = seats.iter().filter(|other| other.order < seat.order);
    before.all(Seat::is_open)
}

/// Returns the effect of failed parts on their owner.
pub(crate) fn verdict<'a>(seats: &[Seat<'a>], meaning: OnPartFailure) -> Verdict<'a> {
    let failed: Vec<&str> = seats
        .iter()
        .filter(|seat| seat.has_failed())
        .map(|seat| seat.name)
        .collect();
    match (failed.first(), meaning) {
        (None, _) => Verdict::Fine,
        (Some(first), OnPartFailure::Abort) => Verdict::Failed(first),
        (Some(first), OnPartFailure::Continue) if failed.len() == seats.len() => Verdict::Failed(first),
        _ => Verdict::Degraded(failed),
    }
}

/// Returns the stage of an owner with its parts: its own stage, or an earlier one if parts lag behind.
pub(crate) fn rolled_up<'a>(stages: &'a Stages, own: &'a Stage, seats: &[Seat<'_>]) -> &'a Stage {
    if own == stages.first() || seats.is_empty() {
        return own;
    }
    if own == stages.last() {
        let before = stages.list().iter().rev().nth(1);
        return if seats.iter().all(Seat::is_down) {
            own
        } else {
            before.unwrap_or(own)
        };
    }
    let is_beyond_early = stages.is_before(stages.early(), own);
    if is_beyond_early && seats.iter().all(Seat::is_full) {
        return own;
    }
    if seats.iter().all(Seat::is_early) {
        return if is_beyond_early { stages.early() } else { own };
    }
    stages.first()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages() -> Stages {
        let stages = Stages::new(["0absent", "prepared", "active", "done", "gone"]).unwrap();
        stages.with_early("prepared").unwrap()
    }

    /// A notation for tests: each part is one character for its stage (`.` missing, `?` before its first pass) and one
    /// for its permission.
    struct Table {
        stages: Stages,
        names: Vec<Stage>,
    }

    impl Table {
        fn new() -> Self {
            let stages = stages();
            let names = stages.list().to_vec();
            Self { stages, names }
        }

        fn found(&self, text: &str) -> PartState<'_> {
            let mut signs = text.chars();
            let (stage, allowed) = (signs.next().unwrap(), signs.next());
            let at = match stage {
                '.' => return PartState::Missing,
                '?' => None,
                stage => {
                    let mut all = self.names.iter();
                    let found = all.find(|name| name.as_str().starts_with(stage));
                    Some((&self.stages, found.unwrap()))
                }
            };
            PartState::Managed {
                at,
                desired: &self.names[2],
                allowed: match allowed {
                    Some('G') => Allowed::Gone,
                    Some('E') => Allowed::Early,
                    _ => Allowed::All,
                },
                idle: "0g".contains(stage) && !text.ends_with('*'),
                failed: text.ends_with('!'),
            }
        }

        /// Returns three parts: two of order 1 with the gate `active`, and one of order 2.
        fn seats(&self, found: &str) -> Vec<Seat<'_>> {
            let orders = [1, 1, 2];
            let seat = |(at, text)| Seat {
                name: ["a", "b", "c"][at],
                order: orders[at],
                gates_next: (orders[at] == 1).then(|| &self.names[2]),
                found: self.found(text),
            };
            found.split(' ').enumerate().map(seat).collect()
        }

        fn decide(&self, level: Level, found: &str) -> String {
            let orders = cascade(level, &self.seats(found), &[true; 3]);
            let sign = |order: &Order| match order {
                Order::Allow(Allowed::Gone) => "G",
                Order::Allow(Allowed::Early) => "E",
                Order::Allow(Allowed::All) => "A",
                Order::Keep => "-",
                other => panic!("{other:?} for a managed part"),
            };
            orders.iter().map(sign).collect()
        }
    }

    /// Checks that parts rise in order through their gates, and are removed in reverse order (rule M7).
    #[test]
    fn parts_go_up_in_order_through_their_gates_and_down_in_reverse() {
        let table = Table::new();
        let cases = [
            // Nothing is made that is not wanted.
            (Level::Down, ". . .", "---"),
            (Level::Keep, ". . .", "---"),
            (Level::Keep, "aA pE .", "---"),
            (Level::Early, ". . .", "EEE"),
            (Level::Full, ". . .", "AAE"),
            // A gate opens when all in front of it have come as far as they say.
            (Level::Full, "?A ?A ?E", "AAE"),
            (Level::Full, "aA pA pE", "AAE"),
            (Level::Full, "pA aA pE", "AAE"),
            (Level::Full, "aA aA pE", "AAA"),
            (Level::Full, "dA aA ?E", "AAA"),
            (Level::Full, "gA gA pE", "AAA"),
            // It holds back and takes nothing back.
            (Level::Full, "pA aA aA", "AAA"),
            (Level::Full, "aE aE .", "AAA"),
            // Before the window begins everything stays early.
            (Level::Early, "aA aA aA", "EEE"),
            (Level::Early, "aG gG gG", "EEE"),
            // Down: the last first, and never before those behind are gone.
            (Level::Down, "aA aA aA", "--G"),
            (Level::Down, "aA aA pG", "--G"),
            (Level::Down, "aA aA ?G", "--G"),
            (Level::Down, "aA aA gG", "GGG"),
            (Level::Down, "aA aA aG", "--G"),
            (Level::Down, "aA aA .", "GG-"),
            // One that is about to begin is not gone.
            (Level::Down, "aA aA 0E*", "--G"),
            (Level::Down, "pE . gG", "G-G"),
            // That one has failed changes nothing about it.
            (Level::Down, "aA! aA aA", "--G"),
            (Level::Down, "aA aA pE!", "--G"),
            (Level::Down, "aA . pE", "--G"),
        ];
        for (level, found, expected) in cases {
            assert_eq!(table.decide(level, found), expected, "{level:?} with {found}");
        }
    }

    /// Checks order and gates for all combinations of three parts (rule M7).
    #[test]
    fn no_part_is_allowed_more_than_order_and_gates_say_whatever_is_found() {
        let table = Table::new();
        let all: Vec<String> = "?0padg"
            .chars()
            .flat_map(|stage| ["G", "E", "A"].map(|allowed| format!("{stage}{allowed}")))
            .chain([".".to_owned()])
            .collect();
        for (a, b, c) in triples(&all) {
            let found = format!("{a} {b} {c}");
            let is_reached = |text: &str| "adg".contains(text.chars().next().unwrap());
            let full = table.decide(Level::Full, &found);
            if full.ends_with('A') {
                assert!(
                    c.ends_with('A') || (is_reached(a) && is_reached(b)),
                    "{found} gives {full}"
                );
            }
            let down = table.decide(Level::Down, &found);
            if down.starts_with('G') || down[1..].starts_with('G') {
                assert!(".g0".contains(c.chars().next().unwrap()), "{found} gives {down}");
            }
            assert!(!table.decide(Level::Early, &found).contains('A'));
        }
    }

    fn triples(all: &[String]) -> impl Iterator<Item = (&String, &String, &String)> {
        let pairs = move |a| all.iter().map(move |b| (a, b));
        all.iter()
            .flat_map(pairs)
            .flat_map(move |(a, b)| all.iter().map(move |c| (a, b, c)))
    }

    #[test]
    fn parts_of_other_kinds_are_created_in_their_turn_and_deleted_on_the_way_down() {
        let table = Table::new();
        let other = |ready| PartState::Other {
            ready,
            failed: false,
            leaving: false,
        };
        let decide = |level, first: &str, second: PartState<'_>| {
            let mut seats = table.seats(first);
            seats.truncate(1);
            seats.push(Seat {
                name: "service",
                order: 2,
                gates_next: None,
                found: second,
            });
            cascade(level, &seats, &[true, false])[1]
        };
        assert_eq!(decide(Level::Full, "pA", PartState::Missing), Order::Keep);
        assert_eq!(decide(Level::Full, "dA", PartState::Missing), Order::Create);
        assert_eq!(decide(Level::Full, "pA", other(false)), Order::Keep);
        assert_eq!(decide(Level::Early, "dA", PartState::Missing), Order::Keep);
        assert_eq!(decide(Level::Down, "dA", other(true)), Order::Delete);
        assert_eq!(decide(Level::Keep, "dA", other(true)), Order::Keep);
    }

    /// Checks when failed parts fail their owner, for both settings (rule M6).
    #[test]
    fn a_failed_part_fails_its_owner_at_once_or_only_when_all_have_failed() {
        let table = Table::new();
        let judge = |found: &str, meaning| match verdict(&table.seats(found), meaning) {
            Verdict::Fine => "fine".to_owned(),
            Verdict::Degraded(names) => format!("degraded by {}", names.join(" ")),
            Verdict::Failed(name) => format!("failed by {name}"),
        };
        for (found, abort, goes_on) in [
            ("aA aA aA", "fine", "fine"),
            ("aA aA! aA", "failed by b", "degraded by b"),
            ("aA! aA! aA", "failed by a", "degraded by a b"),
            ("aA! aA! aA!", "failed by a", "failed by a"),
        ] {
            assert_eq!(judge(found, OnPartFailure::Abort), abort, "{found}");
            assert_eq!(judge(found, OnPartFailure::Continue), goes_on, "{found}");
        }
        assert_eq!(verdict(&[], OnPartFailure::Continue), Verdict::Fine);
    }

    /// Checks the stage of an owner with its parts (rule M8).
    #[test]
    fn an_owner_is_as_far_as_itself_and_its_parts() {
        let table = Table::new();
        let stage = |own: &str, found: &str| {
            let own = Stage::from(own);
            rolled_up(&table.stages, &own, &table.seats(found)).to_string()
        };
        for (own, found, expected) in [
            ("0absent", ". . .", "0absent"),
            ("prepared", ". . .", "0absent"),
            ("prepared", "pE pE pE", "prepared"),
            ("prepared", "pE ?E pE", "0absent"),
            ("active", "pA pA pE", "prepared"),
            ("active", "dA pA pE", "prepared"),
            ("active", "aA aA aA", "active"),
            ("active", "dA dA dA", "active"),
            ("active", "gG gG gG", "active"),
            ("gone", "gG gG gG", "gone"),
            ("gone", "gG gG .", "gone"),
            ("gone", "gG pG gG", "done"),
        ] {
            assert_eq!(stage(own, found), expected, "{own} with {found}");
        }
        assert_eq!(rolled_up(&table.stages, &table.names[2], &[]).as_str(), "active");
    }
}
