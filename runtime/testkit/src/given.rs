//! Given resources, which the tested ones read: their specs determine their state or failure.

use std::marker::PhantomData;

use watershed_core::{Error, Kind, KindOptions, Outcome, Work};

use crate::roll::Roll;
use watershed_controller::Builder;
use watershed_controller::Context;
use watershed_controller::Reconciler;
use watershed_controller::message::{DecodeError, EncodeError, Message};

/// A kind of given resources, which the kit makes.
pub(super) struct Givens {
    pub(super) kind: Kind,
    /// Generator of encoded states.
    pub(super) state: Box<MakeState>,
    /// Version of the state message.
    pub(super) format: u32,
    pub(super) register: Box<dyn Fn(Builder) -> Builder>,
}

/// A function that generates the bytes of a state.
type MakeState = dyn Fn(&mut Roll) -> Result<Vec<u8>, EncodeError>;

impl Givens {
    pub(super) fn new<M: Message>(kind: Kind, state: impl Fn(&mut Roll) -> M + 'static) -> Self {
        let registered = kind.clone();
        Self {
            kind,
            state: Box::new(move |roll| state(roll).encode()),
            format: M::FORMAT,
            register: Box::new(move |builder| {
                builder.kind(KindOptions::new(registered.clone()), Given::<M>(PhantomData))
            }),
        }
    }
}

/// Returns the spec of a given resource: with a state, or one that fails.
pub(super) fn wanted(state: Option<&[u8]>) -> Vec<u8> {
    match state {
        Some(state) => [&[1], state].concat(),
        None => Vec::new(),
    }
}

/// Bytes of a message that are not decoded here.
struct Bytes<M>(Vec<u8>, PhantomData<fn() -> M>);

impl<M: Message> Message for Bytes<M> {
    const FORMAT: u32 = M::FORMAT;

    fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        Ok(self.0.clone())
    }

    fn decode(_: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self(bytes.to_vec(), PhantomData))
    }
}

struct Given<M>(PhantomData<fn() -> M>);

impl<M: Message> Reconciler for Given<M> {
    type Spec = Bytes<M>;
    type State = Bytes<M>;

    async fn reconcile(&self, context: Context<Self>) -> Result<Outcome, Error> {
        let Some((_, state)) = context.spec().0.split_first() else {
            return Err(Error::permanent("given", "this one is to fail"));
        };
        if context.state().is_some_and(|now| now.0 == state) {
            return Ok(Outcome::default());
        }
        context.set_state(&Bytes(state.to_vec(), PhantomData)).await?;
        Ok(Outcome::from_work(Work::Built))
    }
}
