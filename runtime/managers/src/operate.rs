//! The operations for operators: changes of the desired stage.

use watershed_controller::message::{DecodeError, Message};
use watershed_controller::resource::Target;
use watershed_controller::{EditError, Expect, Handle, Key, RequestError, Update};

use crate::desired::{Wanted, desired_of, with_desired};
use crate::record::record_of;
use crate::stages::{Stage, Stages};

/// The reason why the desired stage could not be set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The resource does not exist.
    #[error(transparent)]
    Unknown(#[from] RequestError),
    /// The resource is a part, so only its owner sets the desired stage.
    #[error("\"{part}\" is a part of \"{owner}\", which says what is desired of it")]
    Owned {
        /// The part whose stage was to be set.
        part: Key,
        /// The resource that owns the part.
        owner: Key,
    },
    /// The resource has no such stage.
    #[error("\"{stage}\" is none of the stages of \"{key}\"")]
    NoStage {
        /// The stage that was to be set.
        stage: Stage,
        /// The resource whose stage was to be set.
        key: Key,
        /// The stages that the resource has.
        stages: Stages,
    },
    /// The resource is not a managed one.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// The controller refused the edit.
    #[error(transparent)]
    Refused(#[from] EditError),
}

/// Sets the desired stage of a resource until the next edit, and ends the effect of earlier events on it. Returns the
/// stage desired before.
///
/// # Errors
/// [`SetError::Owned`] for a part of a managed resource, and as its other variants say.
pub async fn set_desired(handle: &Handle, key: Key, stage: Stage) -> Result<Stage, SetError> {
    let found = handle.get(Target::Key(key.clone()))?;
    let owner = found.row.owner.and_then(|owner| handle.get(owner).ok());
    // Owners of other kinds have declared it, and leave it to itself.
    if let Some(owner) = owner.filter(|owner| desired_of(&owner.row.spec).is_ok()) {
        return Err(SetError::Owned {
            part: key,
            owner: owner.key(),
        });
    }
    let mut desired = desired_of(&found.row.spec)?;
    let record = found.row.state.as_deref().map(record_of).transpose()?;
    let mut before = desired.stage.clone();
    if let Some(record) = record {
        if record.stages.index(&stage).is_none() {
            return Err(SetError::NoStage {
                stage,
                key,
                stages: record.stages,
            });
        }
        before = record.desired(&desired).clone();
    }
    desired.set(stage);
    let update = Update {
        spec: Some((
            with_desired(&found.row.spec, desired)?.into(),
            Wanted::<()>::FORMAT,
        )),
        ..Update::default()
    };
    let expect = Expect {
        uid: Some(found.row.uid),
        spec_version: Some(found.row.spec_version),
    };
    handle.update(found.row.uid, update).expecting(expect).await?;
    Ok(before)
}
