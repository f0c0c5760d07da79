//! Bytes of a file, uncompressed, in pieces.

use std::{
    fs::File,
    io::{Read, Seek as _},
    path::Path,
};

use flate2::read::MultiGzDecoder;

use crate::regular::{self, ReadError};

/// Size of a piece in bytes, small enough for a processor's cache.
const PIECE: usize = 64 << 10;

/// Magic number of gzip files.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Magic number of zstd files.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The byte order mark at the beginning of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Utf8,
    Utf16LittleEndian,
    Utf16BigEndian,
}

/// Byte order marks with their bytes.
const MARKS: [(Mark, &[u8]); 3] = [
    (Mark::Utf8, &[0xef, 0xbb, 0xbf]),
    (Mark::Utf16LittleEndian, &[0xff, 0xfe]),
    (Mark::Utf16BigEndian, &[0xfe, 0xff]),
];

/// Length of the longest byte order mark, in bytes.
const LONGEST_MARK: usize = 3;

impl Mark {
    pub(super) fn is_utf16(self) -> bool {
        self != Self::Utf8
    }
}

/// A reader of a file's bytes, uncompressed.
pub(super) struct Bytes {
    source: Source,
    piece: Vec<u8>,
    /// Range of the current piece that was read and not returned yet.
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

    /// Returns true if the bytes are compressed in a way that this reader does not undo.
    pub(super) fn is_opaque(&self) -> bool {
        self.is_opaque
    }

    /// Returns true if the file is compressed with gzip.
    pub(super) fn is_gzip(&self) -> bool {
        matches!(self.source, Source::Gzip(_))
    }

    /// Returns the next piece; none at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<&[u8]>, ReadError> {
        if self.left.is_empty() {
            self.fill(0)?;
        }
        let piece = self.piece.get(std::mem::take(&mut self.left));
        Ok(piece.filter(|piece| !piece.is_empty()))
    }

    /// Skips the byte order mark and returns its encoding; none if there is no mark.
    pub(super) fn skip_byte_order_mark(&mut self) -> Result<Option<Mark>, ReadError> {
        while self.left.len() < LONGEST_MARK && self.fill(self.left.len())? {}
        let begin = self.piece.get(self.left.clone()).unwrap_or_default();
        let found = MARKS.iter().find(|(_, written)| begin.starts_with(written));
        self.left.start += found.map_or(0, |(_, written)| written.len());
        Ok(found.map(|(mark, _)| *mark))
    }

    /// Reads more bytes behind the first `kept` ones of the piece. Returns false at the end.
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
