//! Charts of rows: a line over time or bars, in characters or as SVG.

use std::fmt::Write as _;
use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    BLACK, ChartBuilder, Color as _, IntoDrawingArea as _, LineSeries, RGBColor, Rectangle, SVGBackend, WHITE,
};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget as _;
use ratatui_widgets::barchart::{Bar, BarChart};
use ratatui_widgets::chart::{Axis, Chart as Lines, Dataset, GraphType};
use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;
use watershed_api::documents::Column;

use super::columns::shortened;
use super::rows::plain;

/// The most bars in a chart.
const BARS_MAX: usize = 60;
/// Height of a line chart in the terminal, in lines.
const HEIGHT: u16 = 16;
/// Width of a chart in columns, if the terminal's width is unknown.
const WIDTH: u16 = 100;
/// The longest name of a bar, in columns.
const NAME_MAX: usize = 30;
/// The most labels below an SVG chart: of points in time, which are long, and of bars.
const MARKS_OF_TIME: usize = 6;
const MARKS: usize = 12;
/// Width and height of an SVG chart, in pixels.
const PICTURE: (u32, u32) = (960, 480);
const INK: RGBColor = RGBColor(31, 111, 235);

/// The reason why rows can't be drawn as a chart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChartError {
    /// No column holds numbers.
    #[error("no column of the rows holds numbers, which a chart is made of")]
    NoNumbers,
    /// There are no rows.
    #[error("there are no rows to draw")]
    NoRows,
    /// The SVG could not be drawn.
    #[error("the picture can't be drawn: {0}")]
    Picture(String),
}

/// A row as a point or bar of a chart.
#[derive(Debug)]
struct Point {
    /// Label: the other values of the row, formatted for people.
    name: String,
    /// Measured value, formatted for people.
    text: String,
    /// Measured value, as a number.
    value: f64,
    /// Seconds since 1970; none for rows without a time.
    time: Option<f64>,
}

/// An axis with labels at given positions.
struct Marked {
    axis: RangedCoordf64,
    marks: Vec<f64>,
}

impl Marked {
    fn new(range: Range<f64>, marks: Vec<f64>) -> Self {
        let axis = RangedCoordf64::from(range);
        Self { axis, marks }
    }
}

impl Ranged for Marked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.axis.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.axis.range()
    }
}

/// A chart of the first numeric column, labelled by the other columns.
#[derive(Debug)]
pub(crate) struct Chart {
    /// Name of the measured column.
    measure: String,
    points: Vec<Point>,
    /// Number of rows that exceed the limit of bars.
    left_out: usize,
    is_line: bool,
}

impl Chart {
    /// Creates a chart of rows. `texts` are the same rows, formatted for people.
    ///
    /// # Errors
    /// When there is no row, or no number in them.
    pub(crate) fn new(
        columns: &[Column],
        rows: &[Vec<Value>],
        texts: &[Vec<Value>],
    ) -> Result<Self, ChartError> {
        if rows.is_empty() {
            return Err(ChartError::NoRows);
        }
        let holds = |at: usize, is: &dyn Fn(&Value) -> bool| {
            let mut values = rows
                .iter()
                .filter_map(|row| row.get(at))
                .filter(|value| !value.is_null())
                .peekable();
            values.peek().is_some() && values.all(is)
        };
        let numbers: Vec<usize> = (0..columns.len())
            .filter(|at| {
                let data_type = columns.get(*at).map_or("", |column| column.data_type.as_str());
                is_number(data_type) || holds(*at, &|value| value.is_number())
            })
            .collect();
        let names: Vec<usize> = (0..columns.len()).filter(|at| !numbers.contains(at)).collect();
        // Where all columns hold numbers, the first says what the second is of.
        let (names, measure) = match (names.as_slice(), numbers.as_slice()) {
            (_, []) => return Err(ChartError::NoNumbers),
            ([], [name, measure, ..]) => (vec![*name], *measure),
            (_, [measure, ..]) => (names, *measure),
        };
        let is_time = |at: &usize| {
            let data_type = columns.get(*at).map_or("", |column| column.data_type.as_str());
            data_type.starts_with("DATE") || data_type.starts_with("TIMESTAMP")
        };
        let time = names.iter().copied().find(is_time);
        let mut points: Vec<Point> = rows
            .iter()
            .zip(texts)
            .filter_map(|(row, texts)| {
                let said = |at: &usize| texts.get(*at).map(|value| named(&plain(value)));
                Some(Point {
                    name: names.iter().filter_map(said).collect::<Vec<_>>().join(" "),
                    text: said(&measure)?,
                    value: number(row.get(measure)?)?,
                    time: time.and_then(|at| seconds(row.get(at)?)),
                })
            })
            .collect();
        if points.is_empty() {
            return Err(ChartError::NoNumbers);
        }
        points_in_order(&mut points);
        let is_line = points.len() > 1
            && points.iter().all(|point| point.time.is_some())
            && points.is_sorted_by(|one, next| one.time < next.time);
        let room = if is_line { points.len() } else { BARS_MAX };
        let left_out = points.len().saturating_sub(room);
        points.truncate(room);
        let measure = columns.get(measure).map_or("", |column| column.name.as_str());
        Ok(Self {
            measure: named(measure),
            points,
            left_out,
            is_line,
        })
    }

