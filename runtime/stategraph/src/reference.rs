//! The ref of an item: its type, and a name that is unique within the type.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Suffix of a replacement's name while old and new item exist side by side.
const ALIAS_SUFFIX: &str = "#next";

/// The ref of an item, written `type/name`.
///
/// Refs are cheap to clone and ordered as text, which is the order of everything that this crate lists.
///
/// ```
/// use watershed_stategraph::Ref;
/// let table = Ref::new("table", "orders")?;
/// assert_eq!(table.to_string(), "table/orders");
/// assert_eq!((table.type_name(), table.name()), ("table", "orders"));
/// # Ok::<(), watershed_stategraph::RefError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref(Arc<str>);

/// A map by ref. Refs are short and looked up in masses, so a fast hash with a random seed per process is used.
pub(crate) type RefMap<T> = std::collections::HashMap<Ref, T, RefHashing>;

/// Builder of [`RefHasher`]s with one seed.
#[derive(Clone)]
pub(crate) struct RefHashing(u64);

impl Default for RefHashing {
    fn default() -> Self {
        use std::hash::BuildHasher;
        static SEED: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
        Self(*SEED.get_or_init(|| std::collections::hash_map::RandomState::new().hash_one(0)))
    }
}

impl fmt::Debug for RefHashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefHashing")
    }
}

impl std::hash::BuildHasher for RefHashing {
    type Hasher = RefHasher;

    fn build_hasher(&self) -> RefHasher {
        RefHasher(self.0)
    }
}

/// Hasher that folds eight bytes at a time.
pub(crate) struct RefHasher(u64);

impl RefHasher {
    fn fold(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl std::hash::Hasher for RefHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            let mut eight = [0; 8];
            eight.copy_from_slice(word);
            self.fold(u64::from_le_bytes(eight));
        }
        let rest = words.remainder();
        let mut eight = [0; 8];
        eight[..rest.len()].copy_from_slice(rest);
        self.fold(u64::from_le_bytes(eight) ^ ((bytes.len() as u64) << 56));
    }

    /// Ignores the end marker of a text, whose length is hashed already.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Reason why a text is not a ref.
///
/// ```
/// use watershed_stategraph::{Ref, RefError};
/// for text in ["orders", "table/", "table/orders#next"] {
///     match Ref::parse(text) {
///         Err(RefError::Incomplete(text)) => println!("write `table/{text}`"),
///         Err(RefError::Reserved(text)) => assert_eq!(text, "table/orders#next"),
///         other => panic!("{other:?}"),
///     }
/// }
/// assert!(matches!(Ref::new("table/view", "orders"), Err(RefError::SlashInType(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    /// The type or the name is empty, or the text has no slash.
    #[error("`{0}` is no ref: expected `type/name`, both not empty")]
    Incomplete(String),
    /// The type contains a slash.
    #[error("invalid item type `{0}`: must not contain `/`")]
    SlashInType(String),
    /// The name ends with the suffix of replacements.
    #[error("`{0}` is reserved: names that end in `#next` stand for replacements")]
    Reserved(String),
}

impl Ref {
    /// Creates a ref from a type and a name.
    ///
    /// # Errors
    /// If either is empty, the type contains a slash, or the name ends in `#next`.
    pub fn new(type_name: &str, name: &str) -> Result<Self, RefError> {
        if type_name.contains('/') {
            return Err(RefError::SlashInType(type_name.to_owned()));
        }
        Self::parse(&format!("{type_name}/{name}"))
    }

    /// Parses `type/name`; the name may contain further slashes.
    ///
    /// # Errors
    /// Returns the errors of [`Ref::new`].
    pub fn parse(text: &str) -> Result<Self, RefError> {
        let reference = Self::parse_any(text)?;
        if reference.is_alias() {
            return Err(RefError::Reserved(text.to_owned()));
        }
        Ok(reference)
    }

    /// Parses a ref like [`Ref::parse`], but accepts the name of a replacement, which stored graphs contain.
    fn parse_any(text: &str) -> Result<Self, RefError> {
        match text.split_once('/') {
            Some((type_name, name)) if !type_name.is_empty() && !name.is_empty() => Ok(Self(text.into())),
            _ => Err(RefError::Incomplete(text.to_owned())),
        }
    }

    /// Returns the type, which decides the handler.
    pub fn type_name(&self) -> &str {
        self.0.split_once('/').map_or("", |(type_name, _)| type_name)
    }

    /// Returns the name within the type.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// Returns true if both share one allocation. False is inconclusive: equal refs may have two.
    pub(crate) fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the whole ref as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the ref under which a replacement of this item is created, `type/name#next`.
    pub fn alias(&self) -> Self {
        Self(format!("{}{ALIAS_SUFFIX}", self.0).into())
    }

    /// Returns true if this is the ref of a replacement.
    pub fn is_alias(&self) -> bool {
        self.0.ends_with(ALIAS_SUFFIX)
    }

    /// Returns the ref of the item that this replacement is for; other refs are unchanged.
    pub fn base(&self) -> Self {
        self.0
            .strip_suffix(ALIAS_SUFFIX)
            .map_or_else(|| self.clone(), |base| Self(base.into()))
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for Ref {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        Self::parse(text)
    }
}

impl Borrow<str> for Ref {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Ref {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse_any(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_slashes_and_a_type_may_not() {
        assert_eq!(
            Ref::parse("file/etc/hosts").map(|r| r.name().to_owned()),
            Ok("etc/hosts".to_owned())
        );
        assert!(matches!(Ref::new("a/b", "c"), Err(RefError::SlashInType(_))));
    }

    #[test]
    fn an_empty_half_is_refused() {
        for text in ["", "a", "a/", "/b"] {
            assert!(matches!(Ref::parse(text), Err(RefError::Incomplete(_))), "{text}");
        }
    }

    #[test]
    fn an_alias_leads_back_to_its_item_and_cannot_be_named_by_hand() {
        let item = Ref::parse("t/a").unwrap();
        assert_eq!(item.alias().as_str(), "t/a#next");
        assert_eq!(item.alias().base(), item);
        assert!(matches!(Ref::parse("t/a#next"), Err(RefError::Reserved(_))));
    }
}
