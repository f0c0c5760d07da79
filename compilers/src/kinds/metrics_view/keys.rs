//! The keys of metrics views.

use crate::{
    blocks::{
        security::SECURITY,
        selector::SELECTOR,
        time_range::{COMPARISON, GRAINS},
    },
    kinds::explore::EXPLORE_BLOCK,
    yaml::keys::blocks,
};

blocks! {
    /// Keys that a metrics view accepts at its top level.
    pub(crate) static METRICS_VIEW = "metrics_view" Refused {
        "parent": Name("metrics_view"), "The metrics view whose fields this one takes.";
        "model": Name("model"), "The model that is measured.";
        "table": Text, "The table that is measured, if no model makes it.";
        "database": Text, "The database of the table.";
        "database_schema": Text, "The schema of the table.";
        "connector": Text, "The connector of the table.";
        "timeseries": Text, "The column of times.";
        "watermark": Sql, "The time up to which the rows are complete.";
        "smallest_time_grain": Word(&GRAINS), "The smallest grain of time that makes sense.";
        "first_day_of_week": Count, "The day on which weeks begin: 1 is Monday.";
        "first_month_of_year": Count, "The month in which years begin.";
        "title": Text, "The name for people." => "display_name";
        "label": Text, "The name for people." => "display_name";
        "description": Text, "What it is about.";
        "ai_instructions": Text, "What an assistant should know.";
        "ai_context": Text, "What an assistant should know." => "ai_instructions";
        "dimensions": List(&Block(&DIMENSION)), "What rows are grouped by.";
        "measures": List(&Block(&MEASURE)), "What is computed.";
        "parent_dimensions": Either(&[Texts, Block(&SELECTOR)]), "The parent's dimensions that are taken.";
        "parent_measures": Either(&[Texts, Block(&SELECTOR)]), "The parent's measures that are taken.";
        "annotations": List(&Block(&ANNOTATION)), "Notes on times, from a table.";
        "security": Block(&SECURITY), "Who may see what.";
        "cache": Block(&CACHE), "How answers are kept.";
        "explore": Block(&EXPLORE_BLOCK), "The dashboard that comes with it.";
        "query_attributes": Map(&Text), "Attributes that queries carry.";
        "rollups": List(&Block(&ROLLUP)), "Models that hold the rows in a larger grain of time.";
        "default_time_range": Text, "The range of time that is shown first." => "explore.defaults.time_range";
        "available_time_ranges": List(&Any), "Ranges of time that are proposed." => "explore.time_ranges";
        "available_time_zones": Texts, "Time zones that are proposed." => "explore.time_zones";
        "default_theme": Name("theme"), "The theme of the dashboard." => "explore.theme";
        "default_dimensions": Texts, "The dimensions that are shown first." => "explore.defaults.dimensions";
        "default_measures": Texts, "The measures that are shown first." => "explore.defaults.measures";
        "default_comparison": Block(&COMPARISON), "What is compared first." => "explore.defaults.comparison_mode";
    }

    /// Keys that each dimension of a metrics view accepts.
    pub(crate) static DIMENSION = "dimension" Refused {
        "name": Text, "The dimension's name, if it is not the column's.";
        "display_name": Text, "The name for people.";
        "label": Text, "The name for people." => "display_name";
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is.";
        "column": Text, "The column.";
        "property": Text, "The column." => "column";
        "expression": Sql, "An expression over columns.";
        "unnest": Bool, "Whether each element of a list counts on its own.";
        "uri": Any, "Whether values are addresses, or an expression that makes one.";
        "ignore": Bool, "Whether the dimension is left out.";
        "lookup_table": Text, "A table that translates values.";
        "lookup_key_column": Text, "The column of the values in that table.";
        "lookup_value_column": Text, "The column of their translations.";
        "lookup_default_expression": Sql, "What stands for values without a translation.";
        "smallest_time_grain": Word(&GRAINS), "The smallest grain of time that makes sense.";
        "type": Word(&["geo", "time", "categorical"]), "What sort of dimension it is.";
        "data_type": Any, "The type of its values.";
        "tags": Texts, "Words to find it by.";
    }

    /// Keys that each measure of a metrics view accepts.
    pub(crate) static MEASURE = "measure" Refused {
        "name": Text, "The measure's name.";
        "display_name": Text, "The name for people.";
        "label": Text, "The name for people." => "display_name";
        "title": Text, "The name for people." => "display_name";
        "description": Text, "What it is.";
        "type": Word(&["simple", "derived", "time_comparison"]), "How it is computed.";
        "expression": Sql, "What is computed.";
        "window": Any, "The window over which it is computed: `time`, `all`, or a mapping.";
        "per": Any, "The dimensions by which it is computed first.";
        "requires": Any, "The fields that its expression names.";
        "format_preset": Word(&["none", "humanize", "currency_usd", "currency_eur", "percentage", "interval_ms"]), "How values are shown.";
        "format_d3": Text, "How values are shown, in the format of d3.";
        "format_d3_locale": Map(&Any), "The locale of `format_d3`.";
        "format": Any, "How values are shown." => "format_preset";
        "valid_percent_of_total": Bool, "Whether a share of the total makes sense.";
        "treat_nulls_as": Text, "What stands for missing values.";
        "ignore": Bool, "Whether the measure is left out.";
        "tags": Texts, "Words to find it by.";
    }

    /// Keys of the window of a measure.
    pub(crate) static WINDOW = "window" Refused {
        "partition": Bool, "Whether each group has a window of its own.";
        "order": Any, "The dimensions by which rows are ordered.";
        "frame": Text, "The frame, as SQL writes it.";
    }

    /// Keys of a dimension with a time grain.
    pub(crate) static FIELD_AND_GRAIN = "field_and_grain" Refused {
        "name": Text, "The field.";
        "time_grain": Word(&GRAINS), "The grain of time.";
    }

    /// Keys of an annotation of a metrics view.
    pub(crate) static ANNOTATION = "annotation" Refused {
        "name": Text, "Its name, if it is not the table's.";
        "model": Name("model"), "The model that holds the notes.";
        "table": Text, "The table that holds the notes, if no model makes it.";
        "database": Text, "The database of the table.";
        "database_schema": Text, "The schema of the table.";
        "connector": Text, "The connector of the table.";
        "measures": Either(&[Texts, Block(&SELECTOR)]), "The measures that the notes are about.";
    }

    /// Keys of the block `cache`.
    pub(crate) static CACHE = "cache" Refused {
        "enabled": Bool, "Whether answers are kept.";
        "key_sql": Sql, "A query whose answer changes when the rows do.";
        "key_ttl": Duration, "How long that answer holds.";
    }

    /// Keys of a rollup of a metrics view.
    pub(crate) static ROLLUP = "rollup" Refused {
        "model": Name("model"), "The model that holds the rows.";
        "time_grain": Word(&GRAINS), "Its grain of time.";
        "time_zone": Text, "The time zone of its grain.";
    }
}
