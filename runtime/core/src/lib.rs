//! The state machine of the controller: no async, no IO, no clock.
