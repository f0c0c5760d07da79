//! Policies, which decide who may see a view, which of its fields, and which rows.
//!
//! A view's rules come in layers: those of its parent, its own, those of the explore or API in front of it. Each is
//! evaluated alone and the results are intersected, so no layer opens what another one closes (Q15). Conditions are
//! evaluated beforehand, by an engine without tables; here they are true, false or null.

use std::collections::BTreeSet;

use crate::view::{View, same};

/// The rules of one block. A layer with rules denies everything that it does not allow; a layer without rules allows
/// everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layer {
    /// The rules, whose order does not matter, since a denial always wins.
    pub rules: Vec<Rule>,
}

/// A rule with its condition evaluated for a viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The value of the condition. If null, a rule that allows does not apply, and one that denies or filters does.
    pub condition: Truth,
    /// The effect of the rule, if it applies.
    pub effect: Effect,
}

/// A value of three-valued logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The condition is unknown, for example since the viewer lacks an attribute.
    Null,
}

/// The effect of a rule that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Viewers may use the view.
    AllowAccess,
    /// Access to the view is denied.
    DenyAccess,
    /// Viewers may see the given fields.
    AllowFields(Fields),
    /// The given fields are denied.
    DenyFields(Fields),
    /// Only rows that meet a condition are visible; the condition is SQL without variables.
    FilterRows(String),
}

/// The fields that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fields {
    /// All fields of the view.
    All,
    /// The fields of the given names, in any case.
    Named(Vec<String>),
}

/// The result of evaluating a view's rules for one viewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    access: bool,
    layers: Vec<LayerFields>,
    filters: Vec<String>,
}

/// The fields that one layer allows and denies.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LayerFields {
    /// The allowed names, in lower case; none if all are allowed.
    allowed: Option<BTreeSet<String>>,
    /// True if all fields are denied.
    none: bool,
    /// The denied names, in lower case.
    denied: BTreeSet<String>,
}

impl Policy {
    /// Returns the policy of the owner, who sees everything.
    pub fn open() -> Self {
        Self::of(&[])
    }

    /// Evaluates layers of rules; only what every layer shows is visible.
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

    /// Returns the conditions that visible rows must meet, all of them, each to be put in brackets.
    pub fn row_filters(&self) -> &[String] {
        &self.filters
    }

    /// Returns true if a rule about fields applies to the viewer, so that columns which are no fields are hidden too.
    pub fn binds_fields(&self) -> bool {
        !self.layers.is_empty()
    }

    /// Returns true if all layers show the field of a name. The time dimension is an exception, and always visible:
    /// [`Policy::visible`].
    pub fn shows(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.access && self.layers.iter().all(|layer| layer.shows(&name))
    }

    /// Returns a view in which the fields that the viewer may not see are marked as hidden.
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
    /// Returns true if an allowing rule with this condition applies.
    fn opens(self) -> bool {
        self == Self::True
    }

    /// Returns true if a denying or filtering rule with this condition applies.
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

    /// Returns the fields that the layer allows and denies; none if it has no rules about fields.
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
