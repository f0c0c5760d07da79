//! Approval of held edits, which lose rows.

use futures::future::join_all;
use watershed_api::{Code, Problem};
use watershed_controller::resource::Target;
use watershed_controller::{Refresh, Request, RequestError};
use watershed_reconcilers::model::HELD_CODE;

use super::Instance;
use super::problem::refused;
use crate::report::names;

/// Approves the held edits of resources and the drops of those without a file. Returns the builds requested.
pub(super) async fn carry_out(
    instance: &Instance,
    typed: &[String],
) -> Result<Vec<Result<Request, RequestError>>, Problem> {
    let entries = instance.entries();
    let (mut edited, mut gone) = (Vec::new(), Vec::new());
    for name in typed {
        let entry = names::resolve_with_deleted(&entries, name)?;
        let code = entry.row.error.as_ref().map(|error| &*error.code);
        if code != Some(HELD_CODE) {
            let message = format!("{} has no edit that waits for approval", entry.row.key());
            return Err(Problem::new(Code::BadArgument, message));
        }
        match entry.row.intents.is_deleted() {
            true => gone.push(entry.row.uid),
            false => {
                instance.outputs.approve_edit(entry.row.uid.0, &entry.row.spec);
                edited.push(entry.row.uid);
            }
        }
    }
    for uid in gone {
        instance.outputs.approve_drop(uid.0);
        match instance.controller.retry(Target::Uid(uid)).await {
            // It is gone by now.
            Ok(()) | Err(RequestError::Refused(watershed_controller::Refusal::Unknown(_))) => {}
            Err(error) => return Err(refused(&error)),
        }
    }
    instance.choice.chosen.add(edited.iter().copied());
    let asked = edited
        .iter()
        .map(|uid| instance.controller.refresh(Target::Uid(*uid), Refresh::Full));
    Ok(join_all(asked).await)
}
