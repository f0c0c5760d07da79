//! Secret values, of variables and of connectors' settings, sealed in specs and redacted from texts.
//!
//! This module alone knows them. Invariants:
//!
//! 1. A stored spec holds in place of a variable's value what it is [sealed](Secrets::seal) to: a hash with a key that lies
//!    in the state folder. So another value is another spec, and the catalog does not tell it.
//! 2. A reconciler gets the values [back](Secrets::open) from what this process has learned: from its options, and from
//!    the parse that settles before anything else runs. What was not learned can't be opened, and the resource fails
//!    without touching what it built before.
//! 3. Whatever is said about a resource and stored (errors, findings, logs) has `[NAME]` in place of a value.
//!
//! A value is replaced in texts if it has six characters or more and is no plain number, date or truth value, and if nothing of
//! the project has it for a name. A value that was learned is replaced as long as the process lives, also after it
//! was changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::{fmt, fs, io};

use watershed_compilers::{Project, Resource, Spec};
use watershed_core::Error;
use watershed_dialect::doubled;
use watershed_drivers::regular;
use watershed_locks::Unpoisoned;
use watershed_proto::{Fingerprint, Value};

/// The fewest characters of a value that is redacted; shorter values occur in ordinary words.
const SHORTEST: usize = 6;
/// The prefix of a sealed value.
const SEALED: &str = "sealed:";
/// Length of a key, in bytes.
const KEY_BYTES: usize = 32;
/// Parts of settings' names by which even literal values are recognised as secrets.
const SECRET_KEYS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "private_key",
    "api_key",
    "access_key",
    "account_key",
];

/// The secrets of one project. Clones share the learned values.
#[derive(Clone)]
pub struct Secrets {
    key: [u8; KEY_BYTES],
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    /// Values by their sealed form.
    values: BTreeMap<String, String>,
    /// Forms of values as they occur in texts, the longest first, each with its variable's name.
    forms: Vec<(String, String)>,
    /// Names in the project, of folders too, in lower case, which are never redacted.
    names: BTreeSet<String>,
    /// Variables that were passed to this process by hand.
    given: BTreeMap<String, String>,
}

/// The error of a sealed value that this process has not learned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the value of the variable \"{name}\" is not known")]
pub struct Unknown {
    /// Name of the variable.
    pub name: String,
}

impl From<Unknown> for Error {
    fn from(unknown: Unknown) -> Self {
        let hint = "it is read with the project's files; fix what keeps them from being read";
        Self {
            hint: Some(hint.into()),
            ..Self::transient("variable-unknown", unknown.to_string())
        }
    }
}

