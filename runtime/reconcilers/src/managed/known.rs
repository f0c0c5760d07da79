//! The known facts about a managed resource, apart from its stage.

use serde_json::{Map, Value};
use watershed_controller::message::{DecodeError, EncodeError, Message};

/// The data that looks and steps have reported, with the last message for people.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The reported data, by key.
    pub data: Map<String, Value>,
    /// The last message for people; empty if there was none.
    pub message: String,
}

impl Message for Known {
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let encoded = serde_json::to_vec(&(&self.data, &self.message));
        encoded.map_err(|error| EncodeError {
            type_name: std::any::type_name::<Self>(),
            message: error.to_string(),
        })
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        if format != Self::FORMAT {
            return Err(DecodeError::unknown_format::<Self>(format));
        }
        let (data, message) = serde_json::from_slice(bytes).map_err(DecodeError::malformed::<Self>)?;
        Ok(Self { data, message })
    }
}