    /// Returns the number of rows that exceed the limit of bars.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// Draws the chart in characters, in lines of at most `width` columns.
    pub(crate) fn text(&self, width: Option<u16>) -> String {
        let width = width.unwrap_or(WIDTH);
        let mut text = format!("{}\n", shortened(&self.measure, usize::from(width)));
        match self.is_line {
            true => text.push_str(&self.line(width)),
            false => text.push_str(&self.bars(width)),
        }
        text
    }

    fn line(&self, width: u16) -> String {
        let points: Vec<(f64, f64)> = self
            .points
            .iter()
            .map(|point| (point.time.unwrap_or_default(), point.value))
            .collect();
        let ends = [self.points.first(), self.points.last()]
            .map(|point| point.map_or("", |point| point.name.as_str()));
        let [low, high] = self.bounds();
        let times = [points.first(), points.last()].map(|point| point.map_or(0.0, |(time, _)| *time));
        let bounds = [low, f64::midpoint(low, high), high].map(|bound| short(bound, high - low));
        let dataset = Dataset::default()
            .marker(Marker::Braille)
            .graph_type(GraphType::Line)
            .data(&points);
        let lines = Lines::new(vec![dataset])
            .x_axis(Axis::default().bounds(times).labels(ends))
            .y_axis(Axis::default().bounds([low, high]).labels(bounds));
        let area = Rect::new(0, 0, width, HEIGHT);
        let mut buffer = Buffer::empty(area);
        lines.render(area, &mut buffer);
        lines_of(&buffer)
    }

    fn bars(&self, width: u16) -> String {
        let name = |point: &Point| shortened(&point.name, NAME_MAX);
        let widest = |texts: &dyn Fn(&Point) -> usize| self.points.iter().map(texts).max().unwrap_or(0);
        let (names, values) = (
            widest(&|point| name(point).width()),
            widest(&|point| point.text.width()),
        );
        let most = self.points.iter().map(|point| point.value).fold(0.0, f64::max);
        let bars: Vec<Bar<'_>> = self
            .points
            .iter()
            .map(|point| {
                let name = name(point);
                let (after, before) = (names - name.width(), values - point.text.width());
                let label = format!("{name}{:after$}  {:before$}{}", "", "", point.text);
                Bar::with_label(label, scaled(point.value, most)).text_value("")
            })
            .collect();
        let height = u16::try_from(bars.len()).unwrap_or(u16::MAX);
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        let chart = BarChart::horizontal(bars).bar_gap(0).max(SCALE);
        chart.render(area, &mut buffer);
        lines_of(&buffer)
    }

    /// Returns the lowest and highest value of the axis, with a margin if all values are equal.
    fn bounds(&self) -> [f64; 2] {
        let values = self.points.iter().map(|point| point.value);
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let room = if high > low {
            0.0
        } else {
            high.abs().max(1.0) * 0.1
        };
        [low - room, high + room]
    }

    /// Draws the chart as SVG.
    ///
    /// # Errors
    /// When the picture can't be made.
    pub(crate) fn svg(&self) -> Result<String, ChartError> {
        let mut svg = String::new();
        self.picture(&mut svg)
            .map_err(|error| ChartError::Picture(error.to_string()))?;
        Ok(svg)
    }

