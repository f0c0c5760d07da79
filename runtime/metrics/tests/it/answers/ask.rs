//! Random queries.

use watershed_metrics::jiff::Timestamp;
use watershed_metrics::plan::{Bounds, plan};
use watershed_metrics::query::{
    Comparison, ComputedMeasure, Dimension, Filter, Literal, Measure, Operator, Range, Sort, Spine, Subquery,
};
use watershed_metrics::{Grain, Policy, Query, TimeRange, View, Zone};

use super::draw::Draw;
use super::naive::Span;
use super::world::{DIMENSIONS, World};

const ZONES: [&str; 4] = ["", "America/New_York", "Australia/Lord_Howe", "America/Havana"];

/// A random query of a world, with its ranges as numbers.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) query: Query,
    pub(crate) base: Option<Span>,
    pub(crate) comparison: Option<Span>,
}

impl Ask {
    pub(crate) fn draw(draw: &mut Draw<'_>, world: &World) -> Self {
        let mut query = Query::of(&world.view.name);
        query.time_zone = Zone::find(draw.pick(&ZONES)).expect("a zone");
        let mut ask = Self {
            query,
            base: None,
            comparison: None,
        };
        ask.draw_ranges(draw);
        if draw.one_in(12) {
            ask.query.rows = true;
            ask.query.comparison_time_range = None;
            ask.comparison = None;
            ask.query.r#where = draw
                .one_in(2)
                .then(|| condition(draw, world, &DIMENSIONS, &[], 2));
            return ask;
        }
        ask.draw_dimensions(draw, world);
        ask.draw_measures(draw, world);
        ask.draw_conditions(draw, world);
        ask.draw_rest(draw);
        ask
    }

