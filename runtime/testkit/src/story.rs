//! The story of a play, written only if it is read.

/// Lines of a story; none if it is not read.
#[derive(Debug, Clone, Default)]
pub(super) struct Story(Option<Vec<String>>);

impl Story {
    /// Creates a story that is kept.
    pub(super) fn kept() -> Self {
        Self(Some(Vec::new()))
    }

    pub(super) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(line());
        }
    }

    pub(super) fn lines(self) -> Vec<String> {
        self.0.unwrap_or_default()
    }
}

/// Maximum number of characters shown of a spec or state.
const SHOWN: usize = 200;

/// Formats bytes for people: as text if they are text, else by their number.
pub(super) fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(|c| !c.is_control()) => {
            let short: String = text.chars().take(SHOWN).collect();
            if short.len() < text.len() {
                format!("{short}...")
            } else {
                short
            }
        }
        _ => format!("of {} bytes", bytes.len()),
    }
}
