//! The shapes of the engine's parse tree: the keys that each object may have, and the parts that stand there.

/// The part that stands under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Texts, numbers and truth values, or lists of them.
    Plain,
    /// An empty text: what could stand there is not allowed.
    Empty,
    /// A constant, which the engine does not run.
    Constant,
    /// Objects that name their own shape.
    Node,
    /// A type.
    Type,
    /// Objects with these keys.
    Of(Parts),
}

/// The keys of an object, each with its part.
pub(super) type Parts = &'static [(&'static str, Part)];

use Part::{Constant, Empty, Node, Of, Plain, Type};

/// Keys that all objects may have.
pub(super) const COMMON: Parts = &[
    ("type", Plain),
    ("class", Plain),
    ("alias", Plain),
    ("query_location", Plain),
];

/// A whole statement.
pub(super) const STATEMENT: Parts = &[
    ("node", Node),
    ("named_param_map", Of(&[("key", Plain), ("value", Plain)])),
];

/// A CTE behind its name.
pub(super) const CTE: Parts = &[
    ("aliases", Plain),
    ("query", Of(STATEMENT)),
    ("materialized", Plain),
    ("key_targets", Node),
];

/// A function with its arguments.
pub(super) const FUNCTION: Parts = &[
    ("function_name", Plain),
    ("schema", Plain),
    ("catalog", Plain),
    ("children", Node),
    ("filter", Node),
    ("order_bys", Node),
    ("distinct", Plain),
    ("is_operator", Plain),
    ("export_state", Plain),
];

const WINDOW: Parts = &[
    ("function_name", Plain),
    ("schema", Plain),
    ("catalog", Plain),
    ("children", Node),
    ("partitions", Node),
    ("orders", Of(ORDER)),
    ("start", Plain),
    ("end", Plain),
    ("start_expr", Node),
    ("end_expr", Node),
    ("offset_expr", Node),
    ("default_expr", Node),
    ("ignore_nulls", Plain),
    ("filter_expr", Node),
    ("exclude_clause", Plain),
    ("distinct", Plain),
    ("arg_orders", Of(ORDER)),
];

const ORDER: Parts = &[("null_order", Plain), ("expression", Node)];

const SAMPLE: Parts = &[
    ("sample_size", Constant),
    ("is_percentage", Plain),
    ("method", Plain),
    ("seed", Plain),
];

/// A type, and what it is made of.
pub(super) const TYPE: Parts = &[("id", Plain), ("type_info", Of(TYPE_INFO))];

const TYPE_INFO: Parts = &[
    ("extension_info", Plain),
    ("name", Plain),
    ("catalog", Plain),
    ("schema", Plain),
    ("user_type_modifiers", Of(VALUE)),
    ("width", Plain),
    ("scale", Plain),
    ("collation", Plain),
    ("size", Plain),
    ("child_type", Type),
    ("child_types", Of(&[("first", Plain), ("second", Type)])),
];

const VALUE: Parts = &[("type", Constant), ("is_null", Plain), ("value", Constant)];

const SELECT: Parts = &[
    ("cte_map", Plain),
    ("select_list", Node),
    ("from_table", Node),
    ("where_clause", Node),
    ("group_expressions", Node),
    ("group_sets", Plain),
    ("aggregate_handling", Plain),
    ("having", Node),
    ("sample", Of(SAMPLE)),
    ("qualify", Node),
    ("modifiers", Node),
];

const SET_OPERATION: Parts = &[
    ("cte_map", Plain),
    ("setop_type", Plain),
    ("setop_all", Plain),
    ("left", Node),
    ("right", Node),
    ("children", Node),
    ("modifiers", Node),
];

const RECURSIVE: Parts = &[
    ("cte_map", Plain),
    ("modifiers", Node),
    ("cte_name", Plain),
    ("union_all", Plain),
    ("left", Node),
    ("right", Node),
    ("aliases", Plain),
    ("key_targets", Node),
];

const JOIN: Parts = &[
    ("sample", Of(SAMPLE)),
    ("left", Node),
    ("right", Node),
    ("condition", Node),
    ("join_type", Plain),
    ("ref_type", Plain),
    ("using_columns", Plain),
    ("delim_flipped", Plain),
    ("duplicate_eliminated_columns", Node),
];

const PIVOT: Parts = &[
    ("sample", Of(SAMPLE)),
    ("source", Node),
    ("aggregates", Node),
    ("unpivot_names", Plain),
    ("pivots", Of(PIVOT_COLUMN)),
    ("groups", Plain),
    ("column_name_alias", Plain),
    ("include_nulls", Plain),
];

