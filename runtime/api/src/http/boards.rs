//! Documents of boards: canvases as their viewers may see them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A canvas as a caller may see it: each `if` is decided, and each query can be asked as it stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardDocument {
    /// Name and version of this form: `watershed.board/1`.
    pub schema: String,
    /// Name of the canvas.
    pub name: String,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Line above the board; empty if there is none.
    pub banner: String,
    /// Greatest width in pixels; 0 for none.
    pub max_width: u32,
    /// Pixels between columns; 0 for the page's own.
    pub gap_x: u32,
    /// Pixels between rows; 0 for the page's own.
    pub gap_y: u32,
    /// Name of the theme; empty for none.
    pub theme: String,
    /// Theme of its own, as themes have it; null for none.
    pub embedded_theme: Value,
    /// True if any range of time may be chosen.
    pub allow_custom_time_range: bool,
    /// Proposed ranges of time, each with the offsets by which it is compared.
    pub time_ranges: Vec<Value>,
    /// Proposed time zones.
    pub time_zones: Vec<String>,
    /// Filters that are offered.
    pub filters: BoardFilters,
    /// View at the first visit: `time_range`, `comparison_mode`, `comparison_dimension`, and `filters` in SQL by metrics view; null
    /// for the page's own.
    pub defaults: Value,
    /// Variables with their values, in the order of the file.
    pub variables: Vec<BoardVariable>,
    /// Rows that are shown, from above.
    pub rows: Vec<BoardRow>,
    /// Shown components by name.
    pub components: BTreeMap<String, BoardComponent>,
    /// Metrics views of the shown components by name, with the fields that the caller may see.
    pub views: BTreeMap<String, Value>,
}

impl BoardDocument {
    /// The value of `schema` in documents of this form.
    pub const SCHEMA: &str = "watershed.board/1";
}

/// The filters that a board offers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardFilters {
    /// True if filters are offered.
    pub enable: bool,
    /// Dimensions whose filter is always shown.
    pub pinned: Vec<String>,
    /// Dimensions that have to be filtered before anything is asked.
    pub required: Vec<String>,
}

/// A variable of a board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardVariable {
    /// Name of the variable, which templates read as `.args.NAME`.
    pub name: String,
    /// Value that the board was made with.
    pub value: Value,
}

/// A row of a board: items, or tabs of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardRow {
    /// Height in pixels; 0 for what the content needs.
    pub height: u32,
    /// Items from the left.
    pub items: Vec<BoardItem>,
    /// Name of the group of tabs; empty if there is none.
    pub name: String,
    /// Tabs that are shown.
    pub tabs: Vec<BoardTab>,
}

/// A component's place in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardItem {
    /// Columns of twelve that it takes; 0 for an equal share of what is left.
    pub width: u32,
    /// Name of the component.
    pub component: String,
}

/// A tab of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BoardTab {
    /// Name of the tab; empty if there is none.
    pub name: String,
    /// Name for people.
    pub label: String,
    /// Rows that are shown, which have no tabs.
    pub rows: Vec<BoardRow>,
}

/// The fitness of a component to be drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoardState {
    /// It can be drawn.
    Shown,
    /// It names something that the caller may not see; nothing else is told of it.
    Withheld,
    /// It can't be drawn.
    #[default]
    Broken,
}

/// A component of a board.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoardComponent {
    /// Fitness to be drawn.
    pub state: BoardState,
    /// Reason why it can't be drawn, where the caller may know; null otherwise.
    pub problem: Option<String>,
    /// Name for people; empty if there is none.
    pub display_name: String,
    /// Subject of the component, in its author's words; empty if there are none.
    pub description: String,
    /// Line below its name; empty if there is none.
    pub subtitle: String,
    /// Manner in which it is drawn, such as `kpi` or `line_chart`; empty where it can't be drawn.
    pub renderer: String,
    /// Settings of the renderer, as the file has them.
    pub properties: Map<String, Value>,
    /// Metrics view that it reads; empty for none.
    pub metrics_view: String,
    /// Queries in their JSON form, each with its `metrics_view`, over which ranges of time and filters are laid.
    pub queries: Vec<Map<String, Value>>,
    /// Variables that it reads, as declared.
    pub input: Vec<Value>,
    /// Variable that it sets, as declared; null for none.
    pub output: Value,
}
