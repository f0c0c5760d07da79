//! The hands of operators: setting what is desired.

use watershed_controller::message::{DecodeError, Message};
use watershed_controller::resource::Target;
use watershed_controller::{EditError, Expect, Handle, Key, RequestError, Update};

use crate::desired::{Wanted, desired_of, with_desired};
use crate::record::record_of;
use crate::stages::{Stage, Stages};

/// The reasons for which what is desired is not set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// There is no such resource.
    #[error(transparent)]
    Unknown(#[from] RequestError),
    /// It is a part, of which its owner alone says what is desired.
    #[error("\"{part}\" is a part of \"{owner}\", which says what is desired of it")]
    Owned {
        /// The part.
        part: Key,
        /// Its owner.
        owner: Key,
    },
    /// It has no such stage.
    #[error("\"{stage}\" is none of the stages of \"{key}\"")]
    NoStage {
        /// The word.
        stage: Stage,
        /// The resource.
        key: Key,
        /// Its stages.
        stages: Stages,
    },
    /// It is no managed resource.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// The edit was refused.
    #[error(transparent)]
    Refused(#[from] EditError),
}

/// Sets the stage that is desired of a resource, in place of what an event set as well, until the next edit of what is
/// desired; returns the one before.
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