const PIVOT_COLUMN: Parts = &[
    ("pivot_expressions", Node),
    ("unpivot_names", Plain),
    ("entries", Of(PIVOT_ENTRY)),
    // A type of the project could stand here.
    ("pivot_enum", Empty),
];

const PIVOT_ENTRY: Parts = &[("values", Of(VALUE)), ("star_expr", Node)];

const STAR: Parts = &[
    ("relation_name", Plain),
    ("exclude_list", Plain),
    ("qualified_exclude_list", Of(COLUMN)),
    ("replace_list", Of(&[("key", Plain), ("value", Node)])),
    ("rename_list", Of(&[("key", Of(COLUMN)), ("value", Plain)])),
    ("columns", Plain),
    ("expr", Node),
];

const COLUMN: Parts = &[
    ("catalog", Plain),
    ("schema", Plain),
    ("table", Plain),
    ("column", Plain),
];

const CASE: Parts = &[
    ("case_checks", Of(&[("when_expr", Node), ("then_expr", Node)])),
    ("else_expr", Node),
];

const SUBQUERY: Parts = &[
    // In an expression, and in FROM.
    ("subquery", Of(STATEMENT)),
    ("subquery_type", Plain),
    ("child", Node),
    ("comparison_type", Plain),
    ("sample", Of(SAMPLE)),
    ("column_name_alias", Plain),
];

const TABLE: Parts = &[
    ("sample", Of(SAMPLE)),
    ("catalog_name", Plain),
    ("schema_name", Plain),
    ("table_name", Plain),
    ("column_name_alias", Plain),
    // Earlier rows are no output: only null stands here.
    ("at_clause", Empty),
];

const SHOW: Parts = &[
    ("sample", Of(SAMPLE)),
    ("catalog_name", Empty),
    ("schema_name", Empty),
    ("table_name", Empty),
    ("query", Node),
    ("show_type", Plain),
];

const VALUES: Parts = &[
    ("sample", Of(SAMPLE)),
    ("expected_names", Plain),
    ("expected_types", Type),
    ("values", Node),
];

const TABLE_FUNCTION: Parts = &[
    ("sample", Of(SAMPLE)),
    ("function", Node),
    ("column_name_alias", Plain),
    ("with_ordinality", Plain),
];

const CAST: Parts = &[("child", Node), ("cast_type", Type), ("try_cast", Plain)];

const LIMIT: Parts = &[("limit", Node), ("offset", Node)];

/// Returns the keys of an object by its class, or by its type if it has no class; none if it is not allowed.
pub(super) fn shape(kind: &str) -> Option<Parts> {
    Some(match kind {
        // Queries and their ends.
        "SELECT_NODE" => SELECT,
        "SET_OPERATION_NODE" => SET_OPERATION,
        "RECURSIVE_CTE_NODE" => RECURSIVE,
        "ORDER_MODIFIER" => &[("orders", Of(ORDER))],
        "LIMIT_MODIFIER" | "LIMIT_PERCENT_MODIFIER" => LIMIT,
        "DISTINCT_MODIFIER" => &[("distinct_on_targets", Node)],
        // What stands in FROM.
        "BASE_TABLE" => TABLE,
        "EMPTY" => &[("sample", Of(SAMPLE))],
        "EXPRESSION_LIST" => VALUES,
        "JOIN" => JOIN,
        "PIVOT" => PIVOT,
        "SHOW_REF" => SHOW,
        "TABLE_FUNCTION" => TABLE_FUNCTION,
        "SUBQUERY" => SUBQUERY,
        // Expressions.
        "BETWEEN" => &[("input", Node), ("lower", Node), ("upper", Node)],
        "CASE" => CASE,
        "CAST" => CAST,
        "COLLATE" => &[("child", Node), ("collation", Plain)],
        "COLUMN_REF" => &[("column_names", Plain)],
        "COMPARISON" => &[("left", Node), ("right", Node)],
        "CONJUNCTION" | "OPERATOR" => &[("children", Node)],
        "CONSTANT" => &[("value", Constant)],
        "DEFAULT" => &[],
        "FUNCTION" => FUNCTION,
        "LAMBDA" => &[("lhs", Node), ("expr", Node), ("syntax_type", Plain)],
        "PARAMETER" => &[("identifier", Plain)],
        "POSITIONAL_REFERENCE" => &[("index", Plain)],
        "STAR" => STAR,
        "WINDOW" => WINDOW,
        _ => return None,
    })
}
