//! The decision whether and how a model is built, as a pure function.
//!
//! [`plan`] compares what is *wanted* (the spec by its meaning, the builds that its inputs stand for, the local
//! files, the refreshes asked for) with what was *found* (the record that the engine keeps beside the output,
//! and the object that carries the output's tag). It reads no clock, no file and no engine, so every rule of
//! "built only if inputs changed" is one line here and one test beside it:
//!
//! 1. An input stands for its build, not for its name: a table is not rebuilt because something upstream was
//!    renamed. A view holds names, so it is made again then, and keeps its build id.
//! 2. A local file is the one that was read if modification time and size are; else its content decides.
//! 3. An output that was dropped, or replaced by something that does not carry its build, is built again.
//! 4. A refresh is answered by the build that recorded its counter.
//! 5. A change of the fingerprint's version alone builds nothing: the recorded text, fingerprinted anew, is
//!    compared instead.
//! 6. What migrations and connectors left in the engine is an input by its version, as an input by its build.
//! 7. An output of a lost catalog is adopted if it is what would be built now, else built over.
//! 8. Rows of an incremental model are added to: what else would build it again has it take new rows. Only what makes
//!    its rows wrong (another definition, a full refresh) throws them away, and what protects them holds that back.
//! 9. A build whose statements afterwards failed, or were cut off, is made again.
//! 10. While something that it reads has failed, its own edit alone is a reason to build. What was built so is built again
//!     when that is mended and stands for another build, whatever its triggers.
//! 11. A store of objects that was asked for a refresh or a schedule answers it: nothing is built unless its objects are
//!     others than those that were read.
//! 12. What else is no reason to build is left out by the model's [`Triggers`]. A view is made again all the same when
//!     what it names has changed.
//! 13. An output in another place than that which models are built in now is made there, but for rows that are protected:
//!     they stay where they are, and a person says whether what can be built without them will do.
//! 14. A view over other rows than before stands for another build. It is left as it is where what it reads has the columns
//!     that it had, for the engine binds it whenever it is read.

use std::collections::BTreeMap;

use watershed_drivers::files::FileNow;
use watershed_outputs::traces::Version;

use super::record::{BuildId, FileSeen, Input, Meaning, Record, Refreshes, Shape};

/// The wanted output of a model, with the inputs as they are now.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The name of the output in the engine.
    pub table: &'a str,
    /// The shape of the output: a view or a table.
    pub shape: Shape,
    /// The fingerprint of the definition, with inputs as ordinals.
    pub meaning: &'a Meaning,
    /// The inputs of the refs, in the order of their ordinals.
    pub inputs: &'a [Input],
    /// The local files that the definition reads, sorted by path.
    pub files: &'a [FileNow],
    /// The versions of objects of migrations and connectors that the model reads, by name.
    pub made: &'a BTreeMap<String, Version>,
    /// The number of refreshes that were requested so far.
    pub asked: Refreshes,
    /// The other reasons to build the model again.
    pub triggers: Triggers,
    /// True if builds add to existing rows.
    pub incremental: bool,
    /// The effect of a changed definition on existing rows.
    pub on_edit: OnEdit,
    /// True if existing rows may only be lost if a person approves.
    pub protected: bool,
    /// True if partitions failed in the last build.
    pub left: bool,
    /// True if all rows come from object stores that were just asked for changes, or from a database that reports no
    /// change.
    pub asked_store: bool,
    /// True if building only hands the engine a text that never varies.
    pub text_alone: bool,
}

/// The reasons, apart from an edit, for which a model is built again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Triggers {
    /// True if new builds of inputs count.
    pub inputs: bool,
    /// True if changed contents of local files count.
    pub files: bool,
    /// True if the schedule is due.
    pub due: bool,
}

impl Triggers {
    /// No reason to build again.
    pub const NONE: Self = Self {
        inputs: false,
        files: false,
        due: false,
    };
}

