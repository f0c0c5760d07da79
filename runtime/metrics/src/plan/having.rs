//! Conditions on groups, which may use any field or computed column, shown or not.

use super::filter::{self, Field, Fields};
use super::literal::Operand;
use super::side::Side;
use super::{PlanError, Planner};
use crate::query::{ComputedMeasure, Subquery};
use crate::sql::Expr;
use crate::view::{DataType, Measure, same};

impl Planner<'_> {
    /// Returns the condition on the groups of the answer, if there is one.
    pub(super) fn having(&mut self) -> Result<Option<Expr>, PlanError> {
        let Some(having) = &self.scene.query.having else {
            return Ok(None);
        };
        filter::condition(having, &mut GroupFields { planner: self }).map(Some)
    }
}

/// The names in conditions on groups: the query's dimensions and computed columns, and the view's measures.
struct GroupFields<'f, 'p> {
    planner: &'f mut Planner<'p>,
}

impl Fields for GroupFields<'_, '_> {
    fn field(&mut self, name: &str) -> Result<Field, PlanError> {
        let scene = self.planner.scene;
        let operand = |column: String, data_type, engine_type: &str| {
            Field::Value(Operand {
                value: Expr::column(column),
                data_type,
                engine_type: engine_type.to_owned(),
            })
        };
        if let Some(index) = scene.view.measure_index(name)
            && let Some(measure) = scene.view.measures.get(index)
        {
            let column = scene.names.measure(Side::Base, index);
            return Ok(operand(column, measure.data_type, compared_type(measure)));
        }
        let computed = scene
            .query
            .measures
            .iter()
            .position(|measure| same(&measure.name, name));
        if let Some(place) = computed
            && let Some(compute) = self.planner.compute(place)
        {
            let column = scene.names.computed(place);
            return Ok(match compute {
                ComputedMeasure::Count | ComputedMeasure::CountDistinct(_) => {
                    operand(column, DataType::Number, "BIGINT")
                }
                ComputedMeasure::Uri(_) => operand(column, DataType::Text, "VARCHAR"),
                ComputedMeasure::ComparisonTime(name) => {
                    let place = self.planner.cut_of(name)?;
                    let (data_type, engine_type) = self.dimension_type(place);
                    operand(column, data_type, engine_type)
                }
                ComputedMeasure::ComparisonValue(name) => {
                    let measure = scene.view.measure(name);
                    let data_type = measure.map(|found| found.data_type).unwrap_or_default();
                    let engine_type = measure.map(compared_type);
                    operand(column, data_type, engine_type.unwrap_or_default())
                }
                _ => operand(column, DataType::Number, ""),
            });
        }
        let place = self.planner.cut_of(name)?;
        let (data_type, engine_type) = self.dimension_type(place);
        Ok(operand(scene.names.dimension(place), data_type, engine_type))
    }

    fn set(&mut self, subquery: &Subquery) -> Result<(String, String), PlanError> {
        self.planner.set(subquery)
    }
}

impl GroupFields<'_, '_> {
    /// Returns the type of the query's dimension at an index; cut instants are timestamps without a zone.
    fn dimension_type(&self, place: usize) -> (DataType, &str) {
        let scene = self.planner.scene;
        let cut = scene.cuts.get(place);
        let found = cut.and_then(|cut| scene.view.dimensions.get(cut.dimension));
        match (found, cut) {
            (Some(found), Some(cut)) if cut.grain.is_some() && found.data_type == DataType::Instant => {
                (DataType::Timestamp, "TIMESTAMP")
            }
            (Some(found), _) => (found.data_type, found.engine_type.as_str()),
            (None, _) => (DataType::Other, ""),
        }
    }
}

/// Returns the engine's type of a measure for comparisons; empty if a replacement for NULL may have another type.
fn compared_type(measure: &Measure) -> &str {
    match measure.treat_nulls_as {
        None => &measure.engine_type,
        Some(_) => "",
    }
}
