//! Kinds, names and refs.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Maximum number of bytes of a kind or a name: longer than any file name, short enough for a key in every store.
pub const NAME_MAX: usize = 512;

/// Reason why a text can't be a kind or a name.
///
/// ```
/// use watershed_core::{Kind, Name, NameProblem};
///
/// assert_eq!(Name::new("home page").problem(), None);
/// assert_eq!(Name::new("a/b").problem(), Some(NameProblem::Slash));
/// assert_eq!(Kind::new("").problem(), Some(NameProblem::Empty));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NameProblem {
    /// The text is empty.
    #[error("is empty")]
    Empty,
    /// The text has more than [`NAME_MAX`] bytes.
    #[error("is longer than {NAME_MAX} bytes")]
    TooLong,
    /// The text contains `/`, which separates kind and name.
    #[error("contains a slash")]
    Slash,
    /// The text contains a control character.
    #[error("contains a control character")]
    Control,
}

fn problem(text: &str) -> Option<NameProblem> {
    if text.is_empty() {
        Some(NameProblem::Empty)
    } else if text.len() > NAME_MAX {
        Some(NameProblem::TooLong)
    } else if text.contains('/') {
        Some(NameProblem::Slash)
    } else if text.chars().any(char::is_control) {
        Some(NameProblem::Control)
    } else {
        None
    }
}

/// A registered type of resource, written as in project files: `model`, `project_parser`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Kind(Arc<str>);

impl Kind {
    /// Creates a kind with this name.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the reason why no new resource may be of this kind; none if it is valid.
    pub fn problem(&self) -> Option<NameProblem> {
        problem(&self.0)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Kind {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Kind {
    fn from(text: &String) -> Self {
        Self::new(text.as_str())
    }
}

impl From<&Kind> for Kind {
    fn from(same: &Kind) -> Self {
        same.clone()
    }
}

impl From<&str> for Kind {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// The name of a resource. It keeps its case, and is compared, ordered and hashed without it.
///
/// ```
/// use watershed_core::Name;
///
/// let (one, other) = (Name::new("Flights"), Name::from("flights"));
/// assert_eq!(one, other);
/// assert!(!one.same_case(&other));
/// assert_eq!(one.to_string(), "Flights");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Name(Arc<str>);

impl Name {
    /// Creates a name with this spelling.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the reason why no resource may get this name; none if it is valid.
    pub fn problem(&self) -> Option<NameProblem> {
        problem(&self.0)
    }

    /// Returns true if the two names are spelled alike, including case.
    pub fn same_case(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }

    /// Returns the first case-folded bytes as a number, ordered as the names are.
    pub(crate) fn prefix(&self) -> u128 {
        let mut bytes = [0; 16];
        if self.0.is_ascii() {
            let length = self.0.len().min(bytes.len());
            bytes[..length].copy_from_slice(&self.0.as_bytes()[..length]);
            bytes.make_ascii_lowercase();
        } else {
            let folded: String = self.folded().take(bytes.len()).collect();
            let length = folded.len().min(bytes.len());
            bytes[..length].copy_from_slice(&folded.as_bytes()[..length]);
        }
        u128::from_be_bytes(bytes)
    }

    fn folded(&self) -> impl Iterator<Item = char> + '_ {
        self.0.chars().flat_map(char::to_lowercase)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.same_case(other)
            || if self.0.is_ascii() && other.0.is_ascii() {
                self.0.eq_ignore_ascii_case(&other.0)
            } else {
                self.folded().eq(other.folded())
            }
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.0.is_ascii() && other.0.is_ascii() {
            let words = words(&self.0).cmp(words(&other.0));
            return words.then_with(|| self.0.len().cmp(&other.0.len()));
        }
        self.folded().cmp(other.folded())
    }
}

/// Returns case-folded ASCII text as words that compare as the bytes do, unless one text is a prefix of the other.
fn words(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.as_bytes().chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        word.make_ascii_lowercase();
        u64::from_be_bytes(word)
    })
}

impl Hash for Name {
    /// Hashes words of eight case-folded bytes, in any alphabet.
    fn hash<H: Hasher>(&self, state: &mut H) {
        if self.0.is_ascii() {
            for chunk in self.0.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                word.make_ascii_lowercase();
                state.write_u64(u64::from_le_bytes(word));
            }
        } else {
            let folded: String = self.folded().collect();
            for chunk in folded.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                state.write_u64(u64::from_le_bytes(word));
            }
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        Self::new(text.as_str())
    }
}

impl From<&Name> for Name {
    fn from(same: &Name) -> Self {
        same.clone()
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// The kind and name of a resource.
///
/// ```
/// use watershed_core::Key;
///
/// let key = Key::new("page", "Home");
/// assert_eq!(key, Key::new("page", "home"));
/// assert_eq!(key.to_string(), "page/Home");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Key {
    /// Kind, which decides the reconciler.
    pub kind: Kind,
    /// Name, unique among the live resources of its kind.
    pub name: Name,
}

impl Key {
    /// Creates the key of a kind and a name.
    pub fn new(kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// The requirement of a ref on its target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Required {
    /// The target exists. Makes no edge in the graph.
    Exists,
    /// The target's last invocation has completed, in success or error. A missing target is allowed.
    #[default]
    Completed,
    /// The target's last completed invocation succeeded and saw its present spec version.
    Ready,
}

/// A reference to a resource that another one reads.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Ref {
    /// Kind of the resource that is read.
    pub kind: Kind,
    /// Name of the resource that is read.
    pub name: Name,
    /// Requirement on the target.
    pub required: Required,
}

impl Ref {
    /// Creates a ref that waits until its target's reconcile has completed.
    pub fn completed(kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
            required: Required::Completed,
        }
    }

    /// Creates a ref that waits until its target is ready.
    pub fn ready(kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        Self {
            required: Required::Ready,
            ..Self::completed(kind, name)
        }
    }

    /// Creates a ref that needs its target to exist, and makes no edge.
    pub fn exists(kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        Self {
            required: Required::Exists,
            ..Self::completed(kind, name)
        }
    }

    /// Returns the kind and name that the ref refers to.
    pub fn key(&self) -> Key {
        Key {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;
    use std::hash::{Hash, Hasher};

    use super::{Key, Kind, Name, Ref};

    fn hash(name: &Name) -> u64 {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn a_name_or_a_kind_is_made_from_whatever_holds_its_text() {
        let text = String::from("Home");
        let names: [Name; 4] = [
            text.as_str().into(),
            (&text).into(),
            text.clone().into(),
            (&Name::from("home")).into(),
        ];
        assert!(names.iter().all(|name| *name == names[0]));
        let kinds: [Kind; 4] = [
            text.as_str().into(),
            (&text).into(),
            text.clone().into(),
            (&Kind::from("Home")).into(),
        ];
        assert!(kinds.iter().all(|kind| *kind == kinds[0]));
        let key = Key::new("page", "home");
        assert_eq!(
            Ref::ready(&key.kind, &key.name).key(),
            Ref::exists("page", text).key()
        );
    }

    #[test]
    fn names_keep_their_case_and_are_compared_without_it() {
        for (a, b) in [
            ("Flights", "fLIGHTS"),
            ("Größe", "GRÖßE"),
            ("ΣΑΣ", "σασ"),
            ("k", "\u{212a}"),
        ] {
            let (a, b) = (Name::from(a), Name::from(b));
            assert_eq!(a, b);
            assert_eq!(hash(&a), hash(&b));
            assert!(!a.same_case(&b));
            assert!(a.cmp(&b).is_eq());
        }
        assert_ne!(Name::from("a"), Name::from("b"));
    }
}
