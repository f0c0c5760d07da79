//! Locations of outputs in an engine.

use watershed_dialect::Dialect;

/// The place at which an output lies. A location is no name of a resource: today an output lies under its name in the schema that
/// the engine has by itself, and whoever looks for it asks by location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The schema; none for the one that the engine has by itself.
    pub schema: Option<String>,
    /// The name there.
    pub name: String,
}

impl Location {
    /// Returns the location of a name in the schema that the engine has by itself.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            schema: None,
            name: name.into(),
        }
    }

    /// Returns the location as the engine compares it with others.
    #[must_use]
    pub fn folded(&self, dialect: &dyn Dialect) -> Self {
        Self {
            schema: self.schema.as_ref().map(|schema| dialect.fold(schema)),
            name: dialect.fold(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use watershed_dialect::{ClickHouse, DuckDb};

    use super::*;

    #[test]
    fn locations_are_compared_as_the_engine_compares_names() {
        let in_mart = |schema: &str, name: &str| Location {
            schema: Some(schema.into()),
            name: name.into(),
        };
        let (upper, lower) = (in_mart("Mart", "Daily"), in_mart("mart", "daily"));
        assert_eq!(upper.folded(&DuckDb), lower.folded(&DuckDb));
        assert_ne!(upper.folded(&ClickHouse), lower.folded(&ClickHouse));
        assert_ne!(lower.folded(&DuckDb), Location::named("daily").folded(&DuckDb));
    }
}
