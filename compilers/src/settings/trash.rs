//! Bounds of the trash in a manifest.

use crate::{
    diagnostics::Code,
    text::size::parse_size,
    yaml::{Fields, keys::blocks},
};

blocks! {
    /// Keys of the block `trash`.
    pub(crate) static TRASH = "trash" Refused {
        "size": Text, "The most that is kept of tables that nothing stands for any more, such as `5GB`; `0` keeps none.";
        "keep": Duration, "How long they are kept.";
    }
}

/// Bounds of the trash; unset ones are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trash {
    /// The largest total size of trashed tables, in bytes.
    pub size_bytes: Option<u64>,
    /// The time for which tables are kept, in seconds.
    pub keep_seconds: Option<u32>,
}

/// Takes the block `trash` of a manifest; without the block, defaults apply.
pub(crate) fn take(fields: &mut Fields<'_>) -> Trash {
    let Some((map, at)) = fields.map("trash") else {
        return Trash::default();
    };
    let mut block = Fields::new(map, at, fields.findings());
    let size_bytes = block.text_node("size").and_then(|node| {
        let text = node.scalar_text().unwrap_or_default();
        let read = parse_size(&text);
        if read.is_none() {
            let message = format!("\"{text}\" is not a size");
            let hint = "write a number with its unit, such as `500MB`, `5GB` or `2GiB`; `0` keeps nothing";
            block
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        }
        read
    });
    let keep_seconds = block.seconds("keep");
    block.finish(&TRASH);
    Trash {
        size_bytes,
        keep_seconds,
    }
}
