//! The rows behind groups: the base, which alone reads the table, with looked-up and unnested values added, and the
//! conditions on rows.

use std::collections::BTreeSet;

use super::clock;
use super::filter::{self, Field, Fields};
use super::literal::Operand;
use super::names::beside;
use super::side::{Cut, Side};
use super::{PlanError, Planner};
use crate::query::{Filter, Subquery};
use crate::sql::{Constant, Expr, Infix, JoinKind, Relation, Select};
use crate::view::{Lookup, Source};

/// The rows of a level before grouping.
pub(super) struct Rows {
    pub(super) relation: Relation,
    pub(super) filter: Option<Expr>,
    /// Dimensions whose list elements were unnested into an additional column.
    unnested: BTreeSet<usize>,
    /// Dimensions whose list elements that pass the filter are in an additional column.
    left: BTreeSet<usize>,
}

impl Rows {
    /// Returns the relation that the rows are read from.
    pub(super) fn relation_of(&self) -> Relation {
        self.relation.clone()
    }
}

/// The rows to be read.
pub(super) struct Wanted<'w> {
    pub(super) cuts: &'w [Cut],
    pub(super) side: Side,
    pub(super) filter: Option<&'w Filter>,
    /// Dimensions that are used besides the cuts.
    pub(super) others: BTreeSet<usize>,
}

