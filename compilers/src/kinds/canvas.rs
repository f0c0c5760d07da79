//! Canvases: rows of components, some declared in the canvas itself.

mod keys;

use watershed_proto::{CanvasItem, CanvasRow, CanvasSpec, CanvasTab, MapValue};

pub(crate) use keys::{CANVAS, FILTERS, ROW, TAB, TAB_ROW};

use crate::{
    blocks::{
        security::{self, Extent},
        time_range::{self, time_zones},
    },
    diagnostics::{At, Code, spot},
    draft::{RawRef, ref_to},
    kinds::{
        component,
        reader::{Declared, Implied, Reader},
        theme,
    },
    resource::{Kind, Spec},
    yaml::{Data, Fields, Map, Node, item},
};

/// Reads a canvas, and the components that it declares.
pub(crate) fn read(reader: &mut Reader<'_, '_>) -> Declared {
    reader.fields.deprecations(&CANVAS);
    reader.refuse_sql(Kind::Canvas);
    reader.templates_of("security");
    let security = security::take(&mut reader.fields, Extent::Access);
    reader.conditions(&security.conditions);
    let theme_at = reader.fields.value_at("theme");
    let (theme, embedded_theme) = theme::take(&mut reader.fields, reader.context);
    let mut spec = CanvasSpec {
        display_name: reader.display_name(),
        banner: reader.text("banner"),
        max_width: reader.fields.count("max_width").unwrap_or_default(),
        gap_x: reader.fields.count("gap_x").unwrap_or_default(),
        gap_y: reader.fields.count("gap_y").unwrap_or_default(),
        theme,
        embedded_theme,
        allow_custom_time_range: reader.fields.bool("allow_custom_time_range").unwrap_or(true),
        time_ranges: time_range::list(&mut reader.fields, "time_ranges"),
        time_zones: time_zones(&mut reader.fields, "time_zones"),
        filters_enabled: true,
        defaults: time_range::defaults(&mut reader.fields, true),
        variables_declared: reader.values("variables"),
        security_rules: security.rules,
        ai_prompts: reader.values("ai_prompts"),
        ..CanvasSpec::default()
    };
    if let Some((map, _)) = reader.fields.map("annotations") {
        let fields = map.into_iter().map(|(key, entry)| (key, entry.value.to_value()));
        spec.annotations = Some(MapValue {
            fields: fields.collect(),
        });
    }
    filters(&mut reader.fields, &mut spec);
    let rows = reader.fields.list("rows").unwrap_or_default();
    let mut board = Board {
        canvas: reader.about.name,
        refs: Vec::new(),
        implied: Vec::new(),
        conditions: Vec::new(),
    };
    spec.rows = board.rows(rows, Depth::Canvas, "", &mut reader.fields);
    let Board {
        mut refs,
        implied,
        conditions,
        ..
    } = board;
    reader.conditions(&conditions);
    conditions.iter().for_each(|node| reader.templates_in(node));
    if !spec.theme.is_empty() {
        refs.push(ref_to(Kind::Theme, &spec.theme, theme_at));
    }
    reader.finish(&CANVAS);
    let mut declared = Declared::new(Spec::Canvas(Box::new(spec)));
    declared.refs = refs;
    declared.implied = implied;
    declared
}

fn filters(fields: &mut Fields<'_>, spec: &mut CanvasSpec) {
    let Some((map, at)) = fields.map("filters") else {
        return;
    };
    let mut block = Fields::new(map, at, fields.findings());
    spec.filters_enabled = block.bool("enable").unwrap_or(true);
    for key in ["pinned", "required"] {
        let Some(entry) = block.take(key) else { continue };
        let items = match entry.value.data {
            Data::List(items) => items,
            _ => vec![entry.value],
        };
        for node in items {
            let Some(name) = node.scalar_text() else {
                let message = format!("\"{key}\" takes names, not {}", node.data.type_name());
                block.findings().add(node.at, Code::WrongType, message);
                continue;
            };
            let names = if key == "pinned" {
                &mut spec.pinned_filters
            } else {
                &mut spec.required_filters
            };
            names.push(name);
            spec.filter_spots.extend(spot(node.at));
        }
    }
    block.finish(&FILTERS);
}

/// The nesting of rows: the rows of a tab can't have tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Canvas,
    Tab,
}

struct Board<'a> {
    canvas: &'a str,
    refs: Vec<RawRef>,
    implied: Vec<Implied>,
    /// Conditions of rows, tabs and items, which the engine's parser has yet to check.
    conditions: Vec<Node>,
}

