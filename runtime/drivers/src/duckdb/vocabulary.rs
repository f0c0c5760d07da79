//! The engine's built-in names that read and change nothing, by which callers' statements are judged.
//!
//! A function counts if all of its variants do: the engine lists them as consistent, or the name is listed here. A macro
//! of the engine counts by its name alone, for its body may read the catalog.

use std::collections::BTreeSet;

use super::sys::{Answer, Connection, Param, RawError};
use crate::olap::{Value, Vocabulary};

/// Consistent functions that read more than their arguments: settings, variables and the environment; plans of texts, for
/// which the engine opens what they name; and parts of plans, which take what only a plan gives them.
const REFUSED: &str =
    "'current_setting', 'getvariable', 'getenv', 'json_serialize_plan', 'combine', 'finalize'";

/// Functions that are not consistent and read nothing but the clock or a random number.
const OF_THE_MOMENT: &str = "\
    current_date current_localtime current_localtimestamp gen_random_uuid get_current_time \
    get_current_timestamp now random today transaction_timestamp uuid uuidv4 uuidv7";

/// Functions that the engine does not list as scalar ones.
const UNLISTED: &str = "grouping grouping_id unnest";

/// Macros of the engine whose bodies call functions that count, and read no table.
const MACROS: &str = "\
    ago array_append array_pop_back array_pop_front array_prepend array_push_back array_push_front \
    array_reverse array_to_string array_to_string_comma_default current_role current_user date_add \
    days_in_month fdiv fmod generate_subscripts geomean geometric_mean json json_group_array \
    json_group_object json_group_structure list_any_value list_append list_approx_count_distinct list_avg \
    list_bit_and list_bit_or list_bit_xor list_bool_and list_bool_or list_count list_entropy list_first \
    list_histogram list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min \
    list_mode list_prepend list_product list_reverse list_sem list_skewness list_stddev_pop \
    list_stddev_samp list_string_agg list_sum list_var_pop list_var_samp map_contains_entry \
    map_contains_value md5_number_lower md5_number_upper nullif pg_size_pretty pg_typeof \
    regexp_split_to_table round_even roundbankers session_user split_part user wavg weighted_avg";

/// Macros of those above that call an aggregate.
const AGGREGATE_MACROS: &str =
    "geomean geometric_mean json_group_array json_group_object json_group_structure wavg weighted_avg";

/// Reads the names from an engine without extensions.
///
/// # Errors
/// The engine's error.
pub(super) fn read(connection: &Connection) -> Result<Vocabulary, RawError> {
    let named = [OF_THE_MOMENT, UNLISTED, MACROS].join(" ");
    let named: Vec<&str> = named.split_whitespace().collect();
    let named = named.join(" ");
    let functions = format!(
        "SELECT lower(function_name) AS name FROM duckdb_functions() \
         WHERE function_type IN ('scalar', 'aggregate', 'macro') GROUP BY name \
         HAVING bool_and(internal AND coalesce(stability, '') = 'CONSISTENT') \
         AND name NOT IN ({REFUSED}) AND NOT starts_with(name, '__internal') \
         UNION SELECT unnest(string_split(?, ' '))"
    );
    let aggregates = "SELECT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'";
    let mut aggregates: BTreeSet<String> = texts(connection, aggregates, &[])?.collect();
    aggregates.extend(AGGREGATE_MACROS.split_whitespace().map(str::to_owned));
    Ok(Vocabulary {
        functions: texts(connection, &functions, &[Param::Text(&named)])?.collect(),
        aggregates,
        types: texts(
            connection,
            "SELECT DISTINCT lower(type_name) FROM duckdb_types() WHERE internal",
            &[],
        )?
        .collect(),
    })
}

fn texts(
    connection: &Connection,
    sql: &str,
    params: &[Param<'_>],
) -> Result<impl Iterator<Item = String> + use<>, RawError> {
    let rows = connection.run(sql, params).and_then(Answer::collect)?;
    let text = |value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    };
    Ok(rows.into_iter().flatten().filter_map(text))
}