    #[allow(clippy::cast_precision_loss, reason = "there are few points")]
    fn picture(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error + '_>> {
        let area = SVGBackend::with_string(svg, PICTURE).into_drawing_area();
        area.fill(&WHITE)?;
        let last = self.points.len().saturating_sub(1).max(1) as f64;
        let [low, high] = self.bounds();
        let (low, high) = if self.is_line {
            (low, high)
        } else {
            (low.min(0.0), high.max(0.0))
        };
        let times = [self.points.first(), self.points.last()]
            .map(|point| point.and_then(|point| point.time).unwrap_or_default());
        let across = if self.is_line {
            times[0]..times[1]
        } else {
            -0.5..last + 0.5
        };
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.measure, ("sans-serif", 18))
            .margin(16)
            .margin_right(48)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(Marked::new(across, self.marks()), low..high)?;
        let name = |at: &f64| self.name_at(*at);
        chart
            .configure_mesh()
            .disable_x_mesh()
            .light_line_style(BLACK.mix(0.05))
            .bold_line_style(BLACK.mix(0.1))
            .x_labels(self.points.len())
            .x_label_formatter(&name)
            .y_label_formatter(&|value| short(*value, high - low))
            .draw()?;
        if self.is_line {
            let points = self
                .points
                .iter()
                .map(|point| (point.time.unwrap_or_default(), point.value));
            chart.draw_series(LineSeries::new(points, INK.stroke_width(2)))?;
        } else {
            let bar = |(at, point): (usize, &Point)| {
                let at = at as f64;
                Rectangle::new([(at - 0.4, 0.0), (at + 0.4, point.value)], INK.filled())
            };
            chart.draw_series(self.points.iter().enumerate().map(bar))?;
        }
        area.present()?;
        Ok(())
    }

    /// Returns the positions of labels on the axis: points and bars at equal distances, with the first.
    #[allow(clippy::cast_precision_loss, reason = "there are few points")]
    fn marks(&self) -> Vec<f64> {
        let most = if self.is_line { MARKS_OF_TIME } else { MARKS };
        let step = self.points.len().div_ceil(most).max(1);
        let marks = self.points.iter().enumerate().step_by(step);
        marks
            .map(|(at, point)| match self.is_line {
                true => point.time.unwrap_or_default(),
                false => at as f64,
            })
            .collect()
    }

    /// Returns the label at a position of the axis: that of the nearest point or bar.
    #[allow(clippy::cast_precision_loss, reason = "there are few points")]
    fn name_at(&self, at: f64) -> String {
        let distance = |(index, point): &(usize, &Point)| match self.is_line {
            true => (point.time.unwrap_or_default() - at).abs(),
            false => (*index as f64 - at).abs(),
        };
        let nearest = self
            .points
            .iter()
            .enumerate()
            .min_by(|one, other| distance(one).total_cmp(&distance(other)));
        nearest
            .map(|(_, point)| shortened(&point.name, NAME_MAX))
            .unwrap_or_default()
    }
}

/// Shortens a text to a label, with blanks for control characters.
fn named(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    shortened(&text, NAME_MAX)
}

/// Length of the longest bar, in arbitrary units.
const SCALE: u64 = 100_000;

/// Returns the length of a bar, from 0 to `SCALE`; 0 for negative values.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the value lies between nought and the scale"
)]
fn scaled(value: f64, most: f64) -> u64 {
    match most > 0.0 {
        true => ((value / most).clamp(0.0, 1.0) * SCALE as f64) as u64,
        false => 0,
    }
}

/// Sorts points by time if all have a time.
fn points_in_order(points: &mut [Point]) {
    if points.iter().all(|point| point.time.is_some()) {
        points.sort_by(|one, other| {
            one.time
                .unwrap_or_default()
                .total_cmp(&other.time.unwrap_or_default())
        });
    }
}

/// Formats a number with a precision that fits the axis's span.
fn short(value: f64, span: f64) -> String {
    let digits = if span >= 20.0 {
        0
    } else if span >= 2.0 {
        1
    } else {
        3
    };
    format!("{value:.digits$}")
}

/// Returns true for the types of numbers. Values of some leave as texts: decimals, whole numbers beyond what JSON holds, NaN.
fn is_number(data_type: &str) -> bool {
    let numbers = ["DECIMAL", "DOUBLE", "FLOAT", "BIGNUM"];
    numbers.iter().any(|name| data_type.starts_with(name))
        || data_type.ends_with("INT")
        || data_type == "INTEGER"
        || data_type == "UINTEGER"
}