    fn draw_ranges(&mut self, draw: &mut Draw<'_>) {
        if draw.one_in(3) {
            return;
        }
        let names = ["at", "day", "seen"];
        let range = |draw: &mut Draw<'_>, from: i64| {
            let start = from - i64::try_from(draw.below(40)).expect("small") * 3_600_000_000 / 2;
            let hours = i64::try_from(1 + draw.below(24 * 5)).expect("small");
            (start, start + hours * 3_600_000_000)
        };
        let anchor = draw.pick(&[
            "2024-03-10T12:00:00Z",
            "2024-03-10T03:00:00Z",
            "2024-11-03T09:00:00Z",
            "2024-04-07T00:00:00Z",
        ]);
        let anchor = anchor.parse::<Timestamp>().expect("a time").as_microsecond();
        let of = |name: &str, (start, end): (i64, i64)| {
            let time = |micros| Some(Timestamp::from_microsecond(micros).expect("a time"));
            let span = Span {
                dimension: DIMENSIONS
                    .iter()
                    .position(|other| *other == name)
                    .expect("a dimension"),
                start,
                end,
            };
            let range = Range {
                time_dimension: (name != "at").then(|| name.to_owned()),
                range: TimeRange {
                    start: time(start),
                    end: time(end),
                    ..TimeRange::default()
                },
            };
            (span, range)
        };
        let name = draw.pick(&names);
        let (span, own) = of(name, range(draw, anchor));
        self.base = Some(span);
        self.query.time_range = Some(own);
        if draw.one_in(2) {
            let name = if draw.one_in(5) { draw.pick(&names) } else { name };
            let (span, own) = of(name, range(draw, span.start));
            self.comparison = Some(span);
            self.query.comparison_time_range = Some(Comparison::Range(own));
        }
    }

    fn draw_dimensions(&mut self, draw: &mut Draw<'_>, world: &World) {
        // Only a cut of what both ranges are of has buckets that are compared by their places.
        if let (Some(base), Some(comparison)) = (self.base, self.comparison)
            && base.dimension == comparison.dimension
            && draw.one_in(2)
        {
            let of = DIMENSIONS[base.dimension];
            self.query.dimensions.push(Dimension {
                name: of.to_owned(),
                of: of.to_owned(),
                grain: Some(draw.pick(&[Grain::Day, Grain::Week, Grain::Month])),
            });
        }
        // Windows over times are asked for with times alone.
        let by_time = world
            .view
            .measures
            .iter()
            .any(|measure| !measure.order.is_empty());
        for _ in 0..draw.below(4) {
            let of = if draw.one_in(6) {
                "tag"
            } else if by_time && draw.one_in(3) {
                "at"
            } else {
                draw.pick(&DIMENSIONS)
            };
            let grain = match of {
                "at" | "seen" | "later d0" => draw.pick(&[
                    Some(Grain::Day),
                    Some(Grain::Hour),
                    None,
                    Some(Grain::Week),
                    Some(Grain::Month),
                    Some(Grain::Quarter),
                    Some(Grain::Year),
                    Some(Grain::Minute),
                ]),
                "day" => draw.pick(&[None, Some(Grain::Day), Some(Grain::Week), Some(Grain::Month)]),
                _ => None,
            };
            // Minutes of days are many; they are looked at where nothing pairs them.
            let grain = grain.filter(|grain| *grain != Grain::Minute || self.comparison.is_none());
            if self.query.dimensions.iter().all(|dimension| dimension.of != of) {
                let name = if draw.one_in(4) {
                    format!("{of} \"cut\"")
                } else {
                    of.to_owned()
                };
                let dimension = Dimension {
                    name,
                    of: of.to_owned(),
                    grain,
                };
                self.query.dimensions.push(dimension);
            }
        }
        self.draw_second_cut(draw);
    }

    /// Cuts the times of a dimension in a second way, where nothing pairs its buckets.
    fn draw_second_cut(&mut self, draw: &mut Draw<'_>) {
        let grains: Vec<Grain> = self
            .query
            .dimensions
            .iter()
            .filter(|dimension| dimension.of == "at")
            .filter_map(|dimension| dimension.grain)
            .collect();
        let grain = draw.pick(&[Grain::Week, Grain::Month, Grain::Day]);
        if grains.is_empty() || grains.contains(&grain) || self.comparison.is_some() || !draw.one_in(2) {
            return;
        }
        self.query.dimensions.push(Dimension {
            name: "at again".to_owned(),
            of: "at".to_owned(),
            grain: Some(grain),
        });
    }

    /// Draws measures of those that can be asked for with these dimensions and ranges.
    fn draw_measures(&mut self, draw: &mut Draw<'_>, world: &World) {
        let possible: Vec<String> = world
            .view
            .measures
            .iter()
            .map(|measure| measure.name.clone())
            .filter(|name| {
                let mut query = self.query.clone();
                query.measures = vec![Measure::named(name)];
                plan(
                    &world.view,
                    &Policy::open(),
                    &query,
                    &Bounds::at(Timestamp::UNIX_EPOCH),
                )
                .is_ok()
            })
            .collect();
        for place in 0..1 + draw.below(5) {
            // The last ones require the first.
            let back = draw.below(possible.len());
            let name = possible
                .len()
                .checked_sub(back + 1)
                .and_then(|place| possible.get(place))
                .cloned();
            let compared = self.comparison.is_some();
            let compute = match (draw.below(12), name) {
                (0, _) => ComputedMeasure::Count,
                (1, _) => {
                    ComputedMeasure::CountDistinct(draw.pick(&["name", "tag", "Label", "seats"]).to_owned())
                }
                (2, Some(name)) => {
                    let kind = world.view.measure(&name).map(|measure| measure.kind);
                    match kind {
                        Some(watershed_metrics::MeasureKind::Window) | None => continue,
                        Some(_) => ComputedMeasure::PercentOfTotal(name),
                    }
                }
                (3, Some(name)) if compared => ComputedMeasure::ComparisonValue(name),
                (4, Some(name)) if compared => ComputedMeasure::ComparisonDelta(name),
                (5, Some(name)) if compared => ComputedMeasure::ComparisonRatio(name),
                (6, _) if compared => {
                    let times = ["at", "day", "seen"];
                    let mut dimensions = self.query.dimensions.iter();
                    match dimensions.find(|dimension| times.contains(&dimension.of.as_str())) {
                        Some(dimension) => ComputedMeasure::ComparisonTime(dimension.of.clone()),
                        None => continue,
                    }
                }
                (_, Some(name)) => {
                    if self.query.measures.iter().all(|measure| measure.name != name) {
                        self.query.measures.push(Measure::named(&name));
                    }
                    continue;
                }
                _ => continue,
            };
            self.query.measures.push(Measure {
                name: format!("computed x{place}"),
                compute: Some(compute),
            });
        }
        if self.query.measures.is_empty() && self.query.dimensions.is_empty() {
            self.query.measures.push(Measure {
                name: "n".to_owned(),
                compute: Some(ComputedMeasure::Count),
            });
        }
    }

    fn draw_conditions(&mut self, draw: &mut Draw<'_>, world: &World) {
        if draw.one_in(3) {
            self.query.r#where = Some(condition(draw, world, &DIMENSIONS, &[], 3));
        }
        if draw.one_in(3) {
            let dimensions: Vec<&str> = self
                .query
                .dimensions
                .iter()
                .filter(|dimension| dimension.name == dimension.of)
                .map(|dimension| dimension.name.as_str())
                .collect();
            let numeric =
                |measure: &&Measure| !matches!(measure.compute, Some(ComputedMeasure::ComparisonTime(_)));
            let measures: Vec<&str> = self
                .query
                .measures
                .iter()
                .filter(numeric)
                .map(|measure| measure.name.as_str())
                .collect();
            if !dimensions.is_empty() || !measures.is_empty() {
                self.query.having = Some(condition(draw, world, &dimensions, &measures, 2));
            }
        }
    }

    fn draw_rest(&mut self, draw: &mut Draw<'_>) {
        let span = self.base.map(|span| DIMENSIONS[span.dimension]);
        let cuts: Vec<&Dimension> = self
            .query
            .dimensions
            .iter()
            .filter(|dimension| dimension.grain.is_some())
            .collect();
        let minutes = cuts
            .iter()
            .any(|dimension| dimension.grain == Some(Grain::Minute));
        // Of times that are cut in two ways the naive evaluator knows no pairs without rows.
        let filled = cuts
            .iter()
            .filter(|dimension| Some(dimension.of.as_str()) == span);
        let fills = filled.count() == 1 && !minutes;
        match draw.below(5) {
            1 | 3 if fills => self.query.spine = Some(Spine::Time),
            2 => {
                let world_filter = simple(draw, &DIMENSIONS, &[]);
                self.query.spine = Some(Spine::Where(world_filter));
            }
            _ => {}
        }
        let names: Vec<String> = self
            .query
            .dimensions
            .iter()
            .map(|dimension| dimension.name.clone())
            .chain(self.query.measures.iter().map(|measure| measure.name.clone()))
            .collect();
        for _ in 0..draw.below(3) {
            let name = draw.pick(&names);
            if self.query.sort.iter().all(|sort| sort.name != name) {
                self.query.sort.push(Sort {
                    name,
                    descending: draw.one_in(2),
                });
            }
        }
        if draw.one_in(4) {
            self.query.limit = Some(draw.below(4) as u64);
            self.query.offset = draw.below(3) as u64;
        }
        self.query.totals = draw.one_in(3);
    }
}

