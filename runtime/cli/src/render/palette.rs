//! The styles of the program's output, one for each meaning.

use anstyle::{AnsiColor, Style};

/// The style of headings and important names.
pub(crate) const STRONG: Style = Style::new().bold();
/// The style of text that a reader may skip.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style of success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// The style of errors.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The style of warnings.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// The style of hints.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
