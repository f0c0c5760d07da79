//! Frames of zstd files, by their stated lengths, without decompression.

use std::{
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use crate::regular::{self, ReadError};

/// Magic number of a data frame.
const FRAME: u64 = 0xfd2f_b528;
/// Magic numbers of frames without data.
const SKIPPABLE: std::ops::RangeInclusive<u64> = 0x184d_2a50..=0x184d_2a5f;
/// Length of the checksum at the end of a frame, in bytes.
const CHECKSUM: u64 = 4;
/// Length of a block's header, in bytes.
const BLOCK_HEADER: usize = 3;

/// Returns true if the last frame of a file is truncated.
pub(super) fn is_cut_off(path: &Path) -> Result<bool, ReadError> {
    let (file, size) = regular::open(path)?;
    let mut frames = Frames {
        file: io::BufReader::new(file),
        at: 0,
    };
    while frames.at < size {
        match frames.skip_one() {
            Ok(true) => {}
            // What is none is told by the engine.
            Ok(false) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(frames.at > size)
}

struct Frames {
    file: io::BufReader<std::fs::File>,
    at: u64,
}

impl Frames {
    /// Skips a frame. Returns false if none begins at the position.
    fn skip_one(&mut self) -> io::Result<bool> {
        let begin = self.number(4)?;
        if SKIPPABLE.contains(&begin) {
            let length = self.number(4)?;
            self.skip(length)?;
            return Ok(true);
        }
        if begin != FRAME {
            return Ok(false);
        }
        let descriptor = self.number(1)?;
        let is_single_segment = descriptor & 0x20 != 0;
        let window = u64::from(!is_single_segment);
        let dictionary = match descriptor & 3 {
            3 => 4,
            bytes => bytes,
        };
        let content = match descriptor >> 6 {
            0 => u64::from(is_single_segment),
            power => 1 << power,
        };
        self.skip(window + dictionary + content)?;
        loop {
            let block = self.number(BLOCK_HEADER)?;
            let (is_last, kind, length) = (block & 1 != 0, block >> 1 & 3, block >> 3);
            match kind {
                // One byte, many times.
                1 => self.skip(1)?,
                3 => return Ok(false),
                _ => self.skip(length)?,
            }
            if is_last {
                break;
            }
        }
        let has_checksum = descriptor & 4 != 0;
        self.skip(if has_checksum { CHECKSUM } else { 0 })?;
        Ok(true)
    }

    fn number(&mut self, bytes: usize) -> io::Result<u64> {
        let mut number = [0; 8];
        self.file
            .read_exact(number.get_mut(..bytes).unwrap_or_default())?;
        self.at += bytes as u64;
        Ok(u64::from_le_bytes(number))
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.at += bytes;
        self.file.seek(SeekFrom::Start(self.at)).map(drop)
    }
}
