//! The trust in the files of a project.

use crate::{diagnostics::Code, text::names, yaml::Fields};

/// The rights of a project's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    /// Reach the project's folder and its state. Nothing is started, called or sent.
    #[default]
    Sandbox,
    /// Whatever the service's user may do.
    Full,
}

impl Trust {
    /// The words of the key `trust`.
    pub(super) const WORDS: [&str; 2] = ["sandbox", "full"];
}

/// Takes the key `trust`.
pub(super) fn trust(fields: &mut Fields<'_>) -> Trust {
    let Some(node) = fields.text_node("trust") else {
        return Trust::default();
    };
    let text = node.scalar_text().unwrap_or_default();
    match text.as_str() {
        "sandbox" => Trust::Sandbox,
        "full" => Trust::Full,
        _ => {
            let message = format!("\"trust\" can't be \"{text}\"");
            let hint = match names::nearest(&text, Trust::WORDS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "write `sandbox`, or `full` for a project that may do whatever the service's user may"
                        .to_owned()
                }
            };
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            Trust::default()
        }
    }
}
