//! Lines that stand in the place of output which was not kept.

/// The beginning of such a line. The number of bytes follows.
const BEGINNING: &str = "watershed: ";
/// The words after the number.
const WORDS: &str = "bytes of output are left out here: ";

/// A line that stands in the place of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// The bytes that are missing.
    pub bytes: u64,
    /// The length of the line, its end included.
    pub length: u64,
}

/// Returns the line for so many bytes, with the reason.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "there is no shim that leaves something out")
)]
pub(crate) fn line(bytes: u64, why: &str) -> String {
    format!("{BEGINNING}{bytes} {WORDS}{why}\n")
}

/// Reads the line with which a file of output begins, if it stands in the place of output that was not kept.
pub fn left_out(file: &[u8]) -> Option<LeftOut> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(file.get(..end)?).ok()?;
    let (bytes, words) = line.strip_prefix(BEGINNING)?.split_once(' ')?;
    words.strip_prefix(WORDS)?;
    Some(LeftOut {
        bytes: bytes.parse().ok()?,
        length: u64::try_from(end + 1).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_lines_of_programs_are_none() {
        let text = line(12_345, "no room");
        let found = left_out(format!("{text}more").as_bytes());
        let expected = LeftOut {
            bytes: 12_345,
            length: text.len() as u64,
        };
        assert_eq!(found, Some(expected));
        for other in [
            text.trim_end(),
            "",
            "watershed: x bytes\n",
            "something: 5 bytes of output\n",
        ] {
            assert_eq!(left_out(other.as_bytes()), None, "{other}");
        }
    }
}