/// The effect of a changed definition on existing rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnEdit {
    /// All rows are built again.
    Reset,
    /// Rows stay, and the edit waits until a full refresh is requested.
    Hold,
    /// Rows stay, and later builds use the new definition.
    Keep,
}

/// The record and the object that a model has at present.
#[derive(Debug, Clone, Copy)]
pub enum ExistingOutput<'a> {
    /// There is neither a record nor an object.
    Nothing,
    /// The output belongs to this resource.
    Own(Output<'a>),
    /// The output has this name, but was made under an earlier catalog that was lost.
    Orphan(Output<'a>),
}

/// An output with its record and its object in the engine.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The record that the engine wrote in the transaction of the build.
    pub record: &'a Record,
    /// The recorded definition's fingerprint by the current version; needed only if the versions differ.
    pub refingerprinted: Option<&'a Meaning>,
    /// The object in the engine that carries the output's tag.
    pub object: Object<'a>,
}

/// The tagged object of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    /// No object carries the tag any more.
    Missing,
    /// The object was made in another place, which is not the engine's any more; none stands in the present one.
    Elsewhere,
    /// An object carries the tag.
    Present {
        /// The name of the object.
        table: &'a str,
        /// The shape of the object: a view or a table.
        shape: Shape,
        /// The build that the object's tag names.
        build: BuildId,
    },
}

/// The action that a plan chooses for an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Build the output, in place of an existing one.
    Build(BuildReason),
    /// Add new rows to the output.
    Add(BuildReason),
    /// Leave the output as it is until a person approves the effect on its rows.
    Hold(BuildReason),
    /// Adopt the changed definition and leave the rows as they are.
    Accept,
    /// Count the request for new rows as answered, since there are none.
    Unchanged,
    /// Create a view again whose definition is unchanged, since an object that it names has changed.
    MakeViewAgain(Again),
    /// Leave a view as it is, though a rebuilt input (by ordinal) gives it other rows.
    Follow(usize),
    /// Take over the output of a lost catalog unchanged.
    Adopt,
    /// Rename the output to the wanted name.
    Rename {
        /// The present name of the output.
        from: String,
    },
    /// Do nothing, as the output is up to date.
    Nothing,
}

/// The reason why an output is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildReason {
    /// There is no output yet.
    NeverBuilt,
    /// The output was dropped by hand.
    Dropped,
    /// The output stands in another place than that which models are built in now.
    Moved,
    /// The output was replaced by hand.
    Replaced,
    /// A plain refresh was requested.
    Refresh,
    /// A full refresh was requested.
    FullRefresh,
    /// The model is due by its schedule.
    Scheduled,
    /// The output changes from a view to a table, or back.
    ShapeChanged,
    /// The definition of the model changed in meaning.
    DefinitionChanged,
    /// An input was built again; holds its ordinal.
    InputChanged(usize),
    /// A local file was changed, added or removed; holds its path.
    FileChanged(String),
    /// An object of a migration or a connector changed; holds its name.
    MadeChanged(String),
    /// Partitions failed in the last build.
    PartitionsLeft,
    /// The statements after the last build failed, or did not run.
    Unfinished,
}

/// The reason why a view is created again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// An input was renamed; the view keeps its build id.
    InputRenamed,
    /// An input was built again and may have other columns; the build id is derived again. Holds the input's ordinal.
    InputChanged(usize),
    /// An input was built again and renamed; the build id is derived again. Holds the input's ordinal.
    InputReplaced(usize),
    /// An object of a migration or a connector changed and may have other columns; the build id is derived again.
    MadeChanged,
}

/// The time in nanoseconds during which a file can change again without a new modification time: two seconds, the
/// coarsest resolution of file systems in use.
pub(super) const CLOCK_GRAIN_NS: i64 = 2_000_000_000;

/// The prefix of a recorded path that stands for a list of partition files; the pattern follows.
pub(super) const LIST: &str = "glob:";

/// Returns true if a recorded path is the address of an object in a store, whose version stands for its content.
pub(super) fn is_address(path: &str) -> bool {
    path.contains("://")
}

