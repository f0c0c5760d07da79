//! Messages of clients: found whole before they are decoded.
//!
//! The decoders of `pgwire` trust the lengths within a message; with one that lies they would read what is not there. So each
//! message lies in a buffer of its own, and its lengths are followed to its end first.

use bytes::{Buf as _, BytesMut};
use pgwire::messages::extendedquery::{Bind, Close, Describe, Execute, Parse};
use pgwire::messages::simplequery::Query;
use pgwire::messages::{DecodeContext, Message};
use thiserror::Error;

/// A message of a client who has been let in.
#[derive(Debug)]
pub(crate) enum Frame {
    Query(Query),
    Parse(Parse),
    Bind(Bind),
    Describe(Describe),
    Execute(Execute),
    Close(Close),
    Flush,
    Sync,
    Terminate,
}

/// The error of a message that is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum FrameError {
    /// The kind is unknown, or does not belong here.
    #[error("there is no message of the kind {0} here")]
    Kind(u8),
    /// The lengths within the message do not add up.
    #[error("the lengths within the message do not add up")]
    Lengths,
    /// A text of the message is not UTF-8.
    #[error("a text of the message is not UTF-8")]
    Encoding,
}

/// Decodes the body of a message.
pub(crate) fn decode(kind: u8, body: BytesMut) -> Result<Frame, FrameError> {
    let (rules, is_known) = shape(kind);
    if !is_known {
        return Err(FrameError::Kind(kind));
    }
    let mut walk = Walk(&body);
    for rule in rules {
        walk.follow(*rule)?;
    }
    if !walk.0.is_empty() {
        return Err(FrameError::Lengths);
    }
    Ok(match kind {
        b'Q' => Frame::Query(of(body)?),
        b'P' => Frame::Parse(of(body)?),
        b'B' => Frame::Bind(of(body)?),
        b'D' => Frame::Describe(of(body)?),
        b'E' => Frame::Execute(of(body)?),
        b'C' => Frame::Close(of(body)?),
        b'H' => Frame::Flush,
        b'S' => Frame::Sync,
        _ => Frame::Terminate,
    })
}

fn of<M: Message>(mut body: BytesMut) -> Result<M, FrameError> {
    let length = body.len() + 4;
    M::decode_body(&mut body, length, &DecodeContext::default()).map_err(|_| FrameError::Lengths)
}

/// A part of a message.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// A text that ends with NUL.
    Text,
    /// This many bytes.
    Bytes(usize),
    /// A number of 16 bits, and as many items of this many bytes.
    Items(usize),
    /// A number of 16 bits, and as many values with their lengths.
    Values,
}

/// Returns the parts of a message, and whether there is such a message.
fn shape(kind: u8) -> (&'static [Rule], bool) {
    use Rule::{Bytes, Items, Text, Values};
    let rules: &[Rule] = match kind {
        b'Q' => &[Text],
        b'P' => &[Text, Text, Items(4)],
        b'B' => &[Text, Text, Items(2), Values, Items(2)],
        b'D' | b'C' => &[Bytes(1), Text],
        b'E' => &[Text, Bytes(4)],
        b'H' | b'S' | b'X' => &[],
        _ => return (&[], false),
    };
    (rules, true)
}

/// The rest of a message.
struct Walk<'a>(&'a [u8]);

impl Walk<'_> {
    fn follow(&mut self, rule: Rule) -> Result<(), FrameError> {
        match rule {
            Rule::Text => {
                let end = self.0.iter().position(|byte| *byte == 0);
                let end = end.ok_or(FrameError::Lengths)?;
                std::str::from_utf8(&self.0[..end]).map_err(|_| FrameError::Encoding)?;
                self.skip(end + 1)
            }
            Rule::Bytes(number) => self.skip(number),
            Rule::Items(size) => {
                let number = self.number()?;
                self.skip(number * size)
            }
            Rule::Values => {
                for _ in 0..self.number()? {
                    let length = self.0.get(..4).ok_or(FrameError::Lengths)?.get_i32();
                    self.skip(4)?;
                    match usize::try_from(length) {
                        Ok(length) => self.skip(length)?,
                        Err(_) if length == -1 => {}
                        Err(_) => return Err(FrameError::Lengths),
                    }
                }
                Ok(())
            }
        }
    }

    fn number(&mut self) -> Result<usize, FrameError> {
        let number = self.0.get(..2).ok_or(FrameError::Lengths)?.get_u16();
        self.skip(2)?;
        Ok(usize::from(number))
    }

    fn skip(&mut self, number: usize) -> Result<(), FrameError> {
        self.0 = self.0.get(number..).ok_or(FrameError::Lengths)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_message_is_read_beyond_its_end(kind in proptest::sample::select(b"QPBDECHSXdfcpF0".to_vec()), body in proptest::collection::vec(prop_oneof![4 => Just(0_u8), 1 => any::<u8>()], 0..64)) {
            let _ = decode(kind, BytesMut::from(&body[..]));
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        for (kind, body) in [
            (b'Q', &b"SELECT 1"[..]),
            (b'Q', b"SELECT 1\0more"),
            (b'P', b"\0SELECT 1\0\xff\xff"),
            (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"),
            (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
            (b'B', b"\0\0\xff\xff"),
            (b'E', b"\0\0\0"),
            (b'D', b""),
            (b'S', b"\0"),
        ] {
            let refused = decode(kind, BytesMut::from(body)).err();
            assert_eq!(refused, Some(FrameError::Lengths), "{body:?}");
        }
        let refused = decode(b'Q', BytesMut::from(&b"\xff\0"[..])).err();
        assert_eq!(refused, Some(FrameError::Encoding));
        assert_eq!(decode(b'!', BytesMut::new()).err(), Some(FrameError::Kind(b'!')));
        let bound = decode(b'B', BytesMut::from(&b"p\0s\0\0\0\0\x01\0\0\0\x02ab\0\0"[..]));
        assert!(matches!(bound, Ok(Frame::Bind(bind)) if bind.parameters[0].as_deref() == Some(b"ab")));
    }
}
