//! Removal of outputs without a resource.

use std::collections::HashSet;

use tokio_util::sync::CancellationToken;
use watershed_controller::Resource;
use watershed_controller::message::Message;
use watershed_dialect::{Dialect as _, ENGINE};
use watershed_drivers::olap::{Failure, Guard};
use watershed_outputs::Outputs;
use watershed_proto::ModelSpec;

use crate::{
    messages::Proto,
    model::{self, statement},
};

/// Moves outputs to the trash whose resource the catalog does not know. `resources` are all resources, including
/// deleted ones, after a parse was applied.
///
/// An output under the name of a model that is there is left to that model, which adopts it or builds over it: after
/// the loss of a catalog all outputs are unknown, and building them again may take days.
///
/// # Errors
/// When the engine can't be opened, or refuses.
pub(super) async fn sweep(
    outputs: &Outputs,
    resources: &[Resource],
    cancel: &CancellationToken,
) -> Result<(), Failure> {
    let known = resources
        .iter()
        .map(|resource| resource.row.uid.0)
        .collect::<HashSet<_>>();
    let names = resources.iter().filter_map(wanted_table).collect::<HashSet<_>>();
    for output in outputs.list(cancel).await? {
        let claimed = known.contains(&output.tag.uid) || names.contains(&ENGINE.fold(&output.location.name));
        if !claimed {
            tracing::info!(
                table = output.location.name,
                "dropping an output that no resource stands for"
            );
            outputs.drop_output(output.tag.uid, Guard::Free, cancel).await?;
        }
    }
    Ok(())
}

/// Returns the name of a live model's output, in the engine's case; none for other resources.
fn wanted_table(resource: &Resource) -> Option<String> {
    let is_live_model = resource.row.kind.as_str() == model::KIND && !resource.row.intents.is_deleted();
    let Proto(spec) = is_live_model
        .then(|| <Proto<ModelSpec>>::decode(resource.row.spec_format, &resource.row.spec).ok())
        .flatten()?;
    Some(ENGINE.fold(statement::table(&spec, resource.row.name.as_str())))
}
