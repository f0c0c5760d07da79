//! Folders that are searched for the engine's extensions.

use std::path::PathBuf;

use super::Options;

/// The name of the extensions folder beside the program.
const BESIDE: &str = "extensions";

/// Returns the existing folders of extensions: the one in the options, then the one beside the program.
///
/// After them the engine looks into its own cache.
pub(super) fn folders(options: &Options) -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let beside = program.and_then(|program| Some(program.parent()?.join(BESIDE)));
    let named = options.extensions.clone();
    named
        .into_iter()
        .chain(beside)
        .filter(|folder| folder.is_dir())
        .collect()
}
