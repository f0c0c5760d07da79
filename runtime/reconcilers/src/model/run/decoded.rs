//! CSV files of this machine in encodings that the engine does not read by itself, written as UTF-8 for the time of a
//! build.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use encoding_rs::{DecoderResult, Encoding};
use watershed_compilers::Scope;
use watershed_core::{Error, SourcePosition};
use watershed_drivers::data_file::Form;
use watershed_drivers::files::{self, FileNow, FilesError};
use watershed_proto::{ModelSpec, OutputKind, Value};

use super::{fetched::Fetched, subject::Subject};
use crate::model::{inputs, plan::is_list, source};

/// The option that sets the encoding.
const ENCODING: &str = "encoding";
/// Encodings that the engine reads by itself.
const OF_ENGINE: [&str; 6] = ["utf-8", "utf8", "utf-16", "utf16", "latin-1", "latin1"];
/// Options for which the engine has to read the files in their place.
const IN_PLACE: [&str; 3] = ["filename", "hive_partitioning", "compression"];
/// Endings of compressed files, which the engine unpacks itself.
const PACKED: [&str; 2] = [".gz", ".zst"];
/// The number of bytes that are decoded at once.
const PIECE: usize = 64 << 10;

/// Files that were written as UTF-8, which are removed when this is dropped.
pub(super) struct Decoded {
    pub(super) written: Fetched,
    /// Paths of the files that were read, in the order of those written.
    originals: Vec<String>,
}

impl Decoded {
    /// Returns the spec with the written files in the place of those in another encoding.
    pub(super) fn reading(&self, spec: &ModelSpec) -> ModelSpec {
        let mut spec = self.written.reading(spec);
        let properties = spec.input_properties.get_or_insert_default();
        properties.fields.remove(ENCODING);
        spec
    }

    /// Returns an error about a written file as one about the file that was read.
    pub(super) fn renamed(&self, error: Error) -> Error {
        let both = || self.written.files.iter().zip(&self.originals);
        let place = error.place.map(|place| {
            let read = both().find(|(written, _)| Path::new(&written.path).ends_with(&*place.path));
            match read {
                Some((_, original)) => SourcePosition {
                    path: original.as_str().into(),
                    ..place
                },
                None => place,
            }
        });
        let in_text = |text: Arc<str>| {
            let text = both().fold(text.to_string(), |text, (written, original)| {
                text.replace(&written.path, original)
            });
            Arc::from(text)
        };
        Error {
            place,
            message: in_text(error.message),
            details: error.details.map(in_text),
            ..error
        }
    }
}

/// Writes the files of a source as UTF-8 if the engine does not know their encoding; none if it does, or has to read them
/// in their place.
///
/// # Errors
/// When a file can't be read, or holds bytes that the encoding does not have.
pub(super) async fn decode(
    subject: Subject<'_>,
    spec: &ModelSpec,
    scope: &Scope,
    found: &[FileNow],
) -> Result<Option<Decoded>, Error> {
    let Some(encoding) = encoding(spec, scope) else {
        return Ok(None);
    };
    let is_apart = |file: &FileNow| {
        let path = file.path.to_ascii_lowercase();
        is_list(&path) || path.contains("://") || PACKED.iter().any(|end| path.ends_with(end))
    };
    if found.is_empty() || found.iter().any(is_apart) {
        return Ok(None);
    }
    subject.context.progress(format!("reading {}", encoding.name()));
    let mut written = Fetched::in_folder(subject.model.parts.join(format!("decoded-{}", subject.uid())));
    let originals: Vec<String> = found.iter().map(|file| file.path.clone()).collect();
    let (folder, read, cancel) = (
        written.folder.clone(),
        originals.clone(),
        subject.cancel().clone(),
    );
    let files = inputs::blocking(&subject.model.root, subject.cancel(), move |root| {
        let write = |(index, path): (usize, &String)| {
            let to = place(&folder, index, path);
            let unreadable = |source| FilesError::Io {
                path: path.clone(),
                source,
            };
            let decoded = write_decoded(encoding, &root.join(path), &to, &|| cancel.is_cancelled());
            match decoded.map_err(unreadable)? {
                None => files::look_at(root, &to.to_string_lossy()),
                Some(line) => Err(FilesError::Undecodable {
                    path: path.clone(),
                    encoding: encoding.name(),
                    line,
                }),
            }
        };
        read.iter().enumerate().map(write).collect()
    });
    written.files = files.await?;
    Ok(Some(Decoded { written, originals }))
}

