//! Marker lines in output files, in place of output that was not kept.

/// Prefix of a marker line. The number of missing bytes follows.
const BEGINNING: &str = "watershed: ";
/// Words after the number, before the reason.
const WORDS: &str = "bytes of output are left out here: ";

/// A marker line in place of missing output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of missing bytes.
    pub bytes: u64,
    /// Length of the marker line in bytes, with its line end.
    pub length: u64,
}

/// Returns the marker line for a number of missing bytes, with the reason.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "there is no shim that leaves something out")
)]
pub(crate) fn line(bytes: u64, why: &str) -> String {
    format!("{BEGINNING}{bytes} {WORDS}{why}\n")
}

/// Reads the marker line at the beginning of an output file; none if the file begins with output.
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
