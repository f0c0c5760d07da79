//! Conversion of jobs' and services' specs to messages of the controller.

use watershed_controller::message::{DecodeError, EncodeError, Message};
use watershed_proto::{JobSpec, Message as _, ServiceSpec};

/// Implements a controller message for a protobuf one with ordered maps, so that equal specs have equal bytes.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident, $spec:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name(pub $spec);

        impl Message for $name {
            const FORMAT: u32 = 1;

            fn encode(&self) -> Result<Vec<u8>, EncodeError> {
                Ok(self.0.encode_to_vec())
            }

            fn decode(format: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
                if format != Self::FORMAT {
                    return Err(DecodeError::unknown_format::<Self>(format));
                }
                <$spec>::decode(bytes)
                    .map(Self)
                    .map_err(DecodeError::malformed::<Self>)
            }
        }
    };
}

message!(
    /// Spec of a service.
    Service,
    ServiceSpec
);
message!(
    /// Spec of a job.
    Job,
    JobSpec
);