impl Planner<'_> {
    /// Returns the base: the rows that the viewer may see. No other subquery reads the table.
    pub(super) fn base(&mut self) -> Relation {
        if let Some(name) = &self.base {
            return Relation::named(name);
        }
        let mut select = Select::all_from(Relation::Named(self.scene.view.table.clone()));
        select.filter = self.policy();
        let name = self.with("base", select);
        self.base = Some(name.clone());
        Relation::named(&name)
    }

    /// Returns the condition that visible rows meet; none if the viewer sees all rows.
    fn policy(&self) -> Option<Expr> {
        let filters = self.scene.policy.row_filters().iter();
        let filters: Vec<Expr> = filters.cloned().map(Expr::Foreign).collect();
        (!filters.is_empty()).then(|| Expr::all(filters))
    }

    /// Returns a condition that is evaluated on visible rows only and in a fixed order, whatever plan the engine
    /// chooses. A failure that depends on hidden rows would reveal them (Q18).
    fn guarded(&self, condition: Expr) -> Expr {
        match self.policy() {
            Some(policy) if condition.may_fail() => Expr::when(policy, condition.in_order(), Expr::FALSE),
            _ => condition,
        }
    }

    /// Returns the rows of a level on one side.
    pub(super) fn rows(&mut self, wanted: &Wanted<'_>) -> Result<Rows, PlanError> {
        let mut used = wanted.others.clone();
        used.extend(wanted.cuts.iter().map(|cut| cut.dimension));
        let mut named = BTreeSet::new();
        if let Some(filter) = wanted.filter {
            filter::names(filter, &mut named);
        }
        let named: BTreeSet<usize> = named
            .into_iter()
            .filter_map(|name| self.scene.view.dimension_index(name))
            .collect();
        used.extend(&named);
        let mut relation = self.looked_up(&used);
        relation = self.staged(relation, wanted.cuts);
        let lists = |planner: &Self, cuts: &[Cut]| -> BTreeSet<usize> {
            let dimensions = cuts.iter().map(|cut| cut.dimension);
            dimensions.filter(|index| planner.is_list(*index)).collect()
        };
        let mut unnested = lists(self, wanted.cuts);
        for index in &unnested {
            relation = self.unnest(relation, *index);
        }
        // A row counts once where its elements are filtered and not grouped by.
        let own = lists(self, &self.scene.cuts);
        let once: Vec<usize> = own
            .iter()
            .copied()
            .filter(|index| named.contains(index) && !unnested.contains(index))
            .collect();
        let number = beside("n", 0);
        if !once.is_empty() {
            let numbered = Select::all_from(relation).column(Expr::Rank("row_number", Vec::new()), &number);
            relation = self.nested(numbered);
            for index in &once {
                relation = self.unnest(relation, *index);
                unnested.insert(*index);
            }
        }
        // What a measure alone is grouped by is not in the query: which rows count is told of them whole (Q5).
        let filtered = unnested.intersection(&own).copied().collect();
        let filter = self.row_filter(wanted, &filtered)?;
        if once.is_empty() {
            return Ok(Rows {
                relation,
                filter,
                unnested,
                left: BTreeSet::new(),
            });
        }
        let mut select = Select {
            distinct_on: Some(Expr::column(&number)),
            filter,
            ..Select::all_from(relation)
        };
        let mut left = BTreeSet::new();
        for index in once {
            unnested.remove(&index);
            if wanted.others.contains(&index) {
                let (element, row) = (Expr::column(beside("u", index)), Expr::column(&number));
                let elements = Expr::Gathered(Box::new(element), Box::new(row));
                select = select.column(elements, beside("e", index));
                left.insert(index);
            }
        }
        Ok(Rows {
            relation: self.nested(select),
            filter: None,
            unnested,
            left,
        })
    }

    /// Returns the conditions of a time range and a filter.
    fn row_filter(
        &mut self,
        wanted: &Wanted<'_>,
        unnested: &BTreeSet<usize>,
    ) -> Result<Option<Expr>, PlanError> {
        let (mut conditions, mut before) = (Vec::new(), None);
        if let Some(span) = self.scene.span(wanted.side)
            && let Some(dimension) = self.scene.view.dimensions.get(span.dimension)
        {
            let value = self.value(span.dimension, unnested);
            let zone = self.scene.calendar.zone();
            let within = clock::within(value, dimension.data_type, span.range, zone);
            before = self.policy().map(|_| within.clone());
            conditions.push(self.guarded(within));
        }
        if let Some(filter) = wanted.filter {
            let mut fields = RowFields {
                planner: self,
                unnested,
            };
            let condition = filter::condition(filter, &mut fields)?;
            // Rows outside of the range are out before anything can fail on them.
            let condition = match before.filter(|_| Expr::may_fail(&condition)) {
                Some(within) => Expr::all(vec![within, condition]),
                None => condition,
            };
            conditions.push(self.guarded(condition));
        }
        Ok((!conditions.is_empty()).then(|| Expr::all(conditions)))
    }

    fn is_list(&self, index: usize) -> bool {
        let dimension = self.scene.view.dimensions.get(index);
        dimension.is_some_and(|dimension| dimension.unnest)
    }

    /// Adds the values of lookup tables to the columns of the base.
    fn looked_up(&mut self, used: &BTreeSet<usize>) -> Relation {
        let view = self.scene.view;
        let lookups: Vec<(usize, &Lookup)> = used
            .iter()
            .filter_map(|index| Some((*index, view.dimensions.get(*index)?.lookup.as_ref()?)))
            .collect();
        let base = self.base();
        if lookups.is_empty() {
            return base;
        }
        let mut keyed = Select::all_from(base);
        for (index, _) in &lookups {
            keyed = keyed.column(self.source(*index), beside("k", *index));
        }
        let mut relation = self.nested(keyed);
        for (index, lookup) in lookups {
            let (found, shown) = (beside("l", index), beside("v", index));
            // One row per key, so that double keys multiply nothing.
            let mut table = Select::from(Relation::Named(lookup.table.clone()))
                .column(Expr::column(&lookup.key), &found)
                .column(Expr::Call("min", vec![Expr::column(&lookup.value)]), shown);
            table.group_by = 1;
            let table = self.nested(table);
            let on = Expr::column(beside("k", index)).infix(Infix::Equal, Expr::column(found));
            relation = relation.join(JoinKind::Left, table, Some(on));
        }
        relation
    }

    /// Adds a column for times that an expression computes, since cutting uses them several times.
    fn staged(&mut self, relation: Relation, cuts: &[Cut]) -> Relation {
        let made = cuts
            .iter()
            .filter(|cut| self.is_staged(cut.dimension, cut.grain.is_some()));
        let made: BTreeSet<usize> = made.map(|cut| cut.dimension).collect();
        if made.is_empty() {
            return relation;
        }
        let mut select = Select::all_from(relation);
        for index in made {
            select = select.column(self.value(index, &BTreeSet::new()), beside("t", index));
        }
        self.nested(select)
    }

    fn is_staged(&self, index: usize, is_cut: bool) -> bool {
        let dimension = self.scene.view.dimensions.get(index);
        is_cut && dimension.is_some_and(|dimension| !matches!(dimension.source, Source::Column(_)))
    }

    fn unnest(&mut self, relation: Relation, index: usize) -> Relation {
        let elements = Expr::Call("unnest", vec![self.elements(index)]);
        let select = Select::all_from(relation).column(elements, beside("u", index));
        self.nested(select)
    }

    /// Returns the distinct elements of a list, so that a row counts once per value. An empty or missing list has a
    /// single NULL, so that the row is kept.
    pub(super) fn elements(&self, index: usize) -> Expr {
        let list = self.source(index);
        let len = Expr::Call("len", vec![list.clone()]);
        let is_filled = len
            .clone()
            .infix(Infix::Greater, Expr::Constant(Constant::Integer(0)));
        // The engine leaves NULL out of the distinct ones.
        let distinct = Expr::Call("list_distinct", vec![list.clone()]);
        let values = Expr::Call("list_count", vec![list]);
        let elements = Expr::when(
            values.infix(Infix::Less, len),
            Expr::Call("list_append", vec![distinct.clone(), Expr::NULL]),
            distinct,
        );
        Expr::when(is_filled, elements, Expr::List(vec![Expr::NULL]))
    }

    /// Returns a dimension's column, or its expression over the table's columns.
    pub(super) fn source(&self, index: usize) -> Expr {
        match self.scene.view.dimensions.get(index).map(|found| &found.source) {
            Some(Source::Column(name)) => Expr::column(name),
            Some(Source::Expression(text)) => Expr::Foreign(text.clone()),
            None => Expr::NULL,
        }
    }

    /// Returns the expression for a dimension's value in rows.
    pub(super) fn value(&self, index: usize, unnested: &BTreeSet<usize>) -> Expr {
        if unnested.contains(&index) {
            return Expr::column(beside("u", index));
        }
        let lookup = self.scene.view.dimensions.get(index);
        match lookup.and_then(|dimension| dimension.lookup.as_ref()) {
            None => self.source(index),
            Some(lookup) => {
                let shown = Expr::column(beside("v", index));
                match &lookup.default {
                    None => shown,
                    Some(default) => shown.or(Expr::Foreign(default.clone())),
                }
            }
        }
    }

    /// Returns the expression for a cut's value before it is cut.
    pub(super) fn cut_value(&self, cut: Cut, rows: &Rows) -> Expr {
        if self.is_staged(cut.dimension, cut.grain.is_some()) && !rows.unnested.contains(&cut.dimension) {
            return Expr::column(beside("t", cut.dimension));
        }
        self.value(cut.dimension, &rows.unnested)
    }

    /// Returns the expression for the number of a dimension's distinct values in a group.
    pub(super) fn count_distinct(&self, index: usize, rows: &Rows) -> Expr {
        if self.is_list(index) && !rows.unnested.contains(&index) {
            let elements = match rows.left.contains(&index) {
                true => Expr::column(beside("e", index)),
                false => self.elements(index),
            };
            let all = Expr::Call("list", vec![elements]);
            let flat = Expr::Call("flatten", vec![all]);
            let zero = Expr::Constant(Constant::Integer(0));
            return Expr::Call("list_unique", vec![flat]).or(zero);
        }
        let value = self.value(index, &rows.unnested);
        Expr::Distinct("count", Box::new(value))
    }

    /// Returns a statement as a relation with a new name.
    fn nested(&mut self, select: Select) -> Relation {
        let name = self.fresh("rows");
        Relation::Select(Box::new(select), name)
    }
}

/// The names in conditions on rows, which are dimensions.
struct RowFields<'f, 'p> {
    planner: &'f mut Planner<'p>,
    unnested: &'f BTreeSet<usize>,
}

impl Fields for RowFields<'_, '_> {
    fn field(&mut self, name: &str) -> Result<Field, PlanError> {
        let index = self.planner.scene.dimension(name)?;
        let Some(dimension) = self.planner.scene.view.dimensions.get(index) else {
            return Err(PlanError::missing("dimension", name));
        };
        let operand = |value| Operand {
            value,
            data_type: dimension.data_type,
            engine_type: dimension.engine_type.clone(),
        };
        if dimension.unnest && !self.unnested.contains(&index) {
            let parameter = beside("x", index);
            return Ok(Field::Elements {
                list: self.planner.elements(index),
                element: operand(Expr::column(&parameter)),
                parameter,
            });
        }
        Ok(Field::Value(operand(self.planner.value(index, self.unnested))))
    }

    fn set(&mut self, subquery: &Subquery) -> Result<(String, String), PlanError> {
        self.planner.set(subquery)
    }
}