/// Returns the view of a world on another table.
pub(crate) fn on_table(view: &View, table: &str) -> View {
    View {
        table: vec![table.to_owned()],
        ..view.clone()
    }
}

fn operation(op: Operator, operands: Vec<Filter>) -> Filter {
    Filter::Condition { op, operands }
}

fn condition(
    draw: &mut Draw<'_>,
    world: &World,
    dimensions: &[&str],
    measures: &[&str],
    depth: usize,
) -> Filter {
    if depth > 0 && draw.one_in(2) {
        let op = draw.pick(&[Operator::And, Operator::Or, Operator::Not]);
        let count = if op == Operator::Not { 1 } else { draw.below(3) };
        let parts = (0..count).map(|_| condition(draw, world, dimensions, measures, depth - 1));
        return operation(op, parts.collect());
    }
    if depth > 0 && !dimensions.is_empty() && draw.one_in(5) {
        return membership(draw, world, dimensions);
    }
    simple(draw, dimensions, measures)
}

/// Membership in the values of a subquery.
fn membership(draw: &mut Draw<'_>, world: &World, dimensions: &[&str]) -> Filter {
    let texts: Vec<&str> = dimensions
        .iter()
        .copied()
        .filter(|name| ["name", "Label", "tag"].contains(name))
        .collect();
    if texts.is_empty() {
        return operation(Operator::And, Vec::new());
    }
    let name = draw.pick(&texts);
    let measure = world
        .view
        .measures
        .iter()
        .find(|measure| measure.kind == watershed_metrics::MeasureKind::Simple);
    let measure = measure.map(|measure| measure.name.clone()).unwrap_or_default();
    let subquery = Subquery {
        dimension: draw.pick(&["name", "Label", "tag"]).to_owned(),
        measures: vec![measure.clone()],
        r#where: draw.one_in(2).then(|| simple(draw, &DIMENSIONS, &[])),
        having: draw.one_in(2).then(|| simple(draw, &[], &[&measure])),
    };
    let op = draw.pick(&[Operator::In, Operator::Nin]);
    let mut operands = vec![
        Filter::Name(name.to_owned()),
        Filter::Subquery(Box::new(subquery)),
    ];
    if draw.one_in(4) {
        operands.push(Filter::Value(Literal::Text("a".to_owned())));
    }
    operation(op, operands)
}

