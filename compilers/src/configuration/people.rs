//! Keys of `auth` about people: an identity provider, a proxy's header, and what their claims give.

use std::collections::BTreeMap;

use super::network::{Listen, Network, needed};
use super::{Placed, finish, placed};
use crate::{
    diagnostics::Code,
    yaml::{Data, Fields, Node, keys::blocks},
};

blocks! {
    /// Keys of the identity provider.
    pub(crate) static OIDC = "oidc" Refused {
        "issuer": Text, "The address of the identity provider, as its tokens name it.";
        "client_id": Text, "The name that the provider has given to this service.";
        "client_secret_file": Text, "The file of the secret that the provider has given to this service. Only its owner may read it.";
        "ca_cert_file": Text, "A file of certificates, in PEM form, of authorities that are trusted beside the public ones.";
    }

    /// Keys of the header in which a proxy names the person.
    pub(crate) static HEADER = "header" Refused {
        "name": Text, "The header in which the proxy writes the person's e-mail address.";
        "secret_name": Text, "The header in which the proxy writes the secret.";
        "secret_file": Text, "The file of the secret that the proxy shows. Only its owner may read it.";
    }

    /// Keys of a rule that gives a role.
    pub(crate) static ROLE_RULE = "role" Refused {
        "claim": Text, "The claim of the provider's token, such as `groups` or `email`.";
        "value": Text, "The value that gives the role; of a list, any element.";
        "instance": Text, "The instance, or `*` for all.";
        "role": Text, "The role: `read`, `operate`, `edit` or `admin`, with `+query` behind it for free SQL.";
    }
}

/// Headers that clients of any kind send, and that name nobody.
const TAKEN: [&str; 6] = [
    "authorization",
    "cookie",
    "host",
    "origin",
    "forwarded",
    "connection",
];

/// The people of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    /// Identity provider; none if not set.
    pub oidc: Option<Oidc>,
    /// Header of a proxy; none if not set.
    pub header: Option<Header>,
    /// Claims by the attribute that each provides.
    pub attributes: BTreeMap<String, String>,
    /// Rules that give roles.
    pub roles: Vec<RoleRule>,
}

/// An identity provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oidc {
    /// Address of the provider, as its tokens name it.
    pub issuer: String,
    /// Name of the service at the provider.
    pub client_id: String,
    /// Path of the file of the service's secret at the provider; none for a public client.
    pub client_secret_file: Option<Placed>,
    /// Path of a file of certificates of trusted authorities; none if not set.
    pub ca_cert_file: Option<Placed>,
}

/// The header in which a proxy names the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name of the header.
    pub name: String,
    /// Name of the header with the secret, and the path of the secret's file; none over a Unix socket.
    pub secret: Option<(String, Placed)>,
}

/// A rule that gives a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRule {
    /// Name of the claim.
    pub claim: String,
    /// Value of the claim.
    pub value: String,
    /// Name of the instance, or `*`.
    pub instance: Placed,
    /// The role.
    pub role: Placed,
}

impl People {
    /// Reads the keys about people from the block `auth`.
    pub(super) fn read(fields: &mut Fields<'_>, network: &Network) -> Self {
        let is_for_people = fields.has("oidc") || fields.has("header");
        for key in ["attributes", "roles"] {
            if let (false, Some(at)) = (is_for_people, fields.key_at(key)) {
                let message = format!("`{key}` is about people, and nobody can sign in");
                let hint = "name a provider under `oidc`, or a proxy's header under `header`";
                fields
                    .findings()
                    .add_with_hint(at, Code::ConflictingKeys, message, hint);
            }
        }
        Self {
            oidc: oidc(fields),
            header: header(fields, network),
            attributes: fields.text_map("attributes"),
            roles: roles(fields),
        }
    }
}

