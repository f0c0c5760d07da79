//! The bytes of a file, uncompressed, piece by piece.

use std::{
    fs::File,
    io::{Read, Seek as _},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use crate::regular::{self, ReadError};

/// Bytes that are looked at together: small enough for the stack of any thread's cache.
const PIECE: usize = 64 << 10;

/// The beginning of what gzip wrote.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The beginning of what zstd wrote.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The mark of an encoding that a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Utf8,
    Utf16LittleEndian,
    Utf16BigEndian,
}

/// The marks as they are written.
const MARKS: [(Mark, &[u8]); 3] = [
    (Mark::Utf8, &[0xef, 0xbb, 0xbf]),
    (Mark::Utf16LittleEndian, &[0xff, 0xfe]),
    (Mark::Utf16BigEndian, &[0xfe, 0xff]),
];

/// The longest of them, in bytes.
const LONGEST_MARK: usize = 3;

impl Mark {
    pub(super) fn is_utf16(self) -> bool {
        self != Self::Utf8
    }
}

/// The bytes of a file.
pub(super) struct Bytes {
    source: Source,
    piece: Vec<u8>,
    /// The bytes of the piece that were read and not handed out.
    left: std::ops::Range<usize>,
    is_opaque: bool,
}

enum Source {
    Plain(File),
    Gzip(Box<MultiGzDecoder<File>>),
}

impl Bytes {
    /// Opens a regular file.
    pub(super) fn open(path: &Path) -> Result<Self, ReadError> {
        let (mut file, _) = regular::open(path)?;
        let mut begin = Vec::with_capacity(ZSTD.len());
        (&mut file).take(ZSTD.len() as u64).read_to_end(&mut begin)?;
        file.rewind()?;
        let source = match begin.starts_with(&GZIP) {
            true => Source::Gzip(Box::new(MultiGzDecoder::new(file))),
            false => Source::Plain(file),
        };
        Ok(Self {
            source,
            piece: vec![0; PIECE],
            left: 0..0,
            is_opaque: begin.starts_with(&ZSTD),
        })
    }

    /// Returns whether the bytes are compressed in a way that is not undone here.
    pub(super) fn is_opaque(&self) -> bool {
        self.is_opaque
    }

    /// Returns whether the bytes are those that gzip wrote.
    pub(super) fn is_gzip(&self) -> bool {
        matches!(self.source, Source::Gzip(_))
    }

    /// Returns the next bytes; none at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<&[u8]>, ReadError> {
        if self.left.is_empty() {
            self.fill(0)?;
        }
        let piece = self.piece.get(std::mem::take(&mut self.left));
        Ok(piece.filter(|piece| !piece.is_empty()))
    }

    /// Leaves out the mark of an encoding, and returns it.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<Option<Mark>, ReadError> {
        while self.left.len() < LONGEST_MARK && self.fill(self.left.len())? {}
        let begin = self.piece.get(self.left.clone()).unwrap_or_default();
        let found = MARKS.iter().find(|(_, written)| begin.starts_with(written));
        self.left.start += found.map_or(0, |(_, written)| written.len());
        Ok(found.map(|(mark, _)| *mark))
    }

    /// Reads more behind the first bytes of the piece. Returns false at the end.
    fn fill(&mut self, kept: usize) -> Result<bool, ReadError> {
        let room = self.piece.get_mut(kept..).unwrap_or_default();
        let read = loop {
            let read = match &mut self.source {
                Source::Plain(file) => file.read(room),
                Source::Gzip(decoder) => decoder.read(room),
            };
            match read {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.left = 0..kept + read;
        Ok(read > 0)
    }
}