impl Default for Secrets {
    /// Creates secrets with a random key that is never stored.
    fn default() -> Self {
        Self::with_key(fresh_key())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    fn with_key(key: [u8; KEY_BYTES]) -> Self {
        Self {
            key,
            known: Arc::default(),
        }
    }

    /// Creates secrets with the key in a file, readable by its owner alone and created if missing. A file without a
    /// valid key is replaced; values sealed with the old key then count as changed.
    ///
    /// # Errors
    /// When the file can't be read or made.
    pub fn with_key_file(path: &Path) -> io::Result<Self> {
        match regular::read(path, KEY_BYTES) {
            Ok(key) if key.len() == KEY_BYTES => {
                let mut bytes = [0; KEY_BYTES];
                bytes.copy_from_slice(&key);
                return Ok(Self::with_key(bytes));
            }
            Err(regular::ReadError::Io(error)) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error);
            }
            _ => {}
        }
        let key = fresh_key();
        write_for_owner(path, &key)?;
        Ok(Self::with_key(key))
    }

    /// Learns the values of variables.
    pub fn learn<'v>(&self, variables: impl IntoIterator<Item = (&'v String, &'v String)>) {
        for (name, value) in variables {
            let sealed = self.sealed(name, value);
            let mut known = self.known.write().unpoisoned();
            if known.values.insert(sealed, value.clone()).is_none() {
                known.hide(name, value);
            }
        }
    }

    /// Learns variables that were passed to this process by hand, which override variables in files.
    pub fn give(&self, variables: &BTreeMap<String, String>) {
        self.learn(variables);
        let mut known = self.known.write().unpoisoned();
        known.given.clone_from(variables);
    }

    /// Returns the variables of the parser's stored spec, unsealed. If an earlier process sealed values that this one
    /// never had, the spec is about to be replaced, and the variables given to this process are returned.
    #[must_use]
    pub fn open_given(&self, variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        self.open(variables).unwrap_or_else(|_| {
            let known = self.known.read().unpoisoned();
            known.given.clone()
        })
    }

    /// Learns names in the project, which are not redacted.
    pub fn learn_names<'n>(&self, names: impl IntoIterator<Item = &'n str>) {
        let mut known = self.known.write().unpoisoned();
        for name in names {
            if name.len() >= SHORTEST && !known.names.contains(&name.to_lowercase()) {
                known.names.insert(name.to_lowercase());
                known.forms.retain(|(form, _)| !form.eq_ignore_ascii_case(name));
            }
        }
    }

    /// Learns the names of a project's resources and folders: a path with `[NAME]` in it is no place that anybody finds.
    pub fn learn_names_of(&self, project: &Project) {
        self.learn_names(project.resources().map(|resource| resource.name.as_str()));
        let folders = project
            .paths()
            .filter_map(|path| path.rsplit_once('/'))
            .map(|(folders, _)| folders);
        let folders: BTreeSet<&str> = folders.collect();
        self.learn_names(folders.into_iter().flat_map(|folders| folders.split('/')));
    }

    /// Returns the sealed form of a value for a stored spec, and learns the value.
    #[must_use]
    pub fn seal(&self, name: &str, value: &str) -> String {
        self.learn([(&name.to_owned(), &value.to_owned())]);
        self.sealed(name, value)
    }

    /// Returns the variables of a stored spec with their values unsealed.
    ///
    /// # Errors
    /// The first whose value was not learned.
    pub fn open(&self, variables: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Unknown> {
        let known = self.known.read().unpoisoned();
        let open = |(name, stored): (&String, &String)| {
            let value = match known.values.get(stored) {
                Some(value) => value.clone(),
                None if is_sealed(stored) => return Err(Unknown { name: name.clone() }),
                None => stored.clone(),
            };
            Ok((name.clone(), value))
        };
        variables.iter().map(open).collect()
    }

    /// Returns variables with sealed values, as a spec stores them.
    #[must_use]
    pub fn seal_all(&self, variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let seal = |(name, value): (&String, &String)| (name.clone(), self.seal(name, value));
        variables.iter().map(seal).collect()
    }

    /// Returns a resource as the catalog stores it: values sealed, and fingerprints keyed from which they could be
    /// guessed.
    #[must_use]
    pub fn seal_resource<'r>(&self, resource: &'r Resource) -> Cow<'r, Resource> {
        let has_variables = resource
            .spec
            .variables()
            .is_some_and(|variables| !variables.is_empty());
        let has_secrets = matches!(&resource.spec, Spec::Connector(spec) if !stated(spec).is_empty());
        if !has_variables && !has_secrets {
            return Cow::Borrowed(resource);
        }
        let mut sealed = resource.clone();
        let variables = resource
            .spec
            .variables()
            .map(|variables| self.seal_all(variables));
        sealed.spec.set_variables(variables.unwrap_or_default());
        if let Spec::Connector(spec) = &mut sealed.spec {
            for (key, value) in stated(spec) {
                let name = format!("{}.{key}", resource.name);
                let sealed = self.seal(&name, &value);
                if let Some(properties) = &mut spec.properties {
                    properties.fields.insert(key, Value::from(sealed));
                }
            }
        }
        if let Some(meaning) = resource.spec.meaning() {
            sealed.spec.set_meaning(self.keyed(meaning));
        }
        if let Spec::Model(spec) = &mut sealed.spec
            && let Some(meaning) = &spec.output_meaning
        {
            spec.output_meaning = Some(self.keyed(meaning));
        }
        Cow::Owned(sealed)
    }

    /// Returns true if there is no value to redact.
    pub fn is_empty(&self) -> bool {
        self.known.read().unpoisoned().forms.is_empty()
    }

    /// Replaces each secret value in a text with `[NAME]`.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let known = self.known.read().unpoisoned();
        if !known.forms.iter().any(|(form, _)| text.contains(form.as_str())) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((at, form, name)) = known.first_in(rest) {
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str(&format!("[{name}]"));
            rest = rest.get(at + form.len()..).unwrap_or_default();
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// Redacts an error so that it may be stored.
    #[must_use]
    pub fn redact_error(&self, error: Error) -> Error {
        Error {
            message: self.redact(&error.message).as_ref().into(),
            hint: error
                .hint
                .as_deref()
                .map(|hint| self.redact(hint).as_ref().into()),
            details: error
                .details
                .as_deref()
                .map(|details| self.redact(details).as_ref().into()),
            ..error
        }
    }

    fn sealed(&self, name: &str, value: &str) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes()).update(value.as_bytes());
        let hash = hasher.finalize().to_hex();
        format!("{SEALED}{}", hash.get(..KEY_BYTES).unwrap_or_default())
    }

    /// Returns a keyed hash of a fingerprint made from values, so that nobody can test guesses against it.
    fn keyed(&self, print: &Fingerprint) -> Fingerprint {
        let hash = blake3::keyed_hash(&self.key, &print.digest);
        let length = print.digest.len().min(KEY_BYTES);
        Fingerprint {
            version: print.version.clone(),
            digest: hash.as_bytes().get(..length).unwrap_or_default().to_vec(),
        }
    }
}

