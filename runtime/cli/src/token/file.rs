//! A file of tokens, to which the operator adds a line without a service.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde_json::json;
use watershed::http::{Grants, Minted, Wanted};
use watershed_api::documents::Time;
use watershed_api::http::access::{TokenEntry, TokenMade, TokenOrigin, TokenRequest, TokenState};
use watershed_callers::Token;
use watershed_compilers::configuration::read_tokens;
use watershed_drivers::regular;

use crate::failure::Failure;

/// The largest file of tokens, in bytes.
const LARGEST: usize = 1 << 20;

/// Makes a token and adds its line to a file, which is made if it is not there. The file appears whole or stays as it was.
pub(super) fn add(path: &Path, request: TokenRequest) -> Result<TokenMade, Failure> {
    let shown = path.display();
    let mut text = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::usage(format!("can't read `{shown}`: {error}"))),
        Ok(about) => kept(path, &about)?,
    };
    let (known, found) = read_tokens(&shown.to_string(), text.as_bytes());
    if let Some(mistake) = found.first() {
        let (line, message) = (mistake.span.line, &mistake.message);
        let failure = Failure::usage(format!("`{shown}` is no file of tokens: line {line}: {message}"));
        return Err(failure.hint("mend the file, or name another one"));
    }
    let Minted { token, text: secret } = Token::mint(wanted(&request)?);
    debug_assert!(known.iter().all(|one| one.id.text != token.id));
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut line = json!({ "id": token.id, "name": token.name, "roles": token.roles });
    if let Some(operations) = &token.operations {
        line["operations"] = json!(operations);
    }
    if !token.select.is_empty() {
        line["select"] = json!(token.select);
    }
    let expires_at = Time::from_millis(token.expires_ms);
    line["expires"] = json!(expires_at);
    line["sha256"] = json!(token.sha256);
    line["scram"] = json!(token.scram);
    text.push_str(&format!("- {line}\n"));
    replace(path, &text).map_err(|error| Failure::usage(format!("can't write `{shown}`: {error}")))?;
    Ok(TokenMade {
        schema: TokenMade::SCHEMA.to_owned(),
        token: TokenEntry {
            id: token.id,
            name: token.name,
            roles: request.roles,
            operations: token.operations,
            select: token.select,
            state: TokenState::Valid,
            origin: TokenOrigin::File,
            expires_at,
            made_at: None,
            made_by: None,
            used_at: None,
            revoked_at: None,
        },
        secret: Some(secret),
    })
}

/// Reads a file that is there, and that nobody but its owner may read or write.
fn kept(path: &Path, about: &fs::Metadata) -> Result<String, Failure> {
    let shown = path.display();
    if about.file_type().is_symlink() {
        return Err(Failure::usage(format!("`{shown}` is a link")).hint("name the file itself"));
    }
    if about.mode() & 0o077 != 0 {
        let message = format!("others than its owner may read or write `{shown}`");
        return Err(Failure::usage(message).hint(format!("`chmod 600 {shown}`")));
    }
    let bytes = regular::read(path, LARGEST);
    let bytes = bytes.map_err(|error| Failure::usage(format!("can't read `{shown}`: {error}")))?;
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("`{shown}` is not UTF-8 text")))
}

fn wanted(request: &TokenRequest) -> Result<Wanted, Failure> {
    let mut roles = Grants::default();
    for (instance, role) in &request.roles {
        let grant = role.parse().map_err(|error| Failure::usage(format!("{error}")))?;
        roles.add(instance.clone(), grant);
    }
    Ok(Wanted {
        name: request.name.clone(),
        roles,
        operations: request.operations.clone(),
        select: request.select.clone(),
        expires_ms: request.expires_at.map_or(i64::MAX, Time::millis),
    })
}

/// Writes a file for its owner alone, in one step and durably.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let name = path
        .file_name()
        .ok_or(std::io::ErrorKind::InvalidInput)?
        .to_string_lossy();
    let fresh = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let written = options.open(&fresh).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&fresh);
        return written;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
