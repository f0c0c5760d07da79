//! Models that are not selected for a run.

use watershed_core::{Error, Outcome};
use watershed_drivers::olap::Fate;

use super::{Base, Run, known_output, wanted};
use crate::model::{
    failure, inputs,
    plan::{Again, Decision},
    record::Shape,
    statement,
};

/// Passes over a model that is not selected. Only a view over renamed objects is created again, since it could not be
/// read otherwise.
pub(super) async fn follow_names(run: &Run<'_>) -> Outcome {
    let subject = run.subject;
    let followed = async {
        if subject.spec().fault.is_some() || statement::shape(subject.spec()) != Shape::View {
            return Ok(None);
        }
        let inputs = inputs::from_refs(subject.spec(), subject.context.refs(), subject.outputs().chosen())?;
        if let Some(failed) = &inputs.failed {
            return Err(failure::failed_ref(failed));
        }
        let known_output = known_output::find(subject).await?;
        let plan = wanted::plan_now(subject, inputs, known_output.record.as_ref()).await?;
        match (
            wanted::decide(subject, &plan, &known_output).await?,
            &known_output.record,
        ) {
            (
                Decision::MakeViewAgain(again @ (Again::InputRenamed | Again::InputReplaced(_))),
                Some(record),
            ) => {
                let kept = (again == Again::InputRenamed).then_some(record.build);
                let replaced = Fate::Gone;
                let done = run.build(plan, Base::Nothing { kept, replaced }, None).await?;
                Ok(Some(done.outcome))
            }
            _ => Ok(None),
        }
    };
    match followed.await {
        Ok(done) => done.unwrap_or_else(Outcome::passed_over),
        Err(error) => {
            let error: Error = error;
            tracing::debug!(code = %error.code, "passed over, although: {}", error.message);
            Outcome::passed_over()
        }
    }
}
