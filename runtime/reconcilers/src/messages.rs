//! Protobuf messages as the specs and states of kinds.

use watershed_controller::message::{DecodeError, EncodeError, Message};

/// A protobuf message as a spec or a state. Maps are ordered, so that equal messages have equal bytes, and newer
/// messages can read older bytes: the format number rises only when a field changes its meaning.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proto<M>(pub M);

impl<M> Message for Proto<M>
where
    M: watershed_proto::Message + Default + 'static,
{
    const FORMAT: u32 = 1;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.encode_to_vec())
    }

    fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        if format != Self::FORMAT {
            return Err(DecodeError::unknown_format::<Self>(format));
        }
        M::decode(bytes).map(Self).map_err(DecodeError::malformed::<Self>)
    }
}
