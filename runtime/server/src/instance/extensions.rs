//! Folders in which the engine's extensions are looked for.

use std::path::PathBuf;

use super::Options;

/// The folder of extensions beside the program.
const BESIDE: &str = "extensions";

/// Returns the folders that are there: the one that the options name, then the one beside the program. After them the
/// engine looks into its own cache.
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
