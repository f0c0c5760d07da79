//! Paths of the service itself, above its instances, and their documents: who asks, tokens, and the audit log.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::own::InstancesPage;
use super::routes::Method;
use crate::documents::{Time, Trust};
use crate::operations::Role;

/// A path of the service itself: one line of the table.
#[derive(Clone, Copy)]
pub struct ServicePath {
    /// HTTP method of the path.
    pub method: Method,
    /// The path, below the service's path prefix.
    pub path: &'static str,
    /// Operation id of the path, by which generated clients call it.
    pub id: &'static str,
    /// Access that a caller needs, in words.
    pub access: &'static str,
    /// Purpose of the path, in a short sentence.
    pub summary: &'static str,
    /// Returns the schema of the body; none if the path takes no body.
    pub form: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// HTTP status of the answer.
    pub status: u16,
    /// Returns the schema of the document.
    pub document: fn(&mut SchemaGenerator) -> Schema,
    /// Parameters of the query, each with its meaning.
    pub query: &'static [(&'static str, &'static str)],
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

const fn path<T: JsonSchema>(
    method: Method,
    path: &'static str,
    id: &'static str,
    access: &'static str,
    summary: &'static str,
) -> ServicePath {
    ServicePath {
        method,
        path,
        id,
        access,
        summary,
        form: None,
        status: 200,
        document: schema_of::<T>,
        query: &[],
    }
}

const TOKENS: &str = "`admin` on each instance that the token names";

/// All documents of the service itself, by path.
pub const SERVICE_PATHS: &[ServicePath] = &[
    path::<InstancesPage>(
        Method::Get,
        "/v1/instances",
        "get_instances",
        "a role on the instance",
        "Lists the instances of the service",
    ),
    path::<Me>(
        Method::Get,
        "/v1/me",
        "get_me",
        "any role",
        "Tells who asks, and what the one may do",
    ),
    path::<TokensDocument>(
        Method::Get,
        "/v1/tokens",
        "get_tokens",
        TOKENS,
        "Lists the tokens, the newest first",
    ),
    ServicePath {
        form: Some(schema_of::<TokenRequest>),
        status: 201,
        ..path::<TokenMade>(
            Method::Post,
            "/v1/tokens",
            "post_tokens",
            TOKENS,
            "Makes a token, whose secret is shown this once",
        )
    },
    path::<TokenEntry>(
        Method::Delete,
        "/v1/tokens/{id}",
        "delete_tokens_id",
        TOKENS,
        "Revokes a token, and ends its streams",
    ),
    ServicePath {
        query: &[
            (
                "limit",
                "The number of entries on the page, from 1 to 1000; 100 unless told.",
            ),
            ("page", "The token of a page, from the one before."),
        ],
        ..path::<AuditDocument>(
            Method::Get,
            "/v1/audit",
            "get_audit",
            "`admin` on `*`",
            "Tells of operations that change something, the latest first",
        )
    },
];

/// The identity and access of the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Me {
    /// Name and version of this form: `watershed.me/1`.
    pub schema: String,
    /// Name of the caller in the history and the audit log.
    pub principal: String,
    /// Manner in which the caller was recognised.
    pub authentication: Authentication,
    /// Roles that the caller has on all instances.
    pub roles: Vec<Role>,
    /// Role on each instance, such as `operate+query`; `*` stands for all instances.
    pub instances: BTreeMap<String, String>,
    /// Rights of the project's files, of each open instance on which the caller has a role.
    #[serde(default)]
    pub trust: BTreeMap<String, Trust>,
    /// Instances with the trust `full` whose files callers other than the service's user may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remote_edit: Vec<String>,
    /// Attributes that policies see; empty if no policy applies to the caller.
    pub attributes: BTreeMap<String, Value>,
    /// Names of the only operations that a narrowed token allows; absent if it allows all that its roles do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// The only resources that a narrowed token is for, in the language of the command line; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Time at which the access ends; absent if it has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

impl Me {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.me/1";
}

/// The manner in which a caller was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Authentication {
    /// The caller is the user who started the process, or was recognised by the program around the service.
    Local,
    /// The caller sent a token of the service.
    Token,
    /// The caller sent a token of the identity provider.
    Jwt,
    /// The caller has signed in with a browser.
    Session,
    /// A proxy named the caller.
    Proxy,
}

/// A token to make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// Name for people, such as `nightly job`.
    pub name: String,
    /// Role on each instance, such as `operate+query`; `*` stands for all instances.
    pub roles: BTreeMap<String, String>,
    /// Names of the only operations that the token allows, as `x-operation` of paths; absent for all that its roles allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// The only resources that the token is for, in the language of the command line; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Time at which the token ends; 90 days from now if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A token of the service, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenEntry {
    /// Public id of the token.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// Role on each instance; `*` stands for all instances.
    pub roles: BTreeMap<String, String>,
    /// Names of the only operations that the token allows; absent for all that its roles allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    /// The only resources that the token is for; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// State of the token.
    pub state: TokenState,
    /// Place where the token is kept.
    pub origin: TokenOrigin,
    /// Time at which the token ends.
    pub expires_at: Time,
    /// Time at which the token was made; null for one of the file.
    pub made_at: Option<Time>,
    /// Name of the caller who made the token; null for one of the file.
    pub made_by: Option<String>,
    /// Time of the last use, within a minute; null if none is known.
    pub used_at: Option<Time>,
    /// Time at which the token was revoked; null if it was not.
    pub revoked_at: Option<Time>,
}

/// The state of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// The token is accepted.
    Valid,
    /// The token has expired.
    Expired,
    /// The token was revoked.
    Revoked,
}

impl TokenState {
    /// Returns the state in words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

/// The place where a token is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenOrigin {
    /// The token was made by a caller, and is kept in the state of the service.
    State,
    /// The token stands in a file that the configuration names.
    File,
}

/// The tokens of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokensDocument {
    /// Name and version of this form: `watershed.tokens/1`.
    pub schema: String,
    /// Tokens, the newest first, and those of the file last.
    pub tokens: Vec<TokenEntry>,
}

impl TokensDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.tokens/1";
}

/// A token that was made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenMade {
    /// Name and version of this form: `watershed.token/1`.
    pub schema: String,
    /// The token, without its secret.
    pub token: TokenEntry,
    /// Text to send as `Authorization: Bearer TEXT`, shown this once; absent where the answer is given again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl TokenMade {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.token/1";
}

impl std::fmt::Debug for TokenMade {
    /// Formats without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenMade")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// A page of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditDocument {
    /// Name and version of this form: `watershed.audit/1`.
    pub schema: String,
    /// Entries of this page, the latest first.
    pub entries: Vec<AuditLine>,
    /// Token of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl AuditDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.audit/1";
}

/// An operation that changes something, or was meant to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditLine {
    /// Time of the call.
    pub at: Time,
    /// Name of the caller.
    pub principal: String,
    /// Protocol of the call, such as `http`.
    pub protocol: String,
    /// Instance of the call; null for the service itself.
    pub instance: Option<String>,
    /// Name of the operation.
    pub operation: String,
    /// Resources or id that the operation is about; null for all of the instance.
    pub subject: Option<String>,
    /// Id of the request, if the work goes on after the answer.
    pub request: Option<String>,
    /// `done`, or the code of the problem; null if the process ended before the outcome was known.
    pub outcome: Option<String>,
}