/// Returns the encoding of a source's files, if they are to be decoded here.
fn encoding(spec: &ModelSpec, scope: &Scope) -> Option<&'static Encoding> {
    let said = source::option(spec, ENCODING).and_then(Value::as_str)?.trim();
    let is_table = spec.sql.is_none() && spec.output_kind() == OutputKind::Table;
    let in_place = IN_PLACE
        .iter()
        .any(|option| source::option(spec, option).is_some());
    let is_known = OF_ENGINE.iter().any(|known| said.eq_ignore_ascii_case(known));
    if !is_table || in_place || is_known || source::form(spec, scope) != Some(Form::Csv) {
        return None;
    }
    Encoding::for_label(said.as_bytes())
}

/// Returns the place of a file as UTF-8. Its name stays, since an error may show the name.
fn place(folder: &Path, index: usize, path: &str) -> PathBuf {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |c: char| c.is_alphanumeric() || ['.', '-', '_', ' '].contains(&c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    folder.join(index.to_string()).join(name)
}

/// Writes a file as UTF-8. Returns the line with bytes that the encoding does not have, if there is one.
fn write_decoded(
    encoding: &'static Encoding,
    from: &Path,
    to: &Path,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<Option<u32>> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (mut source, mut target) = (File::open(from)?, File::create(to)?);
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (mut piece, mut text) = (vec![0; PIECE], vec![0; PIECE * 3]);
    let mut line: u32 = 1;
    loop {
        let count = source.read(&mut piece)?;
        let mut left = piece.get(..count).unwrap_or_default();
        loop {
            let (result, read, written) =
                decoder.decode_to_utf8_without_replacement(left, &mut text, count == 0);
            let decoded = text.get(..written).unwrap_or_default();
            let lines = decoded.iter().filter(|byte| **byte == b'\n').count();
            line = line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            target.write_all(decoded)?;
            left = left.get(read..).unwrap_or_default();
            match result {
                DecoderResult::InputEmpty => break,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => return Ok(Some(line)),
            }
        }
        if count == 0 || is_cancelled() {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(label: &str, bytes: &[u8]) -> Result<String, u32> {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), place(folder.path(), 0, "data/a b.csv"));
        std::fs::write(&from, bytes).unwrap();
        let encoding = Encoding::for_label(label.as_bytes()).unwrap();
        match write_decoded(encoding, &from, &to, &|| false).unwrap() {
            None => Ok(std::fs::read_to_string(to).unwrap()),
            Some(line) => Err(line),
        }
    }

    #[test]
    fn bytes_become_utf8_and_those_that_mean_nothing_name_their_line() {
        assert_eq!(
            decoded("windows-1252", b"Caf\xe9,\x80 5\n"),
            Ok("Café,€ 5\n".into())
        );
        assert_eq!(decoded("cp1251", b"\xcf\xf0\n"), Ok("Пр\n".into()));
        assert_eq!(decoded("shift_jis", b"a\nb\n\x83"), Err(3));
        assert_eq!(decoded("euc-kr", b"a\n\xff\xff\n"), Err(2));
        let long = [b"x".repeat(PIECE - 1), "é".as_bytes().to_vec()].concat();
        let all = decoded("utf-8", &long).unwrap();
        assert!(all.ends_with("xé"), "a sign may lie across two pieces");
    }

    #[test]
    fn a_name_holds_nothing_that_a_reader_would_take_for_a_pattern() {
        let at = place(Path::new("/d"), 2, "data/x[1]*{{y}}.csv");
        assert_eq!(at, Path::new("/d/2/x_1____y__.csv"));
    }
}
