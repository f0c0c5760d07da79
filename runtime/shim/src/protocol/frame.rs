//! Framing of messages: one JSON object per line, of bounded length.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest frame in bytes. Linux refuses command lines and environments that would exceed it.
pub const MAX_FRAME: usize = 4 << 20;

/// The error of input that is no frame of this protocol. The connection can't continue.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadFrame {
    /// The line exceeds the bound.
    #[error("a frame of more than {MAX_FRAME} bytes")]
    TooLong,
    /// The line is no valid message.
    #[error("a frame that can't be read")]
    Unreadable(#[source] serde_json::Error),
}

/// Appends a message to a send buffer.
///
/// # Errors
/// When the message has no JSON, as a path that is not UTF-8.
pub(crate) fn write<M: Serialize>(message: &M, into: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let before = into.len();
    serde_json::to_writer(&mut *into, message).inspect_err(|_| into.truncate(before))?;
    into.push(b'\n');
    Ok(())
}

/// Removes all complete messages from a receive buffer.
///
/// # Errors
/// When a line is no message, or has no end within the bound.
pub(crate) fn read<M: DeserializeOwned>(from: &mut Vec<u8>) -> Result<Vec<M>, BadFrame> {
    let Some(end) = from.iter().rposition(|byte| *byte == b'\n') else {
        return if from.len() > MAX_FRAME {
            Err(BadFrame::TooLong)
        } else {
            Ok(Vec::new())
        };
    };
    let rest = from.split_off(end + 1);
    let lines = std::mem::replace(from, rest);
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| match line.len() {
            0..=MAX_FRAME => serde_json::from_slice(line).map_err(BadFrame::Unreadable),
            _ => Err(BadFrame::TooLong),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_whole_however_they_arrive() {
        let mut sent = Vec::new();
        for number in [1_u64, 22, 333] {
            write(&number, &mut sent).unwrap();
        }
        for cut in 0..=sent.len() {
            let mut received = sent[..cut].to_vec();
            let mut numbers: Vec<u64> = read(&mut received).unwrap();
            received.extend(&sent[cut..]);
            numbers.extend(read::<u64>(&mut received).unwrap());
            assert_eq!(numbers, [1, 22, 333], "cut at {cut}");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn a_frame_without_an_end_is_refused_at_the_bound() {
        let mut received = vec![b'1'; MAX_FRAME];
        assert!(read::<u64>(&mut received).unwrap().is_empty());
        received.push(b'1');
        assert!(matches!(read::<u64>(&mut received), Err(BadFrame::TooLong)));
        let mut wrong = b"{}\n".to_vec();
        assert!(matches!(read::<u64>(&mut wrong), Err(BadFrame::Unreadable(_))));
    }
}