fn oidc(fields: &mut Fields<'_>) -> Option<Oidc> {
    let (map, at) = fields.map("oidc")?;
    let mut fields = Fields::new(map, at, fields.findings());
    let issuer_at = fields.value_at("issuer");
    let issuer = needed(&mut fields, "oidc", "issuer");
    if let (Some(issuer), Some(at)) = (&issuer, issuer_at)
        && !is_https(&issuer.text)
    {
        let message = format!("`{}` is no address of a provider over HTTPS", issuer.text);
        let hint = "write `https://` and the provider's address as its tokens name it, without a query";
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
    let client = needed(&mut fields, "oidc", "client_id");
    secret_in_file(&mut fields, "client_secret");
    let (client_secret_file, ca_cert_file) = (
        placed(&mut fields, "client_secret_file"),
        placed(&mut fields, "ca_cert_file"),
    );
    finish(fields, &OIDC, &[]);
    Some(Oidc {
        issuer: issuer?.text,
        client_id: client?.text,
        client_secret_file,
        ca_cert_file,
    })
}

fn is_https(issuer: &str) -> bool {
    let rest = issuer.strip_prefix("https://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let is_plain = |sign: char| sign.is_ascii_graphic() && !matches!(sign, '?' | '#' | '@' | '\\');
    !host.is_empty() && !host.starts_with(':') && rest.chars().all(is_plain)
}

/// Refuses a secret that is written into the configuration itself.
fn secret_in_file(fields: &mut Fields<'_>, key: &str) {
    if let Some(entry) = fields.take(key) {
        let message = format!("`{key}` is a secret, and a configuration is read by many");
        let hint = format!("write the secret into a file, and its path under `{key}_file`");
        fields
            .findings()
            .add_with_hint(entry.key_at, Code::InvalidValue, message, hint);
    }
}

fn header(fields: &mut Fields<'_>, network: &Network) -> Option<Header> {
    let (map, at) = fields.map("header")?;
    let is_over_file = matches!(network.listen, Some(Listen::File(_)));
    let mut fields = Fields::new(map, at, fields.findings());
    if network.proxies.is_empty() && !is_over_file {
        let message = "`header` names people by a proxy, and no proxy is declared";
        let hint = "write the proxy's address under `proxies`, or listen on `unix:` and a file";
        fields
            .findings()
            .add_with_hint(at, Code::MissingKey, message, hint);
    }
    let name = header_name(&mut fields, "name", "it has the person's e-mail address");
    secret_in_file(&mut fields, "secret");
    let has_secret = fields.has("secret_name") || fields.has("secret_file");
    let secret = match has_secret || !is_over_file {
        true => {
            let why = "over TCP whoever gets to the proxy's address could name people";
            let secret_name = header_name(&mut fields, "secret_name", why);
            if !fields.has("secret_file") {
                missing(&mut fields, "secret_file", why);
            }
            secret_name.zip(placed(&mut fields, "secret_file"))
        }
        false => None,
    };
    finish(fields, &HEADER, &[]);
    Some(Header { name: name?, secret })
}

fn missing(fields: &mut Fields<'_>, key: &str, why: &str) {
    let (at, message) = (fields.at(), format!("`header` needs the key `{key}`: {why}"));
    fields.findings().add(at, Code::MissingKey, message);
}

/// Takes the name of a header, in lower case. `why` says what it is needed for.
fn header_name(fields: &mut Fields<'_>, key: &str, why: &str) -> Option<String> {
    let Some(at) = fields.value_at(key) else {
        missing(fields, key, why);
        return None;
    };
    let name = placed(fields, key)?.text.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if !name.bytes().all(is_plain) || TAKEN.contains(&name.as_str()) || name.starts_with("x-forwarded-") {
        let message = format!("`{name}` can't be the header of a proxy");
        let hint = "write a name that nothing else uses, such as `X-Auth-Email`";
        fields
            .findings()
            .add_with_hint(at, Code::InvalidValue, message, hint);
    }
    Some(name)
}

fn roles(fields: &mut Fields<'_>) -> Vec<RoleRule> {
    let nodes = fields.list("roles").unwrap_or_default();
    let rules = nodes.into_iter();
    rules.filter_map(|node| rule(node, fields)).collect()
}

fn rule(node: Node, fields: &mut Fields<'_>) -> Option<RoleRule> {
    let Data::Map(map) = node.data else {
        let message = format!("a rule of `roles` is a mapping, not {}", node.data.type_name());
        fields.findings().add(node.at, Code::WrongType, message);
        return None;
    };
    let mut fields = Fields::new(map, node.at, fields.findings());
    let [claim, value, instance, role] =
        ["claim", "value", "instance", "role"].map(|key| needed(&mut fields, "roles", key));
    finish(fields, &ROLE_RULE, &[]);
    Some(RoleRule {
        claim: claim?.text,
        value: value?.text,
        instance: instance?,
        role: role?,
    })
}
