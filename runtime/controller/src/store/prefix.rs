//! The prefix of a catalog's table names, in any database.

use super::StoreError;

/// The prefix of a catalog's table names: a letter or `_`, then letters, digits and `_`.
///
/// ```
/// use watershed_controller::store::TablePrefix;
///
/// assert!(TablePrefix::new("shop_").is_ok());
/// assert!(TablePrefix::new("no; such").is_err());
/// assert_eq!(TablePrefix::default(), TablePrefix::new(TablePrefix::DEFAULT)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePrefix(String);

impl TablePrefix {
    /// Default prefix of table names.
    pub const DEFAULT: &str = "watershed_";

    /// Validates a prefix; one that SQL could not contain unquoted is refused.
    pub fn new(prefix: impl Into<String>) -> Result<Self, StoreError> {
        let prefix = prefix.into();
        let mut chars = prefix.chars();
        let begins_well = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if begins_well && chars.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            Ok(Self(prefix))
        } else {
            Err(StoreError::Prefix { prefix })
        }
    }

    /// Replaces `{p}` in a statement by the prefix.
    pub(crate) fn apply(&self, sql: &str) -> String {
        sql.replace("{p}", &self.0)
    }
}

impl Default for TablePrefix {
    fn default() -> Self {
        Self(Self::DEFAULT.to_owned())
    }
}
