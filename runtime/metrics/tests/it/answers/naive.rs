//! The naive evaluator: rows in memory, no SQL, the rules Q2 to Q13 read literally.

mod arithmetic;
mod columns;
mod conditions;

use std::cmp::Ordering;

use watershed_metrics::query::{Filter, Spine};
use watershed_metrics::{DataType, Grain, Query};

use arithmetic::{apply, over, simple};

use super::cell::{Cell, Clock, instant};
use super::world::{
    AT, CODE, DAY, FLAG, Frame, Function, Meaning, NAME, PRICE, Row, SEATS, SEEN, TAGS, World,
};

/// A half-open range on a dimension, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) dimension: usize,
    pub(crate) start: i64,
    pub(crate) end: i64,
}

/// A dimension with its grain.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cut {
    dimension: usize,
    grain: Option<Grain>,
}

/// A row with elements chosen for unnested dimensions: the place of each.
#[derive(Debug, Clone, PartialEq)]
struct Context<'w> {
    row: &'w Row,
    /// The row's place in the table.
    place: usize,
    element: Option<usize>,
}

/// A query with its ranges resolved, over some rows of a world.
pub(crate) struct Naive<'w> {
    pub(crate) world: &'w World,
    pub(crate) rows: Vec<&'w Row>,
    pub(crate) query: &'w Query,
    pub(crate) clock: Clock,
    pub(crate) base: Option<Span>,
    pub(crate) comparison: Option<Span>,
}

const TAG: usize = 3;

type Key = Vec<Cell>;

