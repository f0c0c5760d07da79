//! The few colours of the program, so that one meaning has one colour everywhere.

use anstyle::{AnsiColor, Style};

/// Headings and names that matter.
pub(crate) const STRONG: Style = Style::new().bold();
/// What a reader may skip.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What may be wrong.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// What may help.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
