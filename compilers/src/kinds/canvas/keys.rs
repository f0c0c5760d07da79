//! The keys of canvases.

use crate::{
    blocks::{security::ACCESS, time_range::CANVAS_DEFAULTS},
    kinds::theme::THEME,
    yaml::keys::blocks,
};

blocks! {
    /// Keys that a canvas accepts at its top level.
    pub(crate) static CANVAS = "canvas" Refused {
        "title": Text, "The name for people." => "display_name";
        "banner": Text, "A line above it.";
        "max_width": Count, "Its greatest width in pixels.";
        "gap_x": Count, "Pixels between columns.";
        "gap_y": Count, "Pixels between rows.";
        "theme": Either(&[Name("theme"), Block(&THEME)]), "A theme's name, or its colours.";
        "allow_custom_time_range": Bool, "Whether any range of time may be chosen.";
        "time_ranges": List(&Any), "Ranges of time that are proposed.";
        "time_zones": Texts, "Time zones that are proposed.";
        "filters": Block(&FILTERS), "How rows may be filtered.";
        "defaults": Block(&CANVAS_DEFAULTS), "What is shown first.";
        "variables": List(&Any), "Variables of its components: `{name, type, value}`.";
        "rows": List(&Block(&ROW)), "What it shows.";
        "security": Block(&ACCESS), "Who may see it.";
        "annotations": Map(&Any), "Free notes.";
        "ai_prompts": List(&Any), "Questions to an assistant that are proposed.";
    }

    /// Keys of the block `filters`.
    pub(crate) static FILTERS = "filters" Refused {
        "enable": Bool, "Whether filters are offered.";
        "pinned": Texts, "Dimensions whose filter is always shown.";
        "required": Texts, "Dimensions that have to be filtered.";
    }

    /// Keys that each row of a canvas accepts.
    pub(crate) static ROW = "row" Refused {
        "height": Text, "Its height with the unit, such as `240px`.";
        "items": List(&Any), "What stands in it: `component`, or one renderer, with a `width`.";
        "name": Text, "The name of a group of tabs.";
        "tabs": List(&Block(&TAB)), "The tabs.";
        "if": Text, "A template that says whether it is shown.";
    }

    /// Keys that each tab of a canvas accepts.
    pub(crate) static TAB = "tab" Refused {
        "name": Text, "The tab's name.";
        "label": Text, "The name for people.";
        "rows": List(&Block(&TAB_ROW)), "What it shows.";
        "if": Text, "A template that says whether it is shown.";
    }

    /// Keys that each row inside a tab accepts.
    pub(crate) static TAB_ROW = "tab_row" Refused {
        "height": Text, "Its height with the unit, such as `240px`.";
        "items": List(&Any), "What stands in it: `component`, or one renderer, with a `width`.";
        "if": Text, "A template that says whether it is shown.";
    }
}
