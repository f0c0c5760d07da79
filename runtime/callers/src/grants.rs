//! Access of callers by instance.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use watershed_api::operations::Role;

/// Name that stands for all instances.
pub const ALL_INSTANCES: &str = "*";

/// A level of access; each includes the levels before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Read statuses and run queries under policies.
    Read,
    /// Run and control resources.
    Operate,
    /// Edit the project's files.
    Edit,
    /// Back up and delete stored data, and grant access to others.
    Admin,
}

impl Level {
    const ALL: [Self; 4] = [Self::Read, Self::Operate, Self::Edit, Self::Admin];

    /// Returns the role of the level alone.
    const fn role(self) -> Role {
        match self {
            Self::Read => Role::Read,
            Self::Operate => Role::Operate,
            Self::Edit => Role::Edit,
            Self::Admin => Role::Admin,
        }
    }
}

/// A role on one instance, written as `operate` or `operate+query`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Grant {
    level: Level,
    query: bool,
}

impl Grant {
    /// Creates a grant of a level. Free SQL is included from `edit` upwards.
    pub const fn new(level: Level) -> Self {
        Self {
            level,
            query: matches!(level, Level::Edit | Level::Admin),
        }
    }

    /// Adds free SQL, which includes rows that policies hide.
    #[must_use]
    pub const fn with_query(self) -> Self {
        Self { query: true, ..self }
    }

    /// Returns the grant's level of access.
    pub const fn level(self) -> Level {
        self.level
    }

    /// Returns true if the grant includes the role.
    pub fn allows(self, role: Role) -> bool {
        match role {
            Role::Read => true,
            Role::Operate => self.level >= Level::Operate,
            Role::Edit => self.level >= Level::Edit,
            Role::Admin => self.level >= Level::Admin,
            Role::Query => self.query,
        }
    }

    /// Returns all roles that the grant includes.
    pub fn roles(self) -> Vec<Role> {
        let all = [Role::Read, Role::Operate, Role::Edit, Role::Admin, Role::Query];
        all.into_iter().filter(|role| self.allows(*role)).collect()
    }

    /// Returns the union of two grants.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            level: self.level.max(other.level),
            query: self.query || other.query,
        }
    }

    /// Returns the intersection of two grants.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            level: self.level.min(other.level),
            query: self.query && other.query,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.role().as_str())?;
        match self.query && !Self::new(self.level).query {
            true => f.write_str("+query"),
            false => Ok(()),
        }
    }
}

impl From<Grant> for String {
    fn from(grant: Grant) -> Self {
        grant.to_string()
    }
}

/// The error of a text that names no valid role.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "\"{0}\" is no role: write `read`, `operate`, `edit` or `admin`, with `+query` behind it for free SQL"
)]
pub struct NoRole(pub String);

impl FromStr for Grant {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        let (name, query) = match text.strip_suffix("+query") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let level = Level::ALL.into_iter().find(|level| level.role().as_str() == name);
        let level = level.ok_or_else(|| NoRole(text.to_owned()))?;
        let grant = Self::new(level);
        Ok(if query { grant.with_query() } else { grant })
    }
}

impl TryFrom<String> for Grant {
    type Error = NoRole;

    fn try_from(text: String) -> Result<Self, NoRole> {
        text.parse()
    }
}

/// Grants by instance name; `*` stands for all instances. Empty means no access at all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grants(BTreeMap<String, Grant>);

impl Grants {
    /// Creates a grant on one instance, or on all with [`ALL_INSTANCES`].
    pub fn one(instance: impl Into<String>, grant: Grant) -> Self {
        Self(BTreeMap::from([(instance.into(), grant)]))
    }

    /// Adds a grant on an instance; an existing grant is extended.
    pub fn add(&mut self, instance: impl Into<String>, grant: Grant) {
        let entry = self.0.entry(instance.into()).or_insert(grant);
        *entry = entry.or(grant);
    }

    /// Returns the grant on an instance, or on all instances for [`ALL_INSTANCES`]; none if the instance must appear not to
    /// exist.
    pub fn on(&self, instance: &str) -> Option<Grant> {
        match (self.0.get(ALL_INSTANCES), self.0.get(instance)) {
            (Some(all), Some(own)) => Some(all.or(*own)),
            (all, own) => own.or(all).copied(),
        }
    }

