//! Whether the machine holds together: one function for each numbered rule that is a statement about a state, and for
//! each invariant that the rules lean on.
//!
//! Each computes what it checks from scratch, from rows, refs and stages, and compares that with what the machine
//! counts and remembers. C8, C9 and C17 speak of what happens, not of what is; the simulator checks them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Subject;
use crate::core::Core;
use crate::resource::Slot;

mod graph;
mod invocations;
mod marks;
mod names;
mod stored;
mod times;
mod waiting;

pub use stored::{Compared, Consistency};

/// Findings of one rule that are told; a broken count can be wrong in every resource of a catalog.
const FINDINGS_PER_RULE: usize = 20;

/// What a finding breaks: a rule of the controller by its number, or what the machine needs for all of them.
///
/// ```
/// use watershed_core::Rule;
///
/// assert_eq!(Rule::C6.to_string(), "C6");
/// assert_eq!(Rule::Times.as_str(), "times");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Rule {
    /// At most one invocation per resource, and one under each name.
    C1,
    /// At most one invocation that is not cancelled on a path.
    C2,
    /// What runs above and below is counted.
    C3,
    /// Pending is closed downwards; what goes on below a pending resource is known.
    C4,
    /// An invocation that is not cancelled has seen what there is to see.
    C5,
    /// Unfinished deletes and renames are known, counted, and in order.
    C6,
    /// Exactly the members of cycles are on one, settle together, and say so.
    C7,
    /// Abandoned invocations stand aside, and name what they keep out.
    C10,
    /// No lost wake-ups: whatever is pending waits for something that will have it considered.
    C11,
    /// The limits hold, and what could start has started.
    C12,
    /// Each live resource is the one of its name, and every claim on a name is known.
    C13,
    /// Every edge between live resources is counted, and no other.
    C14,
    /// Who owns what is known.
    C15,
    /// Everything that is unsettled is waited for, and callers wait only for that.
    C18,
    /// Paused resources settle as such.
    C19,
    /// Request 1: those of `first` kinds that hold others back are known.
    Gate,
    /// Requests 5 to 8 and the deadlines: what is due is on the timeline, and nothing else is.
    Times,
    /// Every change is on its way to the store, and nothing is newer than the catalog.
    Durability,
    /// The store holds what the machine holds.
    Stored,
}

impl Rule {
    /// As it is called in documents: `C6`.
    pub fn as_str(self) -> &'static str {
        match self {
            Rule::C1 => "C1",
            Rule::C2 => "C2",
            Rule::C3 => "C3",
            Rule::C4 => "C4",
            Rule::C5 => "C5",
            Rule::C6 => "C6",
            Rule::C7 => "C7",
            Rule::C10 => "C10",
            Rule::C11 => "C11",
            Rule::C12 => "C12",
            Rule::C13 => "C13",
            Rule::C14 => "C14",
            Rule::C15 => "C15",
            Rule::C18 => "C18",
            Rule::C19 => "C19",
            Rule::Gate => "gate",
            Rule::Times => "times",
            Rule::Durability => "durability",
            Rule::Stored => "stored",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that does not hold.
///
/// ```
/// # use watershed_core::*;
/// # let now = Now::default();
/// # let kinds = vec![KindOptions::new("page")];
/// # let (mut core, mut effects) = Core::open(now, Limits::default(), kinds, Stored::default())?;
/// # let uid = Uid(uuid::Uuid::from_u128(1));
/// assert_eq!(core.check_consistency(), [], "nothing is wrong");
/// # core.handle(now, Input::Time, &mut effects);
/// # assert_eq!(core.check_consistency(), []);
/// # Ok::<(), OpenError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// What it breaks.
    pub rule: Rule,
    /// The resource that it is about; none for what is about the whole.
    pub subject: Option<Subject>,
    /// What is wrong, for whoever debugs the controller.
    pub detail: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.rule)?;
        if let Some(subject) = &self.subject {
            write!(f, "\"{}\" ", subject.key)?;
        }
        f.write_str(&self.detail)
    }
}

/// The function of one rule.
type Check = fn(&Core, &mut Findings);

/// Every rule that is checked, in order.
const CHECKS: [(Rule, Check); 18] = [
    (Rule::C1, Core::check_c1),
    (Rule::C2, Core::check_c2),
    (Rule::C3, Core::check_c3),
    (Rule::C4, Core::check_c4),
    (Rule::C5, Core::check_c5),
    (Rule::C6, Core::check_c6),
    (Rule::C7, Core::check_c7),
    (Rule::C10, Core::check_c10),
    (Rule::C11, Core::check_c11),
    (Rule::C12, Core::check_c12),
    (Rule::C13, Core::check_c13),
    (Rule::C14, Core::check_c14),
    (Rule::C15, Core::check_c15),
    (Rule::C18, Core::check_c18),
    (Rule::C19, Core::check_c19),
    (Rule::Gate, Core::check_gate),
    (Rule::Times, Core::check_times),
    (Rule::Durability, Core::check_durability),
];

/// What was found so far.
struct Findings {
    rule: Rule,
    of_rule: usize,
    list: Vec<Finding>,
}

impl Findings {
    fn of(rule: Rule) -> Self {
        Self {
            rule,
            of_rule: 0,
            list: Vec::new(),
        }
    }

    fn begin(&mut self, rule: Rule) {
        (self.rule, self.of_rule) = (rule, 0);
    }

    fn add(&mut self, subject: Option<Subject>, detail: String) {
        self.of_rule += 1;
        if self.of_rule <= FINDINGS_PER_RULE {
            self.list.push(Finding {
                rule: self.rule,
                subject,
                detail,
            });
        }
    }

    /// Something about the whole.
    fn ensure(&mut self, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            self.add(None, detail());
        }
    }

    /// Something about one resource.
    fn ensure_of(&mut self, core: &Core, slot: Slot, holds: bool, detail: impl FnOnce() -> String) {
        if !holds {
            let row = &core.slots[slot].row;
            let subject = Subject {
                uid: row.uid,
                key: row.key(),
            };
            self.add(Some(subject), detail());
        }
    }
}

impl Core {
    /// Checks every rule by computing it from scratch; costs time proportional to the catalog. Of each rule at most
    /// 20 findings are told. It holds between any two inputs.
    pub fn check_consistency(&self) -> Vec<Finding> {
        let mut findings = Findings::of(Rule::C1);
        for (rule, check) in CHECKS {
            findings.begin(rule);
            check(self, &mut findings);
        }
        findings.list
    }

    /// The rules that are checked, in their order.
    pub fn checked_rules() -> impl Iterator<Item = Rule> {
        CHECKS.into_iter().map(|(rule, _)| rule)
    }
}