impl Known {
    fn hide(&mut self, name: &str, value: &str) {
        for form in forms(value) {
            let is_name = self.names.contains(&form.to_lowercase());
            if !is_name && !self.forms.iter().any(|(known, _)| *known == form) {
                self.forms.push((form, name.to_owned()));
            }
        }
        self.forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
    }

    /// Returns the first secret form in a text, and the longest of several at one position.
    fn first_in(&self, text: &str) -> Option<(usize, &str, &str)> {
        let found = self.forms.iter().filter_map(|(form, name)| {
            let at = text.find(form.as_str())?;
            Some((at, form.as_str(), name.as_str()))
        });
        found.min_by_key(|(at, form, _)| (*at, std::cmp::Reverse(form.len())))
    }
}

/// Returns true if a text is a sealed value.
#[must_use]
pub fn is_sealed(text: &str) -> bool {
    let hash = text.strip_prefix(SEALED);
    hash.is_some_and(|hash| hash.len() == KEY_BYTES && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Replaces sealed values in a JSON value with `[NAME]`, named by their keys, for display.
pub fn show(value: &mut serde_json::Value, key: &str) {
    match value {
        serde_json::Value::String(text) if is_sealed(text) => *text = format!("[{key}]"),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| show(value, key)),
        serde_json::Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| show(value, key)),
        _ => {}
    }
}

/// Returns the secrets that a connector's file states as literals.
fn stated(spec: &watershed_proto::ConnectorSpec) -> Vec<(String, String)> {
    let properties = spec.properties.iter().flat_map(|properties| &properties.fields);
    let secrets = properties.filter_map(|(key, value)| {
        let lower = key.to_lowercase();
        let is_secret = SECRET_KEYS.iter().any(|word| lower.contains(word));
        let text = value.as_str().filter(|text| !text.contains("{{"))?;
        (is_secret && !is_sealed(text)).then(|| (key.clone(), text.to_owned()))
    });
    secrets.collect()
}

/// Returns the forms in which a value may occur in texts: as it is, quoted in SQL and JSON, encoded in addresses, and
/// each of its lines.
fn forms(value: &str) -> BTreeSet<String> {
    let lines = value.lines().map(str::trim);
    let whole = [value, value.trim()].into_iter().chain(lines);
    let mut forms = BTreeSet::new();
    for text in whole.filter(|text| is_worth_hiding(text)) {
        let json = serde_json::to_string(text).unwrap_or_default();
        forms.insert(json.trim_matches('"').to_owned());
        forms.insert(doubled(text, '\''));
        let encoded = percent_encoded(text);
        forms.insert(encoded.replace("%20", "+"));
        forms.insert(encoded);
        forms.insert(text.to_owned());
    }
    forms.retain(|form| form.chars().count() >= SHORTEST);
    forms
}

