//! Dependencies of an item on others.

use std::fmt;
use std::iter;

use serde::{Deserialize, Serialize};

use crate::predicate::Predicate;
use crate::reference::Ref;

/// An edge from an item to its target, or to any of several targets.
///
/// ```
/// use serde_json::json;
/// use watershed_stategraph::{Dependency, Operator, Predicate, Ref};
/// let up = Predicate::field("state", Operator::Eq, json!("up"));
/// let needs = Dependency::on(Ref::parse("link/eth0")?).when(up).recreate_when_modified();
/// assert_eq!(needs.to_string(), "link/eth0 (state = \"up\")");
/// # Ok::<(), watershed_stategraph::RefError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// First target of the dependency. Further targets and options are boxed, because most dependencies have only one
    /// target.
    target: Ref,
    details: Option<Box<Details>>,
}

/// Options and further targets, which few dependencies have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Details {
    others: Vec<Ref>,
    predicate: Option<Predicate>,
    recreate_when_modified: bool,
    deleted_with_external: bool,
    order_only: bool,
    description: String,
}

impl Dependency {
    /// Creates a dependency on one item.
    pub fn on(target: Ref) -> Self {
        Self {
            target,
            details: None,
        }
    }

    /// Creates a dependency on any of several items; `first` is preferred to `others`.
    pub fn any_of(first: Ref, others: impl IntoIterator<Item = Ref>) -> Self {
        Self::on(first).with(|details| details.others = others.into_iter().collect())
    }

    /// Requires that the target's value satisfies a predicate.
    #[must_use]
    pub fn when(self, predicate: Predicate) -> Self {
        self.with(|details| details.predicate = Some(predicate))
    }

    /// Recreates the item when the target's value changes.
    #[must_use]
    pub fn recreate_when_modified(self) -> Self {
        self.with(|details| details.recreate_when_modified = true)
    }

    /// Makes the item vanish without an operation when this target, an external item, disappears.
    #[must_use]
    pub fn deleted_with_external(self) -> Self {
        self.with(|details| details.deleted_with_external = true)
    }

    /// Makes the dependency only order the operations of a call.
    #[must_use]
    pub fn order_only(self) -> Self {
        self.with(|details| details.order_only = true)
    }

    /// Sets a description of the dependency's purpose.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Self {
        self.with(|details| details.description = text.into())
    }

    fn with(mut self, change: impl FnOnce(&mut Details)) -> Self {
        change(self.details.get_or_insert_default());
        self
    }

    /// Lists every target, in the given order.
    pub fn targets(&self) -> impl Iterator<Item = &Ref> {
        iter::once(&self.target).chain(self.details.iter().flat_map(|details| &details.others))
    }

    /// Returns the number of targets, at least one.
    pub(crate) fn width(&self) -> usize {
        1 + self.details.as_ref().map_or(0, |details| details.others.len())
    }

    /// Returns true if the dependency has one target and no options. A description does not count.
    pub(crate) fn is_plain(&self) -> bool {
        self.details.as_ref().is_none_or(|details| {
            let flags = details.recreate_when_modified || details.deleted_with_external || details.order_only;
            details.others.is_empty() && details.predicate.is_none() && !flags
        })
    }

    /// Returns the target if the dependency has nothing else, not even a description.
    pub(crate) fn bare_target(&self) -> Option<&Ref> {
        self.details.is_none().then_some(&self.target)
    }

    /// Returns the condition on the target's value, if any.
    pub fn predicate(&self) -> Option<&Predicate> {
        self.details.as_ref()?.predicate.as_ref()
    }

    /// Returns true if a modified target recreates the item.
    pub fn recreates_when_modified(&self) -> bool {
        self.details
            .as_ref()
            .is_some_and(|details| details.recreate_when_modified)
    }

    /// Returns true if the item vanishes with an external target.
    pub fn is_deleted_with_external(&self) -> bool {
        self.details
            .as_ref()
            .is_some_and(|details| details.deleted_with_external)
    }

    /// Returns true if the dependency only orders operations.
    pub fn is_order_only(&self) -> bool {
        self.details.as_ref().is_some_and(|details| details.order_only)
    }

    /// Returns the description of the dependency's purpose; may be empty.
    pub fn description(&self) -> &str {
        self.details.as_ref().map_or("", |details| &details.description)
    }
}

impl fmt::Display for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let targets: Vec<&str> = self.targets().map(Ref::as_str).collect();
        match targets.as_slice() {
            [one] => f.write_str(one)?,
            several => write!(f, "any of {}", several.join(", "))?,
        }
        self.predicate()
            .map_or(Ok(()), |predicate| write!(f, " ({predicate})"))
    }
}

/// Stored form of a dependency: flat, and without default values.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on: Option<Ref>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    any_of: Vec<Ref>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<Predicate>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    recreate_when_modified: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted_with_external: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    order_only: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
}

impl Serialize for Dependency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let several = self.width() > 1;
        Stored {
            on: (!several).then(|| self.target.clone()),
            any_of: if several {
                self.targets().cloned().collect()
            } else {
                Vec::new()
            },
            when: self.predicate().cloned(),
            recreate_when_modified: self.recreates_when_modified(),
            deleted_with_external: self.is_deleted_with_external(),
            order_only: self.is_order_only(),
            description: self.description().to_owned(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Dependency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let mut targets = stored.on.into_iter().chain(stored.any_of);
        let target = targets
            .next()
            .ok_or_else(|| serde::de::Error::custom("a dependency without a target"))?;
        let details = Details {
            others: targets.collect(),
            predicate: stored.when,
            recreate_when_modified: stored.recreate_when_modified,
            deleted_with_external: stored.deleted_with_external,
            order_only: stored.order_only,
            description: stored.description,
        };
        let details = (details != Details::default()).then(|| Box::new(details));
        Ok(Self { target, details })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_survives_storing() {
        let target = |name: &str| Ref::parse(name).unwrap();
        for dependency in [
            Dependency::on(target("t/a")),
            Dependency::any_of(target("t/a"), [target("t/b")]).recreate_when_modified(),
            Dependency::on(target("t/a")).order_only().describe("why"),
        ] {
            let stored = serde_json::to_string(&dependency).unwrap();
            assert_eq!(
                serde_json::from_str::<Dependency>(&stored).unwrap(),
                dependency,
                "{stored}"
            );
        }
    }
}
