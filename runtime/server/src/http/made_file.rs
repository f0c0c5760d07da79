//! Workbooks and Parquet files, which are made as a file and then sent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use tokio::fs::{self, File};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use watershed_api::{Code, Problem};
use watershed_drivers::olap::{Existing, Export, ExportError, FileFormat, Layout, Olap, Query};
use watershed_drivers::volume::Bytes;

use super::answers::of_type;
use super::{form, sent_file};
use crate::service::problems::of_query;

/// Most bytes of a file that is made for an answer.
const MOST_BYTES: u64 = 4 << 30;

/// Interval at which the size of a growing file is compared with [`MOST_BYTES`].
const LOOK: Duration = Duration::from_millis(200);

/// A file that has no name any more, and is gone when it is sent or its caller is gone.
pub(super) struct MadeFile {
    file: File,
    bytes: u64,
    truncated: bool,
}

impl MadeFile {
    /// Opens a file and removes its name. `truncated` says whether a limit has cut its rows off.
    ///
    /// # Errors
    /// When the file can't be read.
    pub(super) async fn take(path: &Path, truncated: bool) -> Result<Self, Problem> {
        let opened = File::open(path).await;
        // What is open stays until it is read.
        let _ = fs::remove_file(path).await;
        let file = opened.map_err(|error| unreadable(&error))?;
        let bytes = file.metadata().await.map_err(|error| unreadable(&error))?.len();
        Ok(Self {
            file,
            bytes,
            truncated,
        })
    }

    /// Returns the file as a response.
    pub(super) fn response(self, media: &'static str) -> Response {
        let mut response = of_type(media, sent_file::body(self.file, ()));
        let length = HeaderValue::from(self.bytes);
        response.headers_mut().insert(CONTENT_LENGTH, length);
        if self.truncated {
            response.headers_mut().extend(form::truncated());
        }
        response
    }
}

/// Returns the export of a query's rows; [`make`] chooses its path.
pub(super) fn export(query: Query, format: FileFormat) -> Export {
    Export {
        query,
        file: PathBuf::new(),
        format,
        existing: Existing::Keep,
        layout: Layout::default(),
    }
}

/// Makes the file of an export below a folder for such files.
///
/// # Errors
/// Those of the export, and `bad-argument` when the file grows beyond [`MOST_BYTES`].
///
/// # Cancel safety
/// Dropping the future ends the export and removes what was written.
pub(super) async fn make(
    engine: &dyn Olap,
    mut export: Export,
    folder: &Path,
    extension: &str,
) -> Result<MadeFile, Problem> {
    let place = Place::new(folder).await?;
    export.file = place.file(extension);
    let cancel = CancellationToken::new();
    let making = engine.export(&export, &cancel);
    tokio::pin!(making);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_too_large = false;
    let made = loop {
        tokio::select! {
            made = &mut making => break made,
            _ = look.tick(), if !is_too_large => {
                is_too_large = size(&place.0).await > MOST_BYTES;
                if is_too_large {
                    cancel.cancel();
                }
            }
        }
    };
    if is_too_large {
        let message = format!("the file has more than {}", Bytes(MOST_BYTES));
        return Err(Problem::new(Code::BadArgument, message).hint("set a limit, or ask for CSV or Arrow"));
    }
    let made = made.map_err(|error| problem(&error))?;
    MadeFile::take(&export.file, made.truncated).await
}

/// Returns the size of all files in a folder; 0 if it can't be read.
async fn size(folder: &Path) -> u64 {
    let Ok(mut entries) = fs::read_dir(folder).await else {
        return 0;
    };
    let mut all = 0_u64;
    while let Ok(Some(entry)) = entries.next_entry().await {
        all = all.saturating_add(entry.metadata().await.map_or(0, |found| found.len()));
    }
    all
}

/// The folder of one file, removed when dropped.
pub(super) struct Place(PathBuf);

impl Place {
    /// Returns the path of the file, which is not there yet.
    pub(super) fn file(&self, extension: &str) -> PathBuf {
        self.0.join("rows").with_extension(extension)
    }

    /// Creates an empty folder below that of all files.
    ///
    /// # Errors
    /// `unavailable`, when the system can't.
    pub(super) async fn new(folder: &Path) -> Result<Self, Problem> {
        let place = Self(folder.join(Uuid::now_v7().to_string()));
        fs::create_dir_all(&place.0).await.map_err(|error| {
            let message = format!("there is no place for the file: {}", error.kind());
            Problem::new(Code::Unavailable, message)
        })?;
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays after a failure goes with the folder at the next start.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Converts the error of an export, without the path of the file, which is the server's.
fn problem(error: &ExportError) -> Problem {
    match error {
        ExportError::Query(error) => of_query(error),
        ExportError::Sheet(_) => Problem::new(Code::BadArgument, error.to_string()),
        ExportError::Io { message, .. } => {
            Problem::new(Code::Unavailable, format!("the file can't be written: {message}"))
        }
        ExportError::Exists(_) | ExportError::NotAFile(_) => {
            Problem::new(Code::Unavailable, "there is no place for the file")
        }
    }
}

fn unreadable(error: &std::io::Error) -> Problem {
    let message = format!("the file can't be read: {}", error.kind());
    Problem::new(Code::Unavailable, message)
}