/// Returns true if a recorded path stands for a list of files.
pub(super) fn is_list(path: &str) -> bool {
    path.starts_with(LIST)
}

/// Decides what to do with a model's output.
#[must_use]
pub fn plan(wanted: &Wanted<'_>, found: &ExistingOutput<'_>) -> Decision {
    match found {
        ExistingOutput::Nothing => Decision::Build(BuildReason::NeverBuilt),
        ExistingOutput::Own(output) => plan_own(wanted, output),
        ExistingOutput::Orphan(output) => match plan_orphan(wanted, output) {
            None => Decision::Adopt,
            // Its rows may be all that is left of what it read.
            Some(reason) if is_reset(&reason) && wanted.on_edit == OnEdit::Hold => Decision::Hold(reason),
            Some(
                BuildReason::FileChanged(_) | BuildReason::MadeChanged(_) | BuildReason::InputChanged(_),
            ) if wanted.incremental => Decision::Adopt,
            Some(reason) => Decision::Build(reason),
        },
    }
}

/// Returns true if a decision results from an edit of the model itself; only such decisions are carried out while a ref
/// has failed.
#[must_use]
pub fn is_for_edit(decision: &Decision) -> bool {
    use BuildReason::{DefinitionChanged, NeverBuilt, ShapeChanged};
    matches!(
        decision,
        Decision::Build(NeverBuilt | DefinitionChanged | ShapeChanged)
    )
}

fn plan_own(wanted: &Wanted<'_>, output: &Output<'_>) -> Decision {
    let record = output.record;
    let follows_inputs = wanted.triggers.inputs || record.stale_input;
    let is_approved = wanted.asked.full != record.answered.full;
    match object_changed(output) {
        Some(BuildReason::Moved) if wanted.protected && !is_approved => {
            return Decision::Hold(BuildReason::Moved);
        }
        Some(reason) => return Decision::Build(reason),
        None => {}
    }
    if is_approved {
        return Decision::Build(BuildReason::FullRefresh);
    }
    let edit = definition_changed(wanted, output);
    let refresh = wanted.asked.plain != record.answered.plain;
    match (&edit, wanted.on_edit) {
        (Some(reason), OnEdit::Hold) => return Decision::Hold(reason.clone()),
        (Some(_), OnEdit::Reset) if refresh => return Decision::Build(BuildReason::Refresh),
        (Some(reason), OnEdit::Reset) | (Some(reason @ BuildReason::ShapeChanged), _) => {
            return Decision::Build(reason.clone());
        }
        (Some(_), OnEdit::Keep) | (None, _) => {}
    }
    if wanted.asked_store && (refresh || wanted.triggers.due) {
        return match file_changed(wanted, record) {
            Some(reason) => again(wanted, reason),
            None if edit.is_none() => Decision::Unchanged,
            None => again(wanted, BuildReason::Refresh),
        };
    }
    if refresh {
        return again(wanted, BuildReason::Refresh);
    }
    if wanted.triggers.due {
        return again(wanted, BuildReason::Scheduled);
    }
    if let Some(reason) = file_changed(wanted, record).filter(|_| wanted.triggers.files) {
        return again(wanted, reason);
    }
    match (wanted.shape, made_changed(wanted, record)) {
        (Shape::Table, Some(name)) if follows_inputs => {
            return again(wanted, BuildReason::MadeChanged(name));
        }
        (Shape::View, Some(_)) => return Decision::MakeViewAgain(Again::MadeChanged),
        (Shape::View | Shape::Table, _) => {}
    }
    match (wanted.shape, input_changed(wanted, record)) {
        (Shape::Table, Some(ordinal)) if follows_inputs => {
            return again(wanted, BuildReason::InputChanged(ordinal));
        }
        (Shape::View, Some(ordinal)) => {
            return match input_renamed(wanted, record) {
                true => Decision::MakeViewAgain(Again::InputReplaced(ordinal)),
                false if edit.is_none() && fits_as_it_stands(wanted, output) => Decision::Follow(ordinal),
                false => Decision::MakeViewAgain(Again::InputChanged(ordinal)),
            };
        }
        (Shape::View, None) if input_renamed(wanted, record) => {
            return Decision::MakeViewAgain(Again::InputRenamed);
        }
        (Shape::View | Shape::Table, _) => {}
    }
    if record.unfinished {
        return again(wanted, BuildReason::Unfinished);
    }
    if wanted.left && wanted.incremental {
        return again(wanted, BuildReason::PartitionsLeft);
    }
    match output.object {
        Object::Present { table, .. } if table != wanted.table => Decision::Rename {
            from: table.to_owned(),
        },
        _ if edit.is_some() => Decision::Accept,
        _ => Decision::Nothing,
    }
}