/// Groups of a level with their rows on each side.
struct Level<'w> {
    cuts: Vec<Cut>,
    keys: Vec<Key>,
    sides: [Vec<(Key, Vec<Context<'w>>)>; 2],
    /// The only side, for smaller groups.
    only: Option<usize>,
}

/// A column of a group's row.
enum Column {
    Dimension(usize),
    Measure(usize),
    Computed(usize),
}

impl<'w> Naive<'w> {
    /// Returns the rows of the answer, and the row of totals at its end if the query has one.
    pub(crate) fn answer(&self) -> Vec<Vec<Cell>> {
        let level = self.whole();
        let mut rows: Vec<(Key, Vec<Cell>)> = Vec::new();
        for key in &level.keys {
            if let Some(having) = &self.query.having
                && self.group_condition(having, &level, key) != Some(true)
            {
                continue;
            }
            let shown = self
                .columns()
                .iter()
                .map(|column| self.column(column, &level, key))
                .collect();
            rows.push((key.clone(), shown));
        }
        let columns = self.columns();
        let mut order: Vec<(usize, bool)> = Vec::new();
        for sort in &self.query.sort {
            let names = self.query.dimensions.iter().map(|dimension| &dimension.name);
            let mut names = names.chain(self.query.measures.iter().map(|measure| &measure.name));
            order.push((
                names.position(|name| *name == sort.name).expect("a column"),
                sort.descending,
            ));
        }
        order.extend((0..self.query.dimensions.len()).map(|place| (place, false)));
        rows.sort_by(|(_, a), (_, b)| {
            let mut orders = order
                .iter()
                .map(|(place, descending)| a[*place].sort(&b[*place], *descending));
            orders
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal)
        });
        let offset = usize::try_from(self.query.offset).expect("small");
        let limit = self
            .query
            .limit
            .map_or(usize::MAX, |limit| usize::try_from(limit).expect("small"));
        let mut rows: Vec<Vec<Cell>> = rows
            .into_iter()
            .skip(offset)
            .take(limit)
            .map(|(_, row)| row)
            .collect();
        if self.query.totals {
            let totals = self.totals();
            let row = columns.iter().map(|column| match column {
                Column::Dimension(_) => Cell::Null,
                Column::Measure(index) => self.total(&totals, *index, 0),
                Column::Computed(place) => self.computed_total(&totals, *place),
            });
            rows.push(row.collect());
        }
        rows
    }

    fn columns(&self) -> Vec<Column> {
        let dimensions = (0..self.query.dimensions.len()).map(Column::Dimension);
        let measures = self
            .query
            .measures
            .iter()
            .enumerate()
            .map(|(place, measure)| match measure.compute {
                None => Column::Measure(self.measure(&measure.name)),
                Some(_) => Column::Computed(place),
            });
        dimensions.chain(measures).collect()
    }

    fn measure(&self, name: &str) -> usize {
        let mut measures = self.world.view.measures.iter();
        measures
            .position(|measure| measure.name == name)
            .expect("a measure")
    }

    fn dimension(&self, name: &str) -> usize {
        let mut dimensions = self.world.view.dimensions.iter();
        dimensions
            .position(|dimension| dimension.name == name)
            .expect("a dimension")
    }

    fn cuts(&self) -> Vec<Cut> {
        let dimensions = self.query.dimensions.iter();
        dimensions
            .map(|dimension| Cut {
                dimension: self.dimension(&dimension.of),
                grain: dimension.grain,
            })
            .collect()
    }

    fn has_tag(&self) -> bool {
        self.cuts().iter().any(|cut| cut.dimension == TAG)
    }

    fn elements(row: &Row) -> Vec<Cell> {
        match &row[TAGS] {
            // An element that a list holds twice counts its row once.
            Cell::List(items) if !items.is_empty() => {
                let mut once: Vec<Cell> = Vec::new();
                for item in items {
                    if !once.contains(item) {
                        once.push(item.clone());
                    }
                }
                once
            }
            _ => vec![Cell::Null],
        }
    }

    /// Q2: a dimension's value.
    fn value(&self, context: &Context<'_>, dimension: usize) -> Cell {
        let row = context.row;
        match dimension {
            0 => row[NAME].clone(),
            1 => self.label(row),
            2 => row[SEATS].clone(),
            TAG => Self::elements(row)[context.element.expect("an element")].clone(),
            4 => row[FLAG].clone(),
            5 => row[AT].clone(),
            6 => row[SEEN].clone(),
            7 => row[DAY].clone(),
            _ => match &row[AT] {
                Cell::Time(micros) => Cell::Time(micros + 90 * 60_000_000),
                _ => Cell::Null,
            },
        }
    }

    /// Q2: the smallest value of a key; without one the default.
    fn label(&self, row: &Row) -> Cell {
        let found = self
            .world
            .translations
            .iter()
            .filter(|(key, _)| !key.is_null() && *key == row[CODE]);
        let labels = found.map(|(_, label)| label).filter(|label| !label.is_null());
        let smallest = labels.min_by(|a, b| a.sort(b, false));
        let default = || match self.world.view.dimensions[1]
            .lookup
            .as_ref()
            .and_then(|lookup| lookup.default.clone())
        {
            None => Cell::Null,
            Some(text) if text.starts_with('\'') => Cell::text("none"),
            Some(_) => row[NAME].clone(),
        };
        smallest.cloned().unwrap_or_else(default)
    }

    fn micros(&self, cell: &Cell) -> Option<i64> {
        match cell {
            Cell::Time(micros) => Some(*micros),
            Cell::Day(date) => Some(self.clock.beginning(*date)),
            _ => None,
        }
    }

    /// The rows that a side counts, by the query's own dimensions.
    fn counted(&self, side: usize, filter: Option<&Filter>, tagged: bool) -> Vec<Context<'w>> {
        let span = [self.base, self.comparison][side];
        let mut found = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            let elements: Vec<Option<usize>> = match tagged {
                true => (0..Self::elements(row).len()).map(Some).collect(),
                false => vec![None],
            };
            for element in elements {
                let context = Context { row, place, element };
                let within = span.is_none_or(|span| {
                    let time = self.micros(&self.value(&context, span.dimension));
                    time.is_some_and(|time| span.start <= time && time < span.end)
                });
                if within && filter.is_none_or(|filter| self.row_condition(filter, &context) == Some(true)) {
                    found.push(context);
                }
            }
        }
        found
    }

    fn cell(&self, context: &Context<'_>, cut: Cut) -> Cell {
        let value = self.value(context, cut.dimension);
        match (cut.grain, &value) {
            (Some(grain), Cell::Time(micros)) => Cell::Time(self.clock.bucket(*micros, grain)),
            (Some(grain), Cell::Day(date)) => Cell::Day(self.clock.first_date(*date, grain)),
            _ => value,
        }
    }

    /// Adds the elements of a dimension that is not among the query's.
    fn expanded(&self, contexts: Vec<Context<'w>>, cuts: &[Cut]) -> Vec<Context<'w>> {
        if !cuts.iter().any(|cut| cut.dimension == TAG) {
            return contexts;
        }
        let mut found = Vec::new();
        for context in contexts {
            match context.element {
                Some(_) => found.push(context),
                None => found.extend(self.each_element(&context)),
            }
        }
        found
    }

    /// Q5: the elements of a row that counts as a whole: those that the filter leaves where they are in the query, else all.
    fn each_element(&self, context: &Context<'w>) -> Vec<Context<'w>> {
        let filter = self.query.r#where.as_ref().filter(|_| self.has_tag());
        (0..Self::elements(context.row).len())
            .map(|element| Context {
                element: Some(element),
                ..context.clone()
            })
            .filter(|context| filter.is_none_or(|filter| self.row_condition(filter, context) == Some(true)))
            .collect()
    }

    fn grouped(&self, contexts: Vec<Context<'w>>, cuts: &[Cut]) -> Vec<(Key, Vec<Context<'w>>)> {
        let mut groups: Vec<(Key, Vec<Context<'w>>)> = Vec::new();
        if cuts.is_empty() {
            groups.push((Vec::new(), Vec::new()));
        }
        for context in self.expanded(contexts, cuts) {
            let key: Key = cuts.iter().map(|cut| self.cell(&context, *cut)).collect();
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, members)) => members.push(context),
                None => groups.push((key, vec![context])),
            }
        }
        groups
    }

    /// Q8: buckets pair by position; partners beyond the base's last are left out.
    fn paired(&self, cut: Cut, cell: &Cell) -> Option<Cell> {
        let (Some(base), Some(comparison), Some(grain)) = (self.base, self.comparison, cut.grain) else {
            return Some(cell.clone());
        };
        if base.dimension != cut.dimension || comparison.dimension != cut.dimension {
            return Some(cell.clone());
        }
        let own = self.buckets(cut, comparison, grain);
        let place = own.iter().position(|bucket| bucket == cell)?;
        self.buckets(cut, base, grain).get(place).cloned()
    }

    fn buckets(&self, cut: Cut, span: Span, grain: Grain) -> Vec<Cell> {
        let found = self.clock.buckets(span.start, span.end, grain);
        let is_day = self.world.view.dimensions[cut.dimension].data_type == DataType::Date;
        let date = |micros: &i64| self.clock.zone.to_datetime(instant(*micros)).date();
        match is_day {
            true => found.iter().map(|micros| Cell::Day(date(micros))).collect(),
            false => found.into_iter().map(Cell::Time).collect(),
        }
    }

    fn whole(&self) -> Level<'w> {
        self.level_of(self.cuts(), self.has_tag())
    }

    fn level_of(&self, cuts: Vec<Cut>, tagged: bool) -> Level<'w> {
        let filter = self.query.r#where.as_ref();
        let base = self.grouped(self.counted(0, filter, tagged), &cuts);
        let mut keys: Vec<Key> = base.iter().map(|(key, _)| key.clone()).collect();
        let mut comparison = Vec::new();
        if self.comparison.is_some() {
            for (key, members) in self.grouped(self.counted(1, filter, tagged), &cuts) {
                let pairs = cuts.iter().zip(&key).map(|(cut, cell)| self.paired(*cut, cell));
                let Some(key) = pairs.collect::<Option<Key>>() else {
                    continue;
                };
                if !keys.contains(&key) {
                    keys.push(key.clone());
                }
                comparison.push((key, members));
            }
        }
        match &self.query.spine {
            _ if cuts.is_empty() => {}
            None => {}
            Some(Spine::Time) => self.fill(&mut keys, &cuts),
            Some(Spine::Where(filter)) => {
                for (key, _) in self.grouped(self.counted(0, Some(filter), tagged), &cuts) {
                    if !keys.contains(&key) {
                        keys.push(key);
                    }
                }
            }
        }
        Level {
            cuts,
            keys,
            sides: [base, comparison],
            only: None,
        }
    }

    /// Q10: for each combination of the other dimensions found, every bucket of the range.
    fn fill(&self, keys: &mut Vec<Key>, cuts: &[Cut]) {
        let span = self.base.expect("a range");
        let is_time = |cut: &Cut| cut.grain.is_some() && cut.dimension == span.dimension;
        let place = cuts.iter().position(is_time).expect("a time");
        let buckets = self.buckets(cuts[place], span, cuts[place].grain.expect("a grain"));
        let mut others: Vec<Key> = Vec::new();
        for key in keys.iter() {
            let mut other = key.clone();
            other[place] = Cell::Null;
            if !others.contains(&other) {
                others.push(other);
            }
        }
        if cuts.len() == 1 {
            others = vec![vec![Cell::Null]];
        }
        for mut key in others {
            for bucket in &buckets {
                key[place] = bucket.clone();
                if !keys.contains(&key) {
                    keys.push(key.clone());
                }
            }
        }
    }

    /// Q3, Q4: the value of a measure in a group on a side.
    fn of(&self, level: &Level<'w>, key: &Key, side: usize, index: usize) -> Cell {
        let measure = &self.world.view.measures[index];
        let value = match &self.world.meanings[index] {
            Meaning::Simple(aggregate) => match level.members(key, side) {
                Some(members) => simple(*aggregate, members),
                None => Cell::Null,
            },
            Meaning::Derived(operation, a, b) => apply(
                *operation,
                &self.of(level, key, side, *a),
                &self.of(level, key, side, *b),
            ),
            Meaning::Compared(..) if side == 1 => Cell::Null,
            Meaning::Compared(operation, a, b) => apply(
                *operation,
                &self.of(level, key, 0, *a),
                &self.of(level, key, 1, *b),
            ),
            Meaning::Per(function, a) => self.per(level, key, side, index, *function, *a),
            Meaning::Window(function, a, frame) => {
                self.window(level, key, side, index, (*function, *a, *frame))
            }
        };
        let value = match value {
            Cell::Number(number) if !number.is_finite() => Cell::Null,
            value => value,
        };
        match (&value, &measure.treat_nulls_as) {
            (Cell::Null, Some(_)) => Cell::Number(-0.5),
            _ => value,
        }
    }

    /// Q3: the required one by the level's dimensions and those of `per`, then aggregated.
    fn per(
        &self,
        level: &Level<'w>,
        key: &Key,
        side: usize,
        index: usize,
        function: Function,
        of: usize,
    ) -> Cell {
        let Some(_) = level.members(key, side) else {
            return Cell::Null;
        };
        let mut cuts = level.cuts.clone();
        for selector in &self.world.view.measures[index].per {
            let cut = Cut {
                dimension: self.dimension(&selector.name),
                grain: selector.grain,
            };
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
        let all: Vec<Context<'w>> = level.sides[side]
            .iter()
            .flat_map(|(_, members)| members.iter().cloned())
            .collect();
        let groups = self.grouped(all, &cuts);
        let mut sides = [Vec::new(), Vec::new()];
        let keys: Vec<Key> = groups.iter().map(|(key, _)| key.clone()).collect();
        sides[side] = groups;
        let inner = Level {
            cuts,
            keys,
            sides,
            only: Some(side),
        };
        let width = level.cuts.len();
        let belongs = |inner_key: &&Key| {
            let own =
                level
                    .cuts
                    .iter()
                    .zip(&inner_key[..width])
                    .map(|(cut, cell)| match (side, level.only) {
                        (1, None) => self.paired(*cut, cell),
                        _ => Some(cell.clone()),
                    });
            own.collect::<Option<Key>>().as_ref() == Some(key)
        };
        let values = inner
            .keys
            .iter()
            .filter(belongs)
            .map(|key| self.of(&inner, key, side, of));
        over(function, &values.collect::<Vec<_>>())
    }

    /// Q3: over the query's groups, in the order of the window.
    fn window(
        &self,
        level: &Level<'w>,
        key: &Key,
        side: usize,
        index: usize,
        meaning: (Function, usize, Frame),
    ) -> Cell {
        let (function, of, frame) = meaning;
        let measure = &self.world.view.measures[index];
        let window = measure.window.as_ref().expect("a window");
        // A time without a grain is meant however it is cut, be it in several ways.
        let ordering: Vec<usize> = match measure.order.first() {
            None => Vec::new(),
            Some(selector) => {
                let dimension = self.dimension(&selector.name);
                let is_meant = |cut: &Cut| {
                    cut.dimension == dimension && (selector.grain.is_none() || cut.grain == selector.grain)
                };
                let places = level.cuts.iter().enumerate().filter(|(_, cut)| is_meant(cut));
                places.map(|(place, _)| place).collect()
            }
        };
        assert!(
            ordering.is_empty() == measure.order.is_empty(),
            "the order's dimension is among the level's"
        );
        let mut members: Vec<&Key> = level
            .keys
            .iter()
            .filter(|other| {
                let mut places = 0..level.cuts.len();
                !window.partition
                    || places.all(|place| ordering.contains(&place) || other[place] == key[place])
            })
            .collect();
        if !ordering.is_empty() {
            let order = |a: &Key, b: &Key| {
                let mut orders = ordering.iter().map(|place| a[*place].sort(&b[*place], false));
                orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            };
            members.sort_by(|a, b| order(a, b));
            members.retain(|other| order(other, key) != Ordering::Greater);
            if frame == Frame::TwoRows {
                members = members.split_off(members.len().saturating_sub(2));
            }
        }
        let values: Vec<Cell> = members
            .into_iter()
            .map(|key| self.of(level, key, side, of))
            .collect();
        over(function, &values)
    }

    /// Q13: the rows themselves: the dimensions, then the table's other columns.
    pub(crate) fn raw(&self) -> Vec<Vec<Cell>> {
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        for context in self.counted(0, self.query.r#where.as_ref(), false) {
            let dimensions = (0..self.world.view.dimensions.len()).map(|dimension| match dimension {
                TAG => context.row[TAGS].clone(),
                _ => self.value(&context, dimension),
            });
            let shown: Vec<Cell> = dimensions.collect();
            let others = [CODE, PRICE].map(|column| context.row[column].clone());
            rows.push(shown.into_iter().chain(others).collect());
        }
        rows
    }
}

impl<'w> Level<'w> {
    fn members(&self, key: &Key, side: usize) -> Option<&Vec<Context<'w>>> {
        let mut groups = self.sides[side].iter();
        groups.find(|(other, _)| other == key).map(|(_, members)| members)
    }
}