fn is_worth_hiding(text: &str) -> bool {
    let is_plain = |c: char| {
        c.is_ascii_digit() || matches!(c, '-' | '/' | ':' | '.' | ',' | '+' | '_' | ' ' | 'T' | 'Z')
    };
    let is_number = text.parse::<f64>().is_ok() || text.chars().all(is_plain);
    text.chars().count() >= SHORTEST && !is_number
}

fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn fresh_key() -> [u8; KEY_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("watershed 2026 key of sealed values");
    // Each has 74 bits from the system's source of randomness.
    for _ in 0..4 {
        hasher.update(uuid::Uuid::now_v7().as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// Writes a file atomically, readable by its owner alone.
pub fn write_for_owner(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}.new", uuid::Uuid::now_v7()));
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(&fresh)
        .and_then(|mut file| {
            io::Write::write_all(&mut file, bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(variables: &[(&str, &str)]) -> Secrets {
        let secrets = Secrets::default();
        let owned = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        secrets.learn(&owned.collect::<BTreeMap<_, _>>());
        secrets
    }

    #[test]
    fn values_are_replaced_by_their_names_in_every_form() {
        let secrets = secrets(&[("pw", "S3CR'ET\"9 x"), ("long", "S3CR'ET\"9 x and more")]);
        for (text, expected) in [
            ("it is S3CR'ET\"9 x!", "it is [pw]!"),
            ("where a = 'S3CR''ET\"9 x'", "where a = '[pw]'"),
            (r#"{"a":"S3CR'ET\"9 x"}"#, r#"{"a":"[pw]"}"#),
            ("https://u:S3CR%27ET%229%20x@h", "https://u:[pw]@h"),
            ("https://h/?p=S3CR%27ET%229+x", "https://h/?p=[pw]"),
            ("S3CR'ET\"9 x and more, S3CR'ET\"9 x", "[long], [pw]"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(secrets.redact(text), expected);
        }
    }

    #[test]
    fn each_line_of_a_value_is_replaced() {
        let secrets = secrets(&[("pem", "-----BEGIN\nabcdefgh\nxyz\n")]);
        assert_eq!(secrets.redact("found abcdefgh and xyz"), "found [pem] and xyz");
    }

    #[test]
    fn short_values_numbers_dates_and_names_stay() {
        let variables = [
            ("short", "abcde"),
            ("number", "1234567"),
            ("decimal", "-1234.5678"),
            ("date", "2026-01-31"),
            ("time", "2026-01-31T00:00:00Z"),
            ("model", "Orders_Daily"),
        ];
        let secrets = secrets(&variables);
        secrets.learn_names(["orders_daily"]);
        for (_, value) in variables {
            assert_eq!(secrets.redact(value), value);
        }
        secrets.learn([(&"later".to_owned(), &"orders_daily".to_owned())]);
        assert_eq!(secrets.redact("orders_daily"), "orders_daily");
    }

    #[test]
    fn what_is_sealed_is_opened_by_who_has_learned_it_and_by_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let secrets = Secrets::with_key_file(&path).unwrap();
        let variables = BTreeMap::from([("pw".to_owned(), "S3CRET99".to_owned())]);
        let sealed = secrets.seal_all(&variables);
        assert!(is_sealed(&sealed["pw"]), "{sealed:?}");
        assert_eq!(secrets.open(&sealed), Ok(variables.clone()));

        let restarted = Secrets::with_key_file(&path).unwrap();
        assert_eq!(restarted.open(&sealed), Err(Unknown { name: "pw".into() }));
        restarted.learn(&variables);
        assert_eq!(restarted.open(&sealed), Ok(variables.clone()));

        assert_ne!(secrets.seal("pw", "other"), sealed["pw"], "another value");
        assert_ne!(secrets.seal("qw", "S3CRET99"), sealed["pw"], "another variable");
        assert_ne!(Secrets::default().seal_all(&variables), sealed, "another key");
    }

    #[cfg(unix)]
    #[test]
    fn the_key_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        Secrets::with_key_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn nothing_prints_what_is_known() {
        let secrets = secrets(&[("pw", "S3CRET99")]);
        assert!(!format!("{secrets:?}").contains("S3CRET"));
    }
}