    /// Returns the grant on all instances, which operations of the service itself require.
    pub fn everywhere(&self) -> Option<Grant> {
        self.0.get(ALL_INSTANCES).copied()
    }

    /// Iterates over instances and grants, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Grant)> {
        self.0.iter().map(|(name, grant)| (name.as_str(), *grant))
    }

    /// Returns true if there is no grant on any instance.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if these grants are a subset of `others`, as required of a new token's grants and its maker's.
    pub fn are_within(&self, others: &Self) -> bool {
        self.0.iter().all(|(instance, grant)| {
            let held = others.on(instance);
            held.is_some_and(|held| held.and(*grant) == *grant)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grants() -> impl Strategy<Value = Grant> {
        let level = prop::sample::select(Level::ALL.to_vec());
        (level, any::<bool>()).prop_map(|(level, query)| match query {
            true => Grant::new(level).with_query(),
            false => Grant::new(level),
        })
    }

    #[test]
    fn roles_are_written_as_people_write_them() {
        for text in ["read", "operate", "edit", "admin", "read+query", "operate+query"] {
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        assert_eq!("edit+query".parse::<Grant>().unwrap().to_string(), "edit");
        for text in [
            "",
            "Read",
            "read+",
            "+query",
            "query",
            "read query",
            "admin+query+query",
        ] {
            assert_eq!(text.parse::<Grant>(), Err(NoRole(text.to_owned())));
        }
    }

    #[test]
    fn each_level_may_what_the_ones_below_may_and_rows_stand_apart() {
        let may = |text: &str| text.parse::<Grant>().unwrap().roles();
        assert_eq!(may("read"), [Role::Read]);
        assert_eq!(may("read+query"), [Role::Read, Role::Query]);
        assert_eq!(may("operate"), [Role::Read, Role::Operate]);
        assert_eq!(may("edit"), [Role::Read, Role::Operate, Role::Edit, Role::Query]);
        assert_eq!(may("admin").len(), 5);
    }

    #[test]
    fn who_has_a_role_nowhere_has_none_and_a_role_on_all_adds_to_one() {
        let mut held = Grants::one("shop", Grant::new(Level::Read).with_query());
        assert_eq!(held.on("depot"), None);
        assert_eq!(held.everywhere(), None);
        held.add(ALL_INSTANCES, Grant::new(Level::Operate));
        assert_eq!(held.on("shop").unwrap().to_string(), "operate+query");
        assert_eq!(held.on("depot").unwrap().to_string(), "operate");
        held.add("shop", Grant::new(Level::Read));
        assert_eq!(held.on("shop").unwrap().to_string(), "operate+query");
    }

    #[test]
    fn nobody_gives_what_they_do_not_have() {
        let text = |text: &str| text.parse::<Grant>().unwrap();
        let held = Grants::one("shop", text("edit"));
        for (instance, grant, may) in [
            ("shop", "edit", true),
            ("shop", "read+query", true),
            ("shop", "admin", false),
            ("depot", "read", false),
            (ALL_INSTANCES, "read", false),
        ] {
            assert_eq!(
                Grants::one(instance, text(grant)).are_within(&held),
                may,
                "{instance} {grant}"
            );
        }
        assert!(!Grants::one("shop", text("read+query")).are_within(&Grants::one("shop", text("operate"))));
        assert!(Grants::default().are_within(&Grants::default()));
    }

    proptest! {
        #[test]
        fn a_union_allows_what_either_allows_and_an_intersection_what_both_do(a in grants(), b in grants()) {
            for role in [Role::Read, Role::Operate, Role::Edit, Role::Admin, Role::Query] {
                prop_assert_eq!(a.or(b).allows(role), a.allows(role) || b.allows(role));
                prop_assert_eq!(a.and(b).allows(role), a.allows(role) && b.allows(role));
            }
            prop_assert_eq!(a.to_string().parse::<Grant>(), Ok(a));
        }
    }
}
