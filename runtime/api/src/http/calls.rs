//! Calls of paths by another process of this machine, as the socket carries them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A call of a path of the HTTP API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Name of the tool that is called.
    pub tool: String,
    /// Name of the instance.
    pub instance: String,
    /// HTTP method of the path.
    pub method: String,
    /// Path below the instance, encoded.
    pub path: String,
    /// Query of the path, encoded.
    pub query: String,
    /// Headers of the call.
    pub headers: Vec<(String, String)>,
    /// Body of the call.
    pub body: String,
}

/// The answer of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// HTTP status of the answer.
    pub status: u16,
    /// Version of what is answered; none if it has none.
    pub etag: Option<String>,
    /// Body of the answer.
    pub body: String,
}

/// The user of this machine, in whose name a path is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalUser {
    /// Access of the user, as tokens have it, such as `operate+query`.
    pub role: String,
    /// Attributes of the person whose policies are in force; none for the owner.
    pub attributes: Option<Map<String, Value>>,
}

/// The call of a path, in the place of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolCall {
    /// The call.
    pub tool_call: Called,
    /// User in whose name the path is called.
    pub user: LocalUser,
}

impl ToolCall {
    /// The beginning of a message with a call, which no request has.
    pub const BEGINS: &str = "{\"tool-call\":";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_from_a_request_by_its_beginning() {
        let user = LocalUser {
            role: "edit".to_owned(),
            attributes: None,
        };
        let call = ToolCall {
            tool_call: Called::default(),
            user,
        };
        assert!(
            serde_json::to_string(&call)
                .unwrap()
                .starts_with(ToolCall::BEGINS)
        );
    }
}
