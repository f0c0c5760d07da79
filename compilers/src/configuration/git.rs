//! The key `git` of an instance: the repository and the revision whose files it serves.

use super::{Placed, finish, placed};
use crate::{
    diagnostics::Code,
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of a repository.
    pub(crate) static GIT = "git" Refused {
        "url": Text, "The address of the repository: `https://...`, or `file://...` for one on this machine.";
        "revision": Text, "The branch, tag or commit; the repository's own head unless set.";
        "secret_file": Text, "The file of the secret under which webhooks are signed that have the files fetched. Only its owner may read it.";
        "ca_cert_file": Text, "A file of certificates, in PEM form, of the authorities that are trusted for the repository's server in the place of the public ones.";
        "credentials_file": Text, "The file with `NAME:PASSWORD` for the repository's server. Only its owner may read it.";
    }
}

/// The longest address or revision, in bytes.
const LONGEST: usize = 1_024;

/// A repository as it is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    /// Address of the repository.
    pub url: Placed,
    /// Branch, tag or commit; none for the repository's head.
    pub revision: Option<Placed>,
    /// Path of the file with the secret of webhooks; none if none are taken.
    pub secret_file: Option<Placed>,
    /// Path of the file with certificates of trusted authorities; none for the public ones.
    pub ca_cert_file: Option<Placed>,
    /// Path of the file with the name and password for the server; none for a public repository.
    pub credentials_file: Option<Placed>,
}

/// Takes the key `git`; none if it is not there or has no address.
pub(super) fn git(fields: &mut Fields<'_>) -> Option<Git> {
    let (map, at) = fields.map("git")?;
    let mut keys = Fields::new(map, at, fields.findings());
    let url = placed(&mut keys, "url");
    let revision = placed(&mut keys, "revision");
    let (secret_file, credentials_file, ca_cert_file) = (
        placed(&mut keys, "secret_file"),
        placed(&mut keys, "credentials_file"),
        placed(&mut keys, "ca_cert_file"),
    );
    if url.is_none() && !keys.has("url") {
        let hint = "name the repository: `git: {url: \"https://git.example.org/ops.git\"}`";
        let message = "`git` needs a `url`";
        keys.findings().add_with_hint(at, Code::MissingKey, message, hint);
    }
    for (key, value, problem) in [
        ("url", &url, url.as_ref().and_then(|url| wrong_url(&url.text))),
        (
            "revision",
            &revision,
            revision
                .as_ref()
                .and_then(|revision| wrong_revision(&revision.text)),
        ),
    ] {
        if let (Some(value), Some((message, hint))) = (value, problem) {
            let at = crate::diagnostics::At {
                role: at.role,
                span: value.span,
            };
            let message = format!("`{key}` {message}");
            keys.findings()
                .add_with_hint(at, Code::InvalidValue, message, hint);
        }
    }
    finish(keys, &GIT, &[]);
    Some(Git {
        url: url?,
        revision,
        secret_file,
        ca_cert_file,
        credentials_file,
    })
}

/// Returns what is wrong with the address of a repository, and a hint.
fn wrong_url(url: &str) -> Option<(&'static str, &'static str)> {
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    let rest = url.strip_prefix("https://");
    let authority = rest.map(|rest| rest.split('/').next().unwrap_or_default());
    match (authority, url.strip_prefix("file:///")) {
        _ if url.len() > LONGEST || !is_plain => Some((
            "has signs that no address has",
            "write the address as `git clone` takes it",
        )),
        (Some(authority), _) if authority.contains('@') => Some((
            "has a name or a password in it",
            "write `NAME:PASSWORD` into a file, and name the file by `credentials_file`",
        )),
        (Some(authority), _) if !authority.is_empty() => None,
        (_, Some(path)) if !path.is_empty() => None,
        _ => Some((
            "is no address that is fetched from",
            "use `https://...`, or `file:///...` for a repository on this machine",
        )),
    }
}

/// Returns what is wrong with a revision, and a hint.
fn wrong_revision(revision: &str) -> Option<(&'static str, &'static str)> {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'+');
    let is_good = revision.bytes().all(is_plain)
        && !revision.starts_with(['-', '+', '/', '.'])
        && !revision.ends_with(['/', '.'])
        && !revision.contains("..")
        && !revision.contains("//")
        && revision.len() <= LONGEST;
    (!is_good).then_some((
        "is no name of a revision",
        "name a branch, a tag or the whole id of a commit",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_revisions_that_could_mean_something_else_are_refused() {
        for url in [
            "https://git.example.org/ops.git",
            "https://git.example.org:8443/a",
            "file:///srv/ops.git",
        ] {
            assert_eq!(wrong_url(url), None, "{url}");
        }
        for url in [
            "",
            "-oProxyCommand=touch",
            "--upload-pack=touch",
            "ext::sh -c touch",
            "http://git.example.org/ops.git",
            "ssh://git.example.org/ops.git",
            "git@git.example.org:ops.git",
            "https://user:secret@git.example.org/ops.git",
            "https:///ops.git",
            "file://",
            "file:///",
            "file://host/ops.git",
            "https://git.example.org/a b",
            "/srv/ops.git",
        ] {
            assert!(wrong_url(url).is_some(), "{url}");
        }
        for revision in [
            "main",
            "v1.0",
            "feature/a-b",
            "0123456789abcdef0123456789abcdef01234567",
        ] {
            assert_eq!(wrong_revision(revision), None, "{revision}");
        }
        for revision in [
            "-f", "+main", "a..b", "a:b", "main~1", "a b", "/a", "a/", "HEAD^", "@{u}", "a*",
        ] {
            assert!(wrong_revision(revision).is_some(), "{revision}");
        }
    }
}
