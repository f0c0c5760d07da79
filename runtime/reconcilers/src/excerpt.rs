//! The excerpt of an answer that a message shows: its first rows, and the line of a number over time.

use watershed_delivery::{Series, Table, message};
use watershed_drivers::olap::Value;
use watershed_proto::{DataResolver, Schedule};
use watershed_resolvers::{Answer, Heading};

/// The most rows that are read for a line: more than it has pixels are of no use.
pub(crate) const POINTS_MAX: u64 = 400;
/// The fewest points that say more as a line than as rows.
const POINTS_MIN: usize = 3;

/// Returns the name of the zone in which people are told of times: that of a schedule, or of its question; empty if none is said.
pub(crate) fn zone<'a>(schedule: Option<&'a Schedule>, data: Option<&'a DataResolver>) -> &'a str {
    let said = schedule.map(|schedule| schedule.time_zone.as_str());
    let asked = || data?.properties.as_ref()?.str("time_zone");
    said.filter(|said| !said.is_empty())
        .or_else(asked)
        .unwrap_or_default()
}

/// Returns the first rows of an answer. Numbers are written in the formats of their measures, times by the clock of their zone.
pub(crate) fn table(answer: &Answer) -> Table {
    let row = |row: &Vec<Value>| {
        let values = row.iter().zip(&answer.columns);
        values
            .map(|(value, (heading, _))| message::shown(&heading.written(value)))
            .collect()
    };
    let columns = answer.columns.iter();
    Table {
        columns: columns
            .map(|(heading, _)| answer.head(heading).to_owned())
            .collect(),
        rows: answer.rows.iter().take(message::ROWS_MAX).map(row).collect(),
    }
}

/// Returns the first number of an answer over its first time; none unless each row has another time, all in order, and rows are whole.
pub(crate) fn series(answer: &Answer) -> Option<Series> {
    if answer.truncated || answer.rows.len() < POINTS_MIN {
        return None;
    }
    let values = |at: usize| answer.rows.iter().filter_map(move |row| row.get(at));
    let time_at = (0..answer.columns.len()).find(|at| values(*at).all(|value| order(value).is_some()))?;
    let number_at = (0..answer.columns.len())
        .find(|at| *at != time_at && values(*at).all(|value| value.number().is_some_and(f64::is_finite)))?;
    let times: Vec<i128> = values(time_at).filter_map(order).collect();
    let rises = times.is_sorted_by(|one, next| one < next);
    if !rises && !times.is_sorted_by(|one, next| one > next) {
        return None;
    }
    let mut points: Vec<(&Value, &Value)> = values(time_at).zip(values(number_at)).collect();
    if !rises {
        points.reverse();
    }
    let by_number = |one: &&(&Value, &Value), other: &&(&Value, &Value)| {
        let number = |point: &(&Value, &Value)| point.1.number().unwrap_or_default();
        number(one).total_cmp(&number(other))
    };
    let (least, most) = (points.iter().min_by(by_number)?, points.iter().max_by(by_number)?);
    let (from, span) = (least.1.number()?, most.1.number()? - least.1.number()?);
    let written = |at: usize, value: &Value| {
        let heading: Option<&Heading> = answer.columns.get(at).map(|(heading, _)| heading);
        heading.map(|heading| heading.written(value)).unwrap_or_default()
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is clamped to the range of heights"
    )]
    let height = |value: &Value| match span > 0.0 {
        true => ((value.number().unwrap_or(from) - from) / span * 1_000.0).clamp(0.0, 1_000.0) as u16,
        false => 500,
    };
    Some(Series {
        label: answer
            .columns
            .get(number_at)
            .map(|(heading, _)| answer.head(heading).to_owned())?,
        times: [
            written(time_at, points.first()?.0),
            written(time_at, points.last()?.0),
        ],
        bounds: [written(number_at, least.1), written(number_at, most.1)],
        heights: points.iter().map(|(_, value)| height(value)).collect(),
    })
}

/// Returns the place of a time among times; none for what is no time, and for infinite ones.
fn order(value: &Value) -> Option<i128> {
    match value {
        Value::Date { days } if days.unsigned_abs() < i32::MAX.unsigned_abs() => Some(i128::from(*days)),
        Value::Timestamp { .. } => value.instant().map(|at| at.as_nanosecond()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(days: &[i32]) -> Answer {
        Answer {
            columns: vec![
                (Heading::plain("day"), "DATE".to_owned()),
                (Heading::plain("flights"), "BIGINT".to_owned()),
            ],
            rows: days
                .iter()
                .map(|days| {
                    vec![
                        Value::Date { days: *days },
                        Value::Integer(i128::from(*days) * 10),
                    ]
                })
                .collect(),
            ..Answer::default()
        }
    }

    #[test]
    fn rows_of_days_are_a_line_in_the_order_of_time() {
        let series = series(&answer(&[3, 1, 0])).expect("each day has one row");
        assert_eq!(series.heights, [0, 333, 1_000]);
        assert_eq!(series.times, ["1970-01-01", "1970-01-04"]);
        assert_eq!(series.caption(), "flights, 1970-01-01 to 1970-01-04: 0 to 30");
    }

    #[test]
    fn rows_of_one_day_or_in_no_order_or_cut_off_are_no_line() {
        assert_eq!(series(&answer(&[1, 1, 2])), None);
        assert_eq!(series(&answer(&[1, 3, 2])), None);
        assert_eq!(series(&answer(&[1, 2])), None);
        let cut_off = Answer {
            truncated: true,
            ..answer(&[1, 2, 3])
        };
        assert_eq!(series(&cut_off), None);
    }
}
