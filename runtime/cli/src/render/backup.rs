//! `backup` and `restore` for people.

use watershed_api::documents::{BackupAction, BackupDocument, Time};
use watershed_drivers::volume::Bytes;

use super::palette::{GOOD, STRONG};
use super::units::ago;

/// Renders the result of `backup` or `restore` in one line.
pub(crate) fn backup(document: &BackupDocument, now: Time) -> String {
    let (file, of, bytes) = (&document.file, &document.of, Bytes(document.bytes));
    let when = ago(document.created_at, now);
    let line = match (document.action, document.dry_run) {
        (BackupAction::Backup, _) => {
            format!("{GOOD}✓{GOOD:#} {STRONG}{file}{STRONG:#} holds {of} ({bytes})\n")
        }
        (BackupAction::Restore, true) if document.replaced => {
            format!("would restore {of}, written {when}, in the place of what is there\n")
        }
        (BackupAction::Restore, true) => format!("would restore {of}, written {when}\n"),
        (BackupAction::Restore, false) => format!(
            "{GOOD}✓{GOOD:#} {STRONG}{}{STRONG:#} is as {of} was {when}; `watershed run` brings it up to date\n",
            document.project
        ),
    };
    match document.lost.is_empty() {
        true => line,
        false => format!(
            "{line}  without {}, whose files are gone\n",
            document.lost.join(", ")
        ),
    }
}