impl Board<'_> {
    /// Reads rows. Components declared in them are named after their place, which begins with `prefix`.
    fn rows(
        &mut self,
        rows: Vec<Node>,
        depth: Depth,
        prefix: &str,
        outer: &mut Fields<'_>,
    ) -> Vec<CanvasRow> {
        let mut found = Vec::new();
        for (index, node) in rows.into_iter().enumerate() {
            let Some((map, at)) = item(node, "a row", outer.findings()) else {
                continue;
            };
            let mut fields = Fields::new(map, at, outer.findings());
            found.push(self.row(&mut fields, index, depth, prefix));
            match depth {
                Depth::Canvas => fields.finish(&ROW),
                Depth::Tab => fields.finish(&TAB_ROW),
            }
        }
        found
    }

    fn row(&mut self, fields: &mut Fields<'_>, index: usize, depth: Depth, prefix: &str) -> CanvasRow {
        let (height, height_unit) = height(fields);
        let mut row = CanvasRow {
            height,
            height_unit,
            condition: self.condition(fields),
            ..CanvasRow::default()
        };
        for (column, node) in fields.list("items").unwrap_or_default().into_iter().enumerate() {
            let place = format!("{prefix}{index}-{column}");
            row.items.extend(self.item(node, &place, fields));
        }
        if depth == Depth::Canvas {
            row.name = fields.text("name").unwrap_or_default();
            let tabs = fields.list("tabs").unwrap_or_default();
            for (tab, node) in tabs.into_iter().enumerate() {
                row.tabs
                    .extend(self.tab(node, &format!("g{index}-t{tab}-"), fields));
            }
        }
        row
    }

    fn tab(&mut self, node: Node, prefix: &str, outer: &mut Fields<'_>) -> Option<CanvasTab> {
        let (map, at) = item(node, "a tab", outer.findings())?;
        let mut fields = Fields::new(map, at, outer.findings());
        let label = fields.text("label");
        if label.is_none() {
            fields
                .findings()
                .add(at, Code::MissingKey, "a tab needs a `label`");
        }
        let rows = fields.list("rows").unwrap_or_default();
        let tab = CanvasTab {
            name: fields.text("name").unwrap_or_default(),
            label: label.unwrap_or_default(),
            rows: self.rows(rows, Depth::Tab, prefix, &mut fields),
            condition: self.condition(&mut fields),
        };
        fields.finish(&TAB);
        Some(tab)
    }

    /// Takes the condition under which something is shown; empty if there is none.
    fn condition(&mut self, fields: &mut Fields<'_>) -> String {
        let node = fields.text_node("if");
        let text = node.as_ref().and_then(Node::scalar_text).unwrap_or_default();
        self.conditions.extend(node);
        text
    }

    /// Reads an item: the name of a component, or a component declared by one renderer.
    fn item(&mut self, node: Node, place: &str, outer: &mut Fields<'_>) -> Option<CanvasItem> {
        let (map, at) = item(node, "an item", outer.findings())?;
        let mut fields = Fields::new(map, at, outer.findings());
        let mut found = CanvasItem {
            width: fields.count("width").unwrap_or_default(),
            condition: self.condition(&mut fields),
            ..CanvasItem::default()
        };
        let component_at = fields.value_at("component");
        let component = fields.text("component");
        let rest = fields.take_rest();
        match component {
            Some(name) if rest.is_empty() => {
                self.refs.push(ref_to(Kind::Component, &name, component_at));
                found.component = name;
            }
            Some(_) => {
                let message = "an item is either a `component` or one renderer";
                fields.findings().add(at, Code::ConflictingKeys, message);
                return None;
            }
            None => {
                found.component = self.inline(rest, at, place, &mut fields)?;
                found.defined_in_canvas = true;
            }
        }
        Some(found)
    }

    fn inline(&mut self, rest: Map, at: At, place: &str, fields: &mut Fields<'_>) -> Option<String> {
        let (spec, refs) = component::renderer(rest, at, fields)?;
        let name = format!("{}--component-{place}", self.canvas);
        self.refs.push(ref_to(Kind::Component, &name, Some(at)));
        // What is wrong with these is told of the component.
        self.refs.extend(refs.iter().cloned().map(|one| RawRef {
            expected: false,
            ..one
        }));
        self.implied.push(Implied {
            kind: Kind::Component,
            name: name.clone(),
            at: Some(at),
            spec: Spec::Component(Box::new(watershed_proto::ComponentSpec {
                defined_in_canvas: true,
                ..spec
            })),
            refs,
        });
        Some(name)
    }
}

/// Takes the height of a row as a number and its unit, `px`; 0 without a unit if none is given.
fn height(fields: &mut Fields<'_>) -> (u32, String) {
    let Some(node) = fields.text_node("height") else {
        return (0, String::new());
    };
    let text = node.scalar_text().unwrap_or_default();
    let text = text.trim();
    let number = text.strip_suffix("px").unwrap_or(text);
    match (number.trim().parse::<u32>(), text.ends_with("px")) {
        (Ok(0), _) => (0, String::new()),
        (Ok(height), true) => (height, "px".to_owned()),
        _ => {
            let message = format!("\"{text}\" is no height");
            let hint = "a number with its unit, such as `240px`";
            fields
                .findings()
                .add_with_hint(node.at, Code::InvalidValue, message, hint);
            (0, String::new())
        }
    }
}