/// Returns a number that can be drawn; none for NaN and infinity.
fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    };
    number.filter(|number: &f64| number.is_finite())
}

/// Returns a date or timestamp as seconds since 1970; none for other values.
fn seconds(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let local = || {
        let local = text.parse::<jiff::civil::DateTime>().ok()?;
        local
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()
            .map(|at| at.timestamp())
    };
    zoned.or_else(local).map(|at| at.as_duration().as_secs_f64())
}

/// Returns the lines of a buffer, without trailing blanks.
fn lines_of(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let line: String = (0..buffer.area.width)
            .filter_map(|x| buffer.cell((x, y)))
            .map(|cell| cell.symbol())
            .collect();
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn column(name: &str, data_type: &str) -> Column {
        Column {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
        }
    }

    fn chart(columns: &[Column], rows: &[Vec<Value>]) -> Result<Chart, ChartError> {
        Chart::new(columns, rows, rows)
    }

    #[test]
    fn rows_with_names_are_bars_beside_their_numbers() {
        let columns = [column("origin", "VARCHAR"), column("delay", "DOUBLE")];
        let rows = [
            vec![json!("JFK"), json!(40.0)],
            vec![json!("Newark\u{1b}[2J"), json!(10.0)],
            vec![json!(null), json!(-5.0)],
        ];
        let text = chart(&columns, &rows).expect("there are numbers").text(Some(37));
        let expected = format!(
            "delay\nJFK         40.0 {}\nNewark [2J  10.0 {}\n            -5.0\n",
            "█".repeat(20),
            "█".repeat(5),
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn decimals_and_large_numbers_are_numbers_and_what_is_none_is_left_out() {
        let columns = [
            column("origin", "VARCHAR"),
            column("distance", "DECIMAL(38,2)"),
            column("n", "DOUBLE"),
        ];
        let rows = [
            vec![json!("JFK"), json!("40.50"), json!("NaN")],
            vec![json!("EWR"), json!("81.00"), json!(1.0)],
        ];
        let text = chart(&columns, &rows).expect("there are numbers").text(Some(40));
        assert!(text.starts_with("distance\n") && text.contains("81.00"), "{text}");
        let text = chart(
            &[columns[0].clone(), columns[2].clone()],
            &rows.map(|row| vec![row[0].clone(), row[2].clone()]),
        );
        let text = text.expect("there is a number").text(Some(40));
        assert!(text.contains("EWR") && !text.contains("JFK"), "{text}");
    }

    #[test]
    fn rows_with_times_are_a_line_in_the_order_of_time_within_the_width() {
        let columns = [column("day", "DATE"), column("flights", "BIGINT")];
        let rows = [3, 1, 2].map(|day| vec![json!(format!("2013-02-0{day}")), json!(day * 10)]);
        let chart = chart(&columns, &rows).expect("there are numbers");
        let text = chart.text(Some(60));
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        let last = text.lines().last().expect("the axis has names");
        assert!(
            last.starts_with("2013-02-01") && last.ends_with("2013-02-03"),
            "{text}"
        );
        let svg = chart.svg().expect("it can be drawn");
        assert!(
            svg.starts_with("<svg") && svg.contains("2013-02-0") && svg.contains("flights"),
            "{svg}"
        );
    }

    #[test]
    fn two_rows_at_one_time_are_bars() {
        let columns = [
            column("day", "DATE"),
            column("origin", "VARCHAR"),
            column("flights", "BIGINT"),
        ];
        let rows = ["EWR", "JFK"].map(|origin| vec![json!("2013-02-01"), json!(origin), json!(1)]);
        let text = chart(&columns, &rows).expect("there are numbers").text(Some(60));
        assert!(text.contains("2013-02-01 EWR  1 █"), "{text}");
    }

    #[test]
    fn rows_without_numbers_and_no_rows_are_refused() {
        let columns = [column("origin", "VARCHAR")];
        assert!(matches!(
            chart(&columns, &[vec![json!("7")]]),
            Err(ChartError::NoNumbers)
        ));
        assert!(matches!(chart(&columns, &[]), Err(ChartError::NoRows)));
    }
}
