//! Policies: who may see a view, which of its fields, and which rows.
//!
//! A view's rules come in layers: those of its parent, its own, those of the explore or API in front of it. Each is
//! evaluated alone and the results are intersected, so no layer opens what another one closes (Q15). Conditions are
//! evaluated beforehand, by an engine without tables; here they are true, false or null.

use std::collections::BTreeSet;

use crate::view::{View, same};

/// The rules of one block. A layer with rules closes what it does not open; one without, as where no block stands, is
/// open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layer {
    /// The rules, whose order says nothing: what is denied is denied.
    pub rules: Vec<Rule>,
}

/// A rule with its condition evaluated for a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The value of the condition. Null neither proves that an allowance applies nor that a restriction does not: it does
    /// not allow, and it does deny and filter.
    pub condition: Truth,
    /// The effect if it applies.
    pub effect: Effect,
}

/// A value of the engine's logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known, as with an attribute that the viewer does not have.
    Null,
}

/// The effects of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The view may be seen.
    AllowAccess,
    /// The view may not be seen.
    DenyAccess,
    /// Fields may be seen.
    AllowFields(Fields),
    /// Fields may not be seen.
    DenyFields(Fields),
    /// Only rows that meet a condition may be seen: SQL whose values are constants already.
    FilterRows(String),
}

/// The fields that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fields {
    /// All of them.
    All,
    /// Those of some names, in any case.
    Named(Vec<String>),
}

/// The outcome of a view's rules for one viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    access: bool,
    layers: Vec<LayerFields>,
    filters: Vec<String>,
}

/// The fields that one layer shows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LayerFields {
    /// The names that may be seen, in lower case; nothing for all.
    allowed: Option<BTreeSet<String>>,
    /// All fields are denied.
    none: bool,
    /// The names that may not be seen, in lower case.
    denied: BTreeSet<String>,
}

impl Policy {
    /// Returns the policy of the owner, who may see everything.
    pub fn open() -> Self {
        Self::of(&[])
    }

    /// Evaluates layers of rules and intersects what they show.
    pub fn of(layers: &[Layer]) -> Self {
        let ruled = || layers.iter().filter(|layer| !layer.rules.is_empty());
        Self {
            access: ruled().all(Layer::access),
            layers: ruled().filter_map(Layer::fields).collect(),
            filters: ruled().flat_map(Layer::filters).collect(),
        }
    }

    /// Returns true if the view may be seen at all.
    pub fn has_access(&self) -> bool {
        self.access
    }

    /// Returns the conditions that each visible row meets: all of them, each to be put in brackets.
    pub fn row_filters(&self) -> &[String] {
        &self.filters
    }

    /// Returns true if a field rule binds the viewer, so that columns which are no fields are closed, too.
    pub fn binds_fields(&self) -> bool {
        !self.layers.is_empty()
    }

    /// Returns true if the layers show a field of a name. The time dimension is never hidden: [`Policy::visible`].
    pub fn shows(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.access && self.layers.iter().all(|layer| layer.shows(&name))
    }

    /// Returns a view with the fields marked that its viewer may not see.
    #[must_use]
    pub fn visible(&self, view: View) -> View {
        let mut view = view;
        for dimension in &mut view.dimensions {
            let is_time = same(&dimension.name, &view.time_dimension);
            dimension.hidden = !is_time && !self.shows(&dimension.name);
        }
        for measure in &mut view.measures {
            measure.hidden = !self.shows(&measure.name);
        }
        view
    }
}

impl Truth {
    /// Returns true if something that opens applies.
    fn opens(self) -> bool {
        self == Self::True
    }

    /// Returns true if something that closes applies.
    fn closes(self) -> bool {
        self != Self::False
    }
}

impl Layer {
    fn access(&self) -> bool {
        let allows = |rule: &Rule| rule.effect == Effect::AllowAccess && rule.condition.opens();
        let denies = |rule: &Rule| rule.effect == Effect::DenyAccess && rule.condition.closes();
        self.rules.iter().any(allows) && !self.rules.iter().any(denies)
    }

    /// Returns the fields that are shown, if any rule is about fields: applying or not, it hides what none allows.
    fn fields(&self) -> Option<LayerFields> {
        let mut ruled = false;
        let mut fields = LayerFields {
            allowed: Some(BTreeSet::new()),
            none: false,
            denied: BTreeSet::new(),
        };
        for rule in &self.rules {
            match &rule.effect {
                Effect::AllowFields(named) => {
                    ruled = true;
                    match (named, &mut fields.allowed) {
                        _ if !rule.condition.opens() => {}
                        (Fields::All, _) => fields.allowed = None,
                        (Fields::Named(names), Some(allowed)) => allowed.extend(lower(names)),
                        (Fields::Named(_), None) => {}
                    }
                }
                Effect::DenyFields(named) => {
                    ruled = true;
                    match named {
                        _ if !rule.condition.closes() => {}
                        Fields::All => fields.none = true,
                        Fields::Named(names) => fields.denied.extend(lower(names)),
                    }
                }
                Effect::AllowAccess | Effect::DenyAccess | Effect::FilterRows(_) => {}
            }
        }
        ruled.then_some(fields)
    }

    fn filters(&self) -> impl Iterator<Item = String> {
        self.rules.iter().filter_map(|rule| match &rule.effect {
            Effect::FilterRows(sql) if rule.condition.closes() => Some(sql.clone()),
            _ => None,
        })
    }
}

impl LayerFields {
    fn shows(&self, name: &str) -> bool {
        let allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contains(name));
        allowed && !self.none && !self.denied.contains(name)
    }
}

fn lower(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().map(|name| name.to_lowercase())
}
