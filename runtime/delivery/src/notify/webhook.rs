//! Delivery by webhook: a signed POST of the message to a URL.

use watershed_outside::http::{Client, Method, Url};
use watershed_schedule::jiff;

use super::client::{AddressError, address, send};
use super::signature::{Secret, sign};
use super::{Attempt, BoxFuture, DeliveryError, Notifier, Receipt};
use crate::message::Message;

/// Posts messages to a URL, signed by the Standard Webhooks specification.
#[derive(Debug, Clone)]
pub struct Webhook {
    client: Client,
    url: Url,
    secrets: Vec<Secret>,
}

impl Webhook {
    /// Creates the notifier for a URL: HTTPS, or HTTP on this machine. Without secrets, messages are not signed.
    ///
    /// # Errors
    /// When the address is no such one.
    pub fn new(client: Client, url: &str, secrets: Vec<Secret>) -> Result<Self, AddressError> {
        let url = address(&client, url)?;
        Ok(Self { client, url, secrets })
    }

    async fn post(&self, message: &Message) -> Result<Receipt, DeliveryError> {
        let body =
            serde_json::to_vec(message).map_err(|error| DeliveryError::permanent(error.to_string()))?;
        let id = message.key.as_str();
        // The time is that of the attempt: receivers refuse old ones.
        let seconds = jiff::Timestamp::now().as_second();
        let signature = sign(&self.secrets, id, seconds, &body);
        let mut request = self.client.request(Method::POST, self.url.clone()).json(body);
        request = request.header("webhook-id", id);
        request = request.header("webhook-timestamp", &seconds.to_string());
        if !signature.is_empty() {
            request = request.header("webhook-signature", &signature);
        }
        let answer = send(request).await?;
        Ok(Receipt {
            said: answer.status.to_string(),
        })
    }
}

impl Notifier for Webhook {
    fn deliver<'a>(
        &'a self,
        message: &'a Message,
        _attempt: Attempt<'a>,
    ) -> BoxFuture<'a, Result<Receipt, DeliveryError>> {
        Box::pin(self.post(message))
    }
}