/// A comparison of a field with values.
fn simple(draw: &mut Draw<'_>, dimensions: &[&str], measures: &[&str]) -> Filter {
    let place = draw.below(dimensions.len() + measures.len());
    let (name, is_measure) = match dimensions.get(place) {
        // Elements are counted in more ways than other values.
        Some(_) if dimensions.contains(&"tag") && draw.one_in(5) => ("tag", false),
        Some(name) => (*name, false),
        None => (measures[place - dimensions.len()], true),
    };
    let value = |draw: &mut Draw<'_>| match name {
        _ if draw.one_in(7) => Literal::Null,
        _ if is_measure => number(draw, &["1", "0", "2.5", "-0.5", "-0.7", "1e300"]),
        "name" | "Label" | "tag" => Literal::Text(
            draw.pick(&["a", "B", "it's", "one", "none", "'; --", "b"])
                .to_owned(),
        ),
        "seats" => number(draw, &["1", "0", "2", "2.5", "-3", "-4.5", "1e30", "99999999999"]),
        "flag" => Literal::Boolean(draw.one_in(2)),
        "day" => Literal::Text(draw.pick(&["2024-03-09", "2024-03-10"]).to_owned()),
        _ => Literal::Text(
            draw.pick(&[
                "2024-03-10T05:00:00Z",
                "2024-11-03T05:00:00Z",
                "2024-03-10T07:00:00.5Z",
            ])
            .to_owned(),
        ),
    };
    let field = Filter::Name(name.to_owned());
    let orders = [
        Operator::Eq,
        Operator::Neq,
        Operator::Lt,
        Operator::Lte,
        Operator::Gt,
        Operator::Gte,
    ];
    match draw.below(4) {
        0 | 1 => {
            let op = draw.pick(&orders);
            operation(op, vec![field, Filter::Value(value(draw))])
        }
        2 => {
            let values = (0..draw.below(4)).map(|_| value(draw)).collect();
            let op = draw.pick(&[Operator::In, Operator::Nin]);
            operation(op, vec![field, Filter::Value(Literal::List(values))])
        }
        _ if ["name", "Label", "tag", "seats"].contains(&name) && !is_measure => {
            let op = draw.pick(&[Operator::Like, Operator::Ilike, Operator::Nlike, Operator::Nilike]);
            let pattern = draw.pick(&["%", "a", "b%", "_", "%'%", "", "1", "-_"]);
            operation(op, vec![field, Filter::Value(Literal::Text(pattern.to_owned()))])
        }
        _ => {
            let op = draw.pick(&orders);
            let partner = match name {
                "name" if dimensions.contains(&"Label") => "Label",
                "Label" if dimensions.contains(&"name") => "name",
                "tag" if dimensions.contains(&"name") => "name",
                other => other,
            };
            if partner == "tag" {
                return operation(op, vec![field, Filter::Value(value(draw))]);
            }
            operation(op, vec![field, Filter::Name(partner.to_owned())])
        }
    }
}

fn number(draw: &mut Draw<'_>, numbers: &[&str]) -> Literal {
    let text = draw.pick(numbers);
    Literal::Number(serde_json::from_str(text).expect("a number"))
}