/// Returns true if a view whose input was built again would not change if it was created again.
fn fits_as_it_stands(wanted: &Wanted<'_>, output: &Output<'_>) -> bool {
    let record = output.record;
    let reads_files = !(wanted.files.is_empty() && record.files.is_empty());
    let has_its_name = matches!(output.object, Object::Present { table, .. } if table == wanted.table);
    wanted.text_alone && has_its_name && !reads_files && have_same_columns(&record.inputs, wanted.inputs)
}

/// Returns true if all inputs are known to have the same columns as before.
fn have_same_columns(then: &[Input], now: &[Input]) -> bool {
    let same = |(then, now): (&Input, &Input)| now.columns.is_some() && then.columns == now.columns;
    then.len() == now.len() && then.iter().zip(now).all(same)
}

/// Returns the decision to build again for a reason that leaves existing rows valid.
fn again(wanted: &Wanted<'_>, reason: BuildReason) -> Decision {
    if wanted.incremental {
        Decision::Add(reason)
    } else {
        Decision::Build(reason)
    }
}

/// Returns the reason why the output of a lost catalog is not what would be built now, if there is one. Its refresh
/// counters are ignored.
fn plan_orphan(wanted: &Wanted<'_>, output: &Output<'_>) -> Option<BuildReason> {
    object_changed(output)
        .or_else(|| definition_changed(wanted, output))
        .or_else(|| file_changed(wanted, output.record))
        .or_else(|| made_changed(wanted, output.record).map(BuildReason::MadeChanged))
        .or_else(|| input_changed(wanted, output.record).map(BuildReason::InputChanged))
        .or_else(|| {
            let stale = wanted.shape == Shape::View && input_renamed(wanted, output.record);
            stale.then_some(BuildReason::DefinitionChanged)
        })
        .or_else(|| match output.object {
            Object::Present { table, .. } if table == wanted.table => None,
            _ => Some(BuildReason::NeverBuilt),
        })
}

/// Returns true if a reason means that the definition changed.
fn is_reset(reason: &BuildReason) -> bool {
    matches!(reason, BuildReason::DefinitionChanged | BuildReason::ShapeChanged)
}

fn object_changed(output: &Output<'_>) -> Option<BuildReason> {
    match output.object {
        Object::Missing => Some(BuildReason::Dropped),
        Object::Elsewhere => Some(BuildReason::Moved),
        Object::Present { shape, build, .. } => {
            let same = shape == output.record.shape && build == output.record.tagged;
            (!same).then_some(BuildReason::Replaced)
        }
    }
}

fn definition_changed(wanted: &Wanted<'_>, output: &Output<'_>) -> Option<BuildReason> {
    if wanted.shape != output.record.shape {
        return Some(BuildReason::ShapeChanged);
    }
    let recorded = if output.record.meaning.version == wanted.meaning.version {
        Some(&output.record.meaning)
    } else {
        output.refingerprinted
    };
    (recorded != Some(wanted.meaning)).then_some(BuildReason::DefinitionChanged)
}

/// Returns the ordinal of the first input with another build than recorded.
fn input_changed(wanted: &Wanted<'_>, record: &Record) -> Option<usize> {
    let pairs = wanted.inputs.iter().zip(&record.inputs);
    let changed = pairs.into_iter().position(|(now, then)| now.build != then.build);
    let shorter = wanted.inputs.len().min(record.inputs.len());
    changed.or_else(|| (wanted.inputs.len() != record.inputs.len()).then_some(shorter))
}

