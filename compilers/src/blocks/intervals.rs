//! The block `intervals`: time intervals that alerts and reports go through.

use watershed_proto::Intervals;

use crate::{
    diagnostics::Code,
    yaml::{Fields, keys::blocks, word},
};

blocks! {
    /// Keys of the block `intervals`.
    pub(crate) static INTERVALS = "intervals" Refused {
        "duration": Text, "How long an interval is: a duration in ISO 8601 with one part, such as `P1D`.";
        "limit": Count, "How many intervals are looked at in one go.";
        "check_unclosed": Bool, "Whether the interval that is not over is looked at.";
    }
}

/// The words for the time up to which intervals are evaluated.
pub(crate) const WATERMARKS: [&str; 2] = ["trigger_time", "inherit"];

/// Takes `watermark`; returns true if it is `inherit`, the watermark of the data that is read.
pub(crate) fn inherits_watermark(fields: &mut Fields<'_>) -> bool {
    word(fields, "watermark", &WATERMARKS).is_some_and(|word| word == "inherit")
}

/// Takes the block `intervals`.
pub(crate) fn take(fields: &mut Fields<'_>) -> Option<Intervals> {
    let (map, at) = fields.map("intervals")?;
    let mut block = Fields::new(map, at, fields.findings());
    let node = block.text_node("duration");
    let duration = node
        .as_ref()
        .and_then(|node| node.scalar_text())
        .unwrap_or_default();
    if let Some(node) = node.filter(|_| !has_one_part(&duration)) {
        let message = format!("\"{duration}\" is no duration of one part");
        let hint = "for example, write `P1D`, `P1W` or `PT1H`";
        block
            .findings()
            .add_with_hint(node.at, Code::InvalidValue, message, hint);
    }
    let intervals = Intervals {
        iso_duration: duration,
        limit: block.count("limit").unwrap_or_default(),
        check_unclosed: block.bool("check_unclosed").unwrap_or_default(),
    };
    block.finish(&INTERVALS);
    Some(intervals)
}

/// Returns true if a text is a duration in ISO 8601 with one number and one unit.
fn has_one_part(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else {
        return false;
    };
    let (rest, units) = rest
        .strip_prefix('T')
        .map_or((rest, "YMWD"), |rest| (rest, "HMS"));
    let digits = rest.trim_end_matches(|c| units.contains(c));
    !digits.is_empty() && digits.len() + 1 == rest.len() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_one_part() {
        assert!(["P1D", "PT15M", "P12M", "P1W"].into_iter().all(has_one_part));
        assert!(
            !["", "P", "1D", "P1DT1H", "PD", "P1H", "PT1D", "P1DD"]
                .into_iter()
                .any(has_one_part)
        );
    }
}
