//! Files of reports, for whoever may ask for rows, and for receivers by a signed address.
//!
//! The signature lets its holder read one file and nothing else. It stands in no log: the audit log has the id of the address.

mod ledger;

use std::fs::File;
use std::sync::Arc;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use uuid::Uuid;
use watershed_api::documents::Time;
use watershed_api::http::encoded;
use watershed_api::{Code, Problem};
use watershed_callers::Grants;
use watershed_core::Uid;

use self::ledger::{Exported, Ledger};
use super::answers::{Refused, Unanswered, has};
use super::caller::Caller;
use super::proxies::Client;
use super::sent_file;
use super::service::{Open, Served, Service};
use super::trail::Trail;
use crate::instance::links::{Link, ReportFile};
use crate::instance::{Links, Options};
use crate::state_folder;

/// The parameter of a query with the signature of an address.
const SIGNATURE: &str = "signature";
/// The name of the operation by which an address is opened.
const OPENED: &str = "export-open";

/// Signed addresses of the files of an instance's reports, at the service that serves the instance.
#[derive(Debug, Clone)]
pub struct ExportLinks {
    ledger: Ledger,
    instance: String,
    address: String,
}

impl ExportLinks {
    /// Creates the links of an instance. `address` is the service's URL for receivers, with its path prefix and without a
    /// slash at its end.
    ///
    /// # Errors
    /// When the options name no state folder.
    pub fn new(
        options: &Options,
        instance: impl Into<String>,
        address: impl Into<String>,
    ) -> Result<Self, state_folder::Error> {
        Ok(Self {
            ledger: Ledger::new(&options.state_folder()?),
            instance: instance.into(),
            address: address.into(),
        })
    }

    async fn sign(&self, file: ReportFile<'_>) -> Option<String> {
        let id = Uuid::now_v7();
        let record = Exported {
            id,
            instance: self.instance.clone(),
            report: file.uid.0,
            file: file.path.file_name()?.to_str()?.to_owned(),
            name: file.name.to_owned(),
            media_type: file.media_type.to_owned(),
            bytes: file.bytes,
            modified_ns: 0,
            hash: file.hash.to_owned(),
            ends_ms: 0,
        };
        let (ledger, now_ms) = (self.ledger.clone(), Time::now().millis());
        let added = tokio::task::spawn_blocking(move || ledger.add(record, now_ms))
            .await
            .ok()?;
        let signature = added
            .inspect_err(|error| tracing::warn!(%error, "a report's file gets no address"))
            .ok()?;
        let (address, instance) = (&self.address, encoded(&self.instance));
        Some(format!(
            "{address}/v1/instances/{instance}/exports/{id}?{SIGNATURE}={signature}"
        ))
    }
}

impl Links for ExportLinks {
    fn link<'a>(&'a self, file: ReportFile<'a>) -> Link<'a> {
        Box::pin(self.sign(file))
    }
}

/// The parts of a signed address.
pub(super) struct Signed {
    /// Name of the instance, as it is in paths.
    instance: String,
    id: String,
    signature: String,
}

/// Returns the parts of the signed address that is asked; none if the request is not for one.
pub(super) fn signed(head: &Parts) -> Option<Signed> {
    if !matches!(head.method, Method::GET | Method::HEAD) {
        return None;
    }
    let (instance, id) = head
        .uri
        .path()
        .strip_prefix("/v1/instances/")?
        .split_once("/exports/")?;
    let (name, signature) = head.uri.query()?.split_once('=')?;
    (name == SIGNATURE && !id.contains('/')).then(|| Signed {
        instance: instance.to_owned(),
        id: id.to_owned(),
        signature: signature.to_owned(),
    })
}

/// Sends the file of a signed address. Whatever is wrong with the address, the answer is that of one which never was.
pub(super) async fn answer_signed(service: &Service, head: &Parts, asked: Signed) -> Response {
    let base = service.base();
    let Some((open, name, record)) = find_signed(service, asked).await else {
        let client = head.extensions.get::<Client>().and_then(|client| client.address);
        if let Err(refused) = service.gate().failed_sign_in(client, base) {
            return refused.into_response();
        }
        return Refused::new(unknown(), base).into_response();
    };
    let caller = Caller::with(format!("link:{}", record.id), Grants::default());
    if let Err(refused) = service.gate().admit(&caller, base) {
        return refused.into_response();
    }
    let trail = Trail::new(service.state().cloned(), &caller, Some(&name), OPENED);
    trail.about(&record.id.to_string());
    let answered = async {
        trail.begin().await?;
        send(&open, record, &head.headers).await
    };
    let answered = answered.await;
    trail.end(&answered).await;
    answered.unwrap_or_else(|refused| refused.answer(base))
}

