//! Delivery to Slack: incoming webhooks, and channels and users by a bot's token.

use serde_json::{Value, json};
use watershed_outside::http::{Client, Method, Url};

use super::client::{AddressError, Answer, address, send};
use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::Message;
use crate::policy::Class;

/// Base URL of Slack's API.
const API: &str = "https://slack.com/api/";
/// Slack's limit of a section, in characters.
const SECTION_MAX: usize = 3_000;
/// Slack's error codes after which a retry may succeed.
const TRY_AGAIN: [&str; 7] = [
    "fatal_error",
    "internal_error",
    "rate_limited",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
];

/// Posts messages to Slack.
#[derive(Clone)]
pub struct Slack {
    client: Client,
    to: To,
}

#[derive(Clone)]
enum To {
    Webhook(Url),
    Bot { api: Url, token: String },
}

impl Slack {
    /// Creates the notifier for an incoming webhook.
    ///
    /// # Errors
    /// When the address is none that may be used.
    pub fn webhook(client: Client, url: &str) -> Result<Self, AddressError> {
        let to = To::Webhook(address(&client, url)?);
        Ok(Self { client, to })
    }

    /// Creates the notifier for a bot with its token. Receivers are channels by name or id, and users by e-mail
    /// address. `api` replaces the base URL of Slack's API.
    ///
    /// # Errors
    /// When the address is none that may be used.
    pub fn bot(client: Client, token: impl Into<String>, api: Option<&str>) -> Result<Self, AddressError> {
        let to = To::Bot {
            api: address(&client, api.unwrap_or(API))?,
            token: token.into(),
        };
        Ok(Self { client, to })
    }

    async fn post(&self, message: &Message, attempt: Attempt<'_>) -> Result<Receipt, DeliveryError> {
        let mut body = body(message);
        let (api, token) = match &self.to {
            To::Webhook(url) => {
                let request = self.client.request(Method::POST, url.clone());
                let answer = send(request.json(body.to_string().into_bytes())).await?;
                return Ok(Receipt {
                    said: answer.status.to_string(),
                });
            }
            To::Bot { api, token } => (api, token),
        };
        let channel = match attempt.to.contains('@') {
            true => self.user(api, token, attempt.to).await?,
            false => attempt.to.to_owned(),
        };
        body["channel"] = json!(channel);
        let url = method(api, "chat.postMessage")?;
        let request = self.client.request(Method::POST, url).bearer(token);
        let said = said(&send(request.json(body.to_string().into_bytes())).await?)?;
        let id = said["ts"].as_str().unwrap_or("ok");
        Ok(Receipt { said: id.to_owned() })
    }

    /// Looks up the id of the user with an e-mail address.
    async fn user(&self, api: &Url, token: &str, email: &str) -> Result<String, DeliveryError> {
        let mut url = method(api, "users.lookupByEmail")?;
        url.query_pairs_mut().append_pair("email", email);
        let request = self.client.request(Method::GET, url).bearer(token);
        let said = said(&send(request).await?)?;
        let id = said["user"]["id"].as_str();
        id.map(str::to_owned)
            .ok_or_else(|| DeliveryError::transient("Slack answered without the user's id"))
    }
}

impl Notifier for Slack {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.post(message, attempt))
    }
}

fn method(api: &Url, name: &str) -> Result<Url, DeliveryError> {
    api.join(name)
        .map_err(|_| DeliveryError::permanent("the address of Slack's interface is no URL"))
}

/// Decodes an answer of the API, whose status is always 200.
fn said(answer: &Answer) -> Result<Value, DeliveryError> {
    let said: Value = serde_json::from_slice(&answer.body)
        .map_err(|_| DeliveryError::transient("Slack's answer can't be read"))?;
    if said["ok"].as_bool() == Some(true) {
        return Ok(said);
    }
    let code = said["error"].as_str().unwrap_or("no reason");
    let class = match TRY_AGAIN.contains(&code) {
        true => Class::Transient,
        false => Class::Permanent,
    };
    // Its codes are words of its own, and no part of what was sent.
    let code: String = code
        .chars()
        .filter(|c| c.is_ascii_lowercase() || *c == '_')
        .collect();
    Err(DeliveryError::of(class, format!("Slack refused it: {code}")))
}

/// Returns the JSON body: the text for notifications, and the blocks that are shown.
fn body(message: &Message) -> Value {
    let mut blocks = vec![json!({
        "type": "section",
        "text": {"type": "mrkdwn", "text": cut(format!("*{}*", escaped(&message.headline())))},
    })];
    let mut section = |text: String| {
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": cut(text)}}));
    };
    if !message.text.is_empty() {
        section(escaped(&message.text));
    }
    if !message.facts.is_empty() {
        let lines: Vec<String> = message
            .facts
            .iter()
            .map(|fact| format!("{}: {}", escaped(&fact.label), escaped(&fact.value)))
            .collect();
        section(lines.join("\n"));
    }
    if let Some(table) = &message.table {
        let fence = "```";
        let room = SECTION_MAX - 2 * fence.len();
        let text: String = escaped(&table.plain()).chars().take(room).collect();
        section(format!("{fence}{text}{fence}"));
    }
    if let Some(file) = &message.attachment {
        let said = file.described(false);
        let said = file
            .address()
            .map_or(said.clone(), |address| format!("{said}: {address}"));
        section(cut(escaped(&said)));
    }
    json!({"text": escaped(&message.headline()), "blocks": blocks})
}

/// Escapes a text so that Slack finds no link, mention or entity in it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn cut(text: String) -> String {
    match text.chars().count() > SECTION_MAX {
        true => text.chars().take(SECTION_MAX).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Table;
    use crate::tests::message;

    #[test]
    fn nothing_in_a_message_is_a_mention_and_no_section_is_too_long() {
        let mut message = message("k");
        message.title = "<!channel> & co".to_owned();
        message.text = "x".repeat(2 * SECTION_MAX);
        message.table = Some(Table {
            columns: vec!["a".to_owned()],
            rows: vec![vec!["<y>".repeat(60)]; 40],
        });
        let body = body(&message);
        assert_eq!(body["text"], "&lt;!channel&gt; &amp; co");
        let blocks = body["blocks"].as_array().expect("there are blocks");
        for block in blocks {
            let text = block["text"]["text"].as_str().expect("a section has a text");
            assert!(
                text.chars().count() <= SECTION_MAX && !text.contains('<'),
                "{text}"
            );
        }
    }

    #[test]
    fn refusals_are_permanent_but_for_those_that_pass() {
        let answer = |body: &str| Answer {
            status: watershed_outside::http::StatusCode::OK,
            body: body.as_bytes().to_vec(),
        };
        let class = |body: &str| said(&answer(body)).map(|_| ()).map_err(|error| error.class);
        assert_eq!(class(r#"{"ok": true}"#), Ok(()));
        assert_eq!(
            class(r#"{"ok": false, "error": "channel_not_found"}"#),
            Err(Class::Permanent)
        );
        assert_eq!(
            class(r#"{"ok": false, "error": "ratelimited"}"#),
            Err(Class::Transient)
        );
        assert_eq!(class("<html>"), Err(Class::Transient));
    }
}
