//! Locations of outputs in an engine: schema and name.

use watershed_dialect::Dialect;

/// The location of an output, which need not be the name of its resource. Currently each output has its resource's name
/// in the engine's default schema, but look-ups are by location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Name of the schema; none for the engine's default.
    pub schema: Option<String>,
    /// Name in the schema.
    pub name: String,
}

impl Location {
    /// Returns the location of a name in the engine's default schema.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            schema: None,
            name: name.into(),
        }
    }

    /// Returns the location in the form in which the engine compares names.
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