async fn find_signed(service: &Service, asked: Signed) -> Option<(Open, String, Exported)> {
    let all = service.all().into_iter();
    let (name, open) =
        all.filter(|(name, _)| encoded(name) == asked.instance)
            .find_map(|(name, served)| match served {
                Served::Open(open) => Some((name, open)),
                Served::Opening | Served::Failed(_) => None,
            })?;
    let (ledger, id) = (Ledger::new(&open.instance.state), plain_id(&asked.id)?);
    let found = move || ledger.get_signed(id, &asked.signature, Time::now().millis());
    let record = tokio::task::spawn_blocking(found).await.ok()??;
    (record.instance == name && has_report(&open, &record)).then_some((open, name, record))
}

/// Sends the file of a report to a caller who may ask for rows. `place` is the path of the instance.
///
/// # Errors
/// `unknown-name`, the same for an address that has ended and one that never was.
pub(super) async fn answer(
    open: &Open,
    id: &str,
    place: &str,
    headers: &HeaderMap,
) -> Result<Response, Unanswered> {
    let (ledger, id) = (
        Ledger::new(&open.instance.state),
        plain_id(id).ok_or_else(unknown)?,
    );
    let found = tokio::task::spawn_blocking(move || ledger.get(id, Time::now().millis())).await;
    let record = found.ok().flatten().ok_or_else(unknown)?;
    let is_here = place.ends_with(&format!("/v1/instances/{}", encoded(&record.instance)));
    if !is_here || !has_report(open, &record) {
        return Err(unknown().into());
    }
    send(open, record, headers).await
}

/// Ends an address.
///
/// # Errors
/// `unknown-name` if there is none of this id.
pub(super) async fn revoke(open: &Open, id: &str) -> Result<Response, Unanswered> {
    let (ledger, id) = (
        Ledger::new(&open.instance.state),
        plain_id(id).ok_or_else(unknown)?,
    );
    let removed = tokio::task::spawn_blocking(move || ledger.remove(id)).await;
    let unkept = |why: &dyn std::fmt::Display| {
        Problem::new(Code::Unavailable, format!("the address can't be ended: {why}"))
    };
    match removed
        .map_err(|error| unkept(&error))?
        .map_err(|error| unkept(&error))?
    {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(unknown().into()),
    }
}

/// Returns an id in the one form that addresses have.
fn plain_id(text: &str) -> Option<Uuid> {
    let id: Uuid = text.parse().ok()?;
    (id.to_string() == text).then_some(id)
}

fn has_report(open: &Open, record: &Exported) -> bool {
    let found = open.instance.controller().get(Uid(record.report));
    found.is_ok_and(|found| !found.row.intents.is_deleted())
}

fn unknown() -> Problem {
    Problem::new(Code::UnknownName, "there is no file at this address")
        .hint("files of reports are kept for 31 days at most; the report makes another one when it runs")
}

async fn send(open: &Open, record: Exported, headers: &HeaderMap) -> Result<Response, Unanswered> {
    let busy = |_| Problem::new(Code::Busy, "many files are being sent").hint("ask again in a moment");
    let permit = Arc::clone(&open.sending).try_acquire_owned().map_err(busy)?;
    let ledger = Ledger::new(&open.instance.state);
    let opened = tokio::task::spawn_blocking(move || ledger.open(&record).map(|file| (file, record))).await;
    let (file, record): (File, Exported) = opened.ok().flatten().ok_or_else(unknown)?;
    let version = format!("\"{}\"", record.hash);
    let mut response = match has(headers, &version) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let mut response = Response::new(sent_file::body(tokio::fs::File::from_std(file), permit));
            let length = HeaderValue::from(record.bytes);
            response.headers_mut().insert(CONTENT_LENGTH, length);
            response
        }
    };
    let headers = response.headers_mut();
    let texts = [
        (ETAG, version),
        (CONTENT_TYPE, record.media_type.clone()),
        (CONTENT_DISPOSITION, disposition(&record.name)),
    ];
    for (name, text) in texts {
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.insert(name, value);
        }
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    let confined = HeaderValue::from_static("default-src 'none'; sandbox");
    headers.insert(CONTENT_SECURITY_POLICY, confined);
    Ok(response)
}

/// Returns the header by which a browser stores a file, under a name of plain letters.
fn disposition(name: &str) -> String {
    let plain = |sign: char| match sign {
        sign if sign.is_ascii_alphanumeric() => sign,
        '.' | '-' | '_' => sign,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("attachment; filename=\"{}\"", name.trim_start_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain() {
        for (name, told) in [
            ("daily-2027-03-01.csv", "daily-2027-03-01.csv"),
            ("a\"; filename=\"b.exe", "a___filename__b.exe"),
            ("../../x\r\ny", "_.._x__y"),
            ("Größe.csv", "Gr__e.csv"),
        ] {
            assert_eq!(disposition(name), format!("attachment; filename=\"{told}\""));
        }
    }

    #[test]
    fn ids_have_one_form() {
        let id = Uuid::now_v7();
        assert_eq!(plain_id(&id.to_string()), Some(id));
        for other in [
            id.simple().to_string(),
            id.to_string().to_uppercase(),
            format!("{{{id}}}"),
            String::new(),
        ] {
            assert_eq!(plain_id(&other), None);
        }
    }
}