/// Returns the first object of a migration or a connector that was changed, added or removed.
fn made_changed(wanted: &Wanted<'_>, record: &Record) -> Option<String> {
    let then = &record.made.inputs;
    let came = wanted
        .made
        .iter()
        .find(|(name, version)| then.get(*name) != Some(version));
    let name = came
        .map(|(name, _)| name)
        .or_else(|| then.keys().find(|name| !wanted.made.contains_key(*name)));
    name.cloned()
}

fn input_renamed(wanted: &Wanted<'_>, record: &Record) -> bool {
    let mut pairs = wanted.inputs.iter().zip(&record.inputs);
    pairs.any(|(now, then)| now.table != then.table)
}

fn file_changed(wanted: &Wanted<'_>, record: &Record) -> Option<BuildReason> {
    let changed = first_difference(&record.files, wanted.files)?;
    Some(BuildReason::FileChanged(changed.to_owned()))
}

/// Returns the path of the first file that was added, removed or has other content; both lists are sorted by path.
fn first_difference<'a>(then: &'a [FileSeen], now: &'a [FileNow]) -> Option<&'a str> {
    for (then, now) in then.iter().zip(now) {
        if then.path != now.path {
            return Some(then.path.as_str().min(now.path.as_str()));
        }
        let proven = is_proven(then, now);
        if !proven && (then.content.is_none() || then.content != now.content) {
            return Some(&now.path);
        }
    }
    let common = then.len().min(now.len());
    let rest = then.get(common).map(|file| file.path.as_str());
    rest.or_else(|| now.get(common).map(|file| file.path.as_str()))
}

/// Returns the indices in `now` of files that modification time and size don't prove unchanged. Their content must be
/// hashed before [`plan`] is called.
#[must_use]
pub fn unproven(then: &[FileSeen], now: &[FileNow]) -> Vec<usize> {
    let same_paths = then.len() == now.len() && then.iter().zip(now).all(|(then, now)| then.path == now.path);
    if !same_paths {
        // The set of files changed: that is a build, whatever they hold.
        return Vec::new();
    }
    let pairs = then.iter().zip(now).enumerate();
    pairs
        .filter(|(_, (then, now))| now.content.is_none() && !is_proven(then, now))
        .map(|(index, _)| index)
        .collect()
}

fn is_proven(then: &FileSeen, now: &FileNow) -> bool {
    let same = then.modified_ns == now.modified_ns && then.size == now.size && !is_address(&now.path);
    let settled = then.modified_ns.saturating_add(CLOCK_GRAIN_NS) < then.seen_at_ns;
    same && settled && then.content.is_some()
}

impl std::fmt::Display for BuildReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NeverBuilt => f.write_str("it was never built"),
            Self::Dropped => f.write_str("its output was dropped"),
            Self::Moved => f.write_str("models are built in another place than before"),
            Self::Replaced => f.write_str("its output was replaced"),
            Self::Refresh => f.write_str("a refresh was asked for"),
            Self::FullRefresh => f.write_str("a full refresh was asked for"),
            Self::Scheduled => f.write_str("its schedule is due"),
            Self::ShapeChanged => f.write_str("it changed between view and table"),
            Self::DefinitionChanged => f.write_str("its definition changed"),
            Self::InputChanged(ordinal) => write!(f, "its input {} was built again", ordinal + 1),
            Self::Unfinished => f.write_str("`post_exec` of its last build failed or was not run"),
            Self::PartitionsLeft => f.write_str("partitions failed in its last build"),
            Self::FileChanged(path) if is_list(path) => f.write_str("the files of its partitions changed"),
            Self::FileChanged(path) => write!(f, "the file `{path}` changed"),
            Self::MadeChanged(name) => write!(f, "`{name}`, which it reads in the engine, changed"),
        }
    }
}

#[cfg(test)]
mod tests;
